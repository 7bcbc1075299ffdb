// Drawing of the Gantt chart. What is narrower than a pixel is drawn as shares of that pixel, so nothing vanishes.
Gantt.prototype.draw = function draw() {
  if (this.pending) return;
  this.pending = true;
  requestAnimationFrame(() => {
    this.pending = false;
    this.paint();
  });
};

Gantt.prototype.paint = function paint() {
  const { context: c, colours, data } = this;
  c.clearRect(0, 0, this.width, this.height);
  c.font = "12px system-ui, sans-serif";
  c.textBaseline = "middle";
  this.paintOverview(c);
  this.paintAxis(c, 80, (cycle) => data.us(cycle), "µs", [87, 91]);
  this.paintAxis(c, this.bottom + 10, (cycle) => cycle, "cycles", [92, this.bottom]);
  for (const row of this.rows) this.paintRow(c, row);
  for (const line of this.lines) this.paintCounter(c, line);
  if (this.band) {
    c.fillStyle = colours.focus;
    c.globalAlpha = 0.18;
    const [a, b] = this.band.map((cycle) => this.x(cycle));
    c.fillRect(Math.min(a, b), 86, Math.abs(b - a), this.bottom - 86);
    c.globalAlpha = 1;
  }
};

Gantt.prototype.paintOverview = function paintOverview(c) {
  const { colours, data } = this;
  const bins = data.overview[this.place], top = 4, height = 54;
  c.fillStyle = colours.raised;
  c.fillRect(this.left, top, this.plot, height);
  c.fillStyle = colours.busy;
  c.beginPath();
  c.moveTo(this.left, top + height);
  bins.forEach((busy, n) => {
    const y = top + height * (1 - busy / 1000);
    c.lineTo(this.left + (n / bins.length) * this.plot, y);
    c.lineTo(this.left + ((n + 1) / bins.length) * this.plot, y);
  });
  c.lineTo(this.left + this.plot, top + height);
  c.fill();
  const at = (cycle) => this.left + ((cycle - data.begin) / (data.end - data.begin)) * this.plot;
  const [a, b] = this.view.map(at), mark = Math.max(3, b - a);
  c.fillStyle = colours.panel;
  c.globalAlpha = 0.62;
  c.fillRect(this.left, top, a - this.left, height);
  c.fillRect(a + mark, top, this.left + this.plot - a - mark, height);
  c.globalAlpha = 1;
  c.strokeStyle = colours.focus;
  c.lineWidth = 1.5;
  c.strokeRect(a, top, mark, height);
  c.fillStyle = colours.quiet;
  c.textAlign = "right";
  c.fillText("tensor pipe", this.left - 8, top + 16);
  c.fillText("busy, whole run", this.left - 8, top + 32, this.left - 10);
  if (this.right > 60) {
    c.textAlign = "left";
    c.fillText("100 %", this.left + this.plot + 6, top + 6);
    c.fillText("0", this.left + this.plot + 6, top + height - 5);
  }
};

Gantt.prototype.paintAxis = function paintAxis(c, y, scale, unit, [top, bottom]) {
  const { colours } = this;
  const from = scale(this.view[0]), to = scale(this.view[1]);
  const step = nice(((to - from) * 90) / this.plot);
  c.fillStyle = colours.quiet;
  c.strokeStyle = colours.line;
  c.lineWidth = 1;
  c.textAlign = "center";
  const digits = Math.max(0, -Math.floor(Math.log10(step)));
  for (let value = Math.ceil(from / step) * step; value <= to; value += step) {
    const x = this.left + ((value - from) / (to - from)) * this.plot;
    c.beginPath();
    c.moveTo(x, top);
    c.lineTo(x, bottom);
    c.stroke();
    const text = value.toLocaleString("en-US", { minimumFractionDigits: digits, maximumFractionDigits: digits });
    c.fillText(text, Math.min(this.left + this.plot - 18, Math.max(this.left + 18, x)), y);
  }
  c.textAlign = "right";
  c.fillText(unit, this.left - 8, y);
};

Gantt.prototype.paintRow = function paintRow(c, { track, y, height }) {
  const { colours, data } = this;
  const [begin, end] = this.view, perCycle = this.plot / (end - begin), lane = height / track.lanes;
  c.fillStyle = colours.ink;
  c.textAlign = "right";
  c.fillText(track.unit, this.left - 8, y + height / 2, this.left - 12);
  c.fillStyle = colours.raised;
  c.fillRect(this.left, y, this.plot, height);
  c.save();
  c.beginPath();
  c.rect(this.left, y, this.plot, height);
  c.clip();
  const thin = new Map();
  data.each(track, begin, end, (i) => {
    const label = data.label(track, i);
    if (label.blank) return;
    const x = this.x(track.start[i]), width = track.length[i] * perCycle;
    if (width < 1.5) {
      const pixel = Math.floor(x);
      let column = thin.get(pixel);
      if (!column) thin.set(pixel, (column = new Map()));
      column.set(label.colour, (column.get(label.colour) || 0) + width);
      return;
    }
    const top = y + track.lane[i] * lane;
    c.fillStyle = label.colour;
    c.fillRect(x, top, width > 4 ? width - 1 : width, track.lanes > 1 ? lane - 1 : lane);
    const inside = Math.min(x + width, this.left + this.plot) - Math.max(x, this.left);
    // On the tensor pipe the warpgroup stands beside the accumulator: its turns are the ping-pong.
    const text = track.unit === "tensor" && label.name !== "drain" ? `${label.name} ${track.arg[i]}` : label.name;
    if (lane > 11 && inside > 14 && c.measureText(text).width < inside - 8) {
      c.fillStyle = dark(label.colour) ? "#ffffff" : "#10131a";
      c.textAlign = "center";
      c.fillText(text, Math.max(x, this.left) + inside / 2, top + lane / 2 + 0.5);
    }
  });
  for (const [pixel, column] of thin) {
    let top = y + height;
    const whole = Math.max(track.lanes, [...column.values()].reduce((sum, part) => sum + part, 0));
    for (const [colour, part] of column) {
      const part_height = (height * part) / whole;
      top -= part_height;
      c.fillStyle = colour;
      c.fillRect(pixel, top, 1.5, part_height);
    }
  }
  const chosen = this.selected;
  if (chosen?.track === track) {
    const [from, to] = this.extent(chosen), row = chosen.i >= 0 ? track.lane[chosen.i] : 0;
    c.strokeStyle = chosen.i >= 0 ? colours.ink : colours.focus;
    c.lineWidth = 2;
    c.strokeRect(this.x(from), y + row * lane + 1, Math.max(3, (to - from) * perCycle), (chosen.i >= 0 ? lane : height) - 2);
  }
  c.restore();
  if (this.right > 60) this.paintShare(c, track, y + height / 2);
};

// To the right: how much of the cycles in view the unit was at work, or what roles, stages and barriers mostly did.
Gantt.prototype.paintShare = function paintShare(c, track, y) {
  const { data } = this;
  const begin = Math.max(this.view[0], data.shown[0]), end = Math.min(this.view[1], data.shown[1]);
  if (end <= begin) return;
  const x = this.left + this.plot + 6;
  const percent = (cycles) => `${((100 * cycles) / (end - begin)).toFixed(cycles < 0.1 * (end - begin) ? 1 : 0)} %`;
  c.textAlign = "left";
  c.fillStyle = this.colours.quiet;
  if (/^(producer|consumer|barrier)| stage /.test(track.unit)) {
    const [most] = data.shares(track, begin, end);
    if (most) c.fillText(`${most[0].name} ${percent(most[1])}`, x, y, this.right - 6);
  } else c.fillText(`busy ${percent(data.busy(track, begin, end))}`, x, y, this.right - 6);
};

Gantt.prototype.paintCounter = function paintCounter(c, { counter, y, height }) {
  const { colours } = this;
  const { cycle, value } = counter;
  const most = value.reduce((high, v) => Math.max(high, v ?? 0), 0) || 1;
  c.fillStyle = colours.raised;
  c.fillRect(this.left, y, this.plot, height);
  c.save();
  c.beginPath();
  c.rect(this.left, y, this.plot, height);
  c.clip();
  c.fillStyle = colours.focus;
  c.globalAlpha = 0.55;
  for (let n = 0; n < cycle.length; n++) {
    const from = this.x(cycle[n]), to = this.x(n + 1 < cycle.length ? cycle[n + 1] : this.data.end);
    if (value[n] === null || to < this.left || from > this.left + this.plot) continue;
    const part = (height * value[n]) / most;
    c.fillRect(from, y + height - part, Math.max(1, to - from), part);
  }
  c.restore();
  c.fillStyle = colours.quiet;
  c.textAlign = "right";
  c.fillText(counter.name.replace(/^sm\d+\//, ""), this.left - 8, y + height / 2, this.left - 12);
  c.textAlign = "left";
  if (this.right > 60) c.fillText(`max ${most.toPrecision(3)} ${counter.unit}`, this.left + this.plot + 6, y + 8, this.right - 6);
};

function nice(least) {
  const power = 10 ** Math.floor(Math.log10(least));
  return power * [1, 2, 5, 10].find((digit) => digit * power >= least);
}

function dark(colour) {
  const [red, green, blue] = [1, 3, 5].map((at) => parseInt(colour.slice(at, at + 2), 16));
  return 0.299 * red + 0.587 * green + 0.114 * blue < 120;
}
