// The Gantt chart: one canvas, drawn anew whenever the view changes.
class Gantt {
  constructor(root, data) {
    this.data = data;
    this.canvas = root.querySelector("canvas");
    this.output = root.querySelector("output");
    this.tip = document.getElementById("tip");
    this.context = this.canvas.getContext("2d");
    this.place = data.places[0];
    this.view = [...data.window];
    this.all = false;
    this.hover = null;
    this.selected = null;
    this.buildTools(root);
    this.listen();
    new ResizeObserver(() => this.resize()).observe(this.canvas.parentElement);
    addEventListener("themechange", () => this.resize());
    // Paper has a width of its own: the chart is drawn for it and scaled, so that its letters keep their shape.
    for (const [change, width] of [["beforeprint", PAPER_WIDTH], ["afterprint", 0]]) {
      addEventListener(change, () => { this.paper = width; this.resize(); });
    }
    matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => this.resize());
    this.resize();
    this.describe();
  }

  buildTools(root) {
    const select = root.querySelector("select");
    for (const place of this.data.places) select.add(new Option(place.replace(/^sm/, ""), place));
    root.querySelector(".sm").hidden = this.data.places.length < 2;
    select.addEventListener("change", () => { this.place = select.value; this.selected = null; this.resize(); this.describe(); });
    const more = root.querySelector(".more"), box = more.querySelector("input");
    more.hidden = this.data.tracks.every((track) => track.main) && !this.data.counters.length;
    box.addEventListener("change", () => { this.all = box.checked; this.resize(); });
    const acts = {
      in: () => this.zoom(0.5), out: () => this.zoom(2), gap: () => this.gap(1),
      loop: () => this.show(...this.data.window), all: () => this.show(this.data.begin, this.data.end),
    };
    for (const button of root.querySelectorAll("button")) button.addEventListener("click", acts[button.dataset.do]);
    const legend = root.querySelector(".legend"), seen = new Map();
    for (const track of this.data.tracks) {
      for (const number of new Set(track.label)) {
        const label = this.data.labels[number];
        if (!label.blank) seen.set(label.name, label.colour);
      }
    }
    for (const [name, colour] of seen) {
      const entry = document.createElement("span"), key = document.createElement("i");
      key.style.background = colour;
      entry.append(key, name);
      legend.append(entry);
    }
  }

  tracks() {
    return this.data.tracks.filter((track) => track.place === this.place && (this.all || track.main));
  }

  counters() {
    if (!this.all) return [];
    return this.data.counters.filter((c) => !/^(sm|cta)\d/.test(c.name) || c.name.split("/")[0] === this.place);
  }

  // Heights and widths of everything, in CSS pixels.
  resize() {
    const width = this.paper || this.canvas.parentElement.clientWidth - 24;
    this.left = width < 560 ? 74 : 104;
    this.right = width < 560 ? 8 : 112;
    this.plot = Math.max(60, width - this.left - this.right);
    let y = 92;
    this.rows = this.tracks().map((track) => {
      const height = Math.max(track.unit === "tensor" ? 36 : 28, 7 * track.lanes);
      const row = { track, y, height };
      y += height + 5;
      return row;
    });
    this.lines = this.counters().map((counter) => {
      const line = { counter, y, height: 34 };
      y += 41;
      return line;
    });
    this.bottom = y;
    this.width = width;
    this.height = y + 26;
    const scale = this.paper ? 2 : devicePixelRatio || 1;
    this.canvas.width = Math.round(width * scale);
    this.canvas.height = Math.round(this.height * scale);
    this.canvas.style.height = this.paper ? "auto" : `${this.height}px`;
    this.context.setTransform(scale, 0, 0, scale, 0, 0);
    const probe = getComputedStyle(this.canvas);
    const colour = (name) => {
      this.canvas.style.color = `var(${name})`;
      return probe.color;
    };
    this.colours = Object.fromEntries(
      ["ink", "quiet", "line", "paper", "panel", "raised", "busy", "focus"].map((name) => [name, colour(`--${name}`)]),
    );
    this.canvas.style.color = "";
    this.paint();
  }

  x(cycle) {
    return this.left + ((cycle - this.view[0]) / (this.view[1] - this.view[0])) * this.plot;
  }

  cycle(x) {
    return this.view[0] + ((x - this.left) / this.plot) * (this.view[1] - this.view[0]);
  }

  // Shows cycles [begin, end), kept inside the recording and at least 20 cycles wide.
  show(begin, end) {
    const whole = this.data.end - this.data.begin;
    const width = Math.min(whole, Math.max(20, end - begin));
    const middle = (begin + end) / 2;
    const from = Math.min(Math.max(middle - width / 2, this.data.begin), this.data.end - width);
    this.view = [from, from + width];
    this.draw();
  }

  // Makes the view `factor` times as wide about a cycle, the middle unless given.
  zoom(factor, about = (this.view[0] + this.view[1]) / 2) {
    const [begin, end] = this.view;
    const whole = this.data.end - this.data.begin;
    const width = Math.min(whole, Math.max(20, (end - begin) * factor));
    const share = (about - begin) / (end - begin);
    this.show(about - share * width, about + (1 - share) * width);
  }

  pan(share) {
    const step = share * (this.view[1] - this.view[0]);
    this.show(this.view[0] + step, this.view[1] + step);
  }

  // What lies under a point of the canvas: { track, i } with i < 0 for a gap, or null.
  hit(x, y) {
    const row = this.rows.find((r) => y >= r.y && y < r.y + r.height);
    if (!row || x < this.left || x > this.left + this.plot) return null;
    const cycle = this.cycle(x), lane = Math.floor(((y - row.y) / row.height) * row.track.lanes);
    let i = this.data.at(row.track, cycle, lane);
    if (i < 0) i = this.data.at(row.track, cycle);
    if (cycle < this.data.shown[0] || cycle > this.data.shown[1]) return null;
    return { track: row.track, i, cycle };
  }

  select(track, i) {
    this.selected = { track, i };
    if (track.start[i] < this.view[0] || track.end[i] > this.view[1]) {
      const middle = (track.start[i] + track.end[i]) / 2, width = Math.max(this.view[1] - this.view[0], 1.2 * track.length[i]);
      this.view = [middle - width / 2, middle + width / 2];
    }
    this.show(...this.view);
    this.describe();
  }

  // A slice in words, or a gap of the tensor pipe with what the consumers did meanwhile.
  words({ track, i, cycle }) {
    const { data } = this;
    const span = (begin, end) =>
      `${fmt(end - begin)} cycles, ${data.us(end - begin).toFixed(3)} µs, from cycle ${fmt(begin)}`;
    if (i >= 0) {
      const label = data.label(track, i);
      return [`${track.unit}: ${label.name}`, data.means(track, i), `${span(track.start[i], track.end[i])}; ${track.counts} ${track.arg[i]}`];
    }
    const [begin, end] = data.gap(track, cycle);
    const lines = [`${track.unit}: idle`, span(begin, end)];
    if (track.unit === "tensor") {
      for (const consumer of data.consumers(track.place)) {
        const parts = data.shares(consumer, begin, end).slice(0, 3);
        const told = parts.map(([label, cycles]) => `${label.name} ${Math.round((100 * cycles) / (end - begin))} %`);
        if (told.length) lines.push(`meanwhile ${consumer.unit}: ${told.join(", ")}`);
      }
    }
    return lines;
  }

  describe() {
    const lines = this.selected ? this.words(this.selected) : [];
    const children = lines.map((line, n) => {
      const part = document.createElement(n ? "span" : "b");
      part.textContent = n ? `${n > 1 ? "; " : ": "}${line}` : line;
      return part;
    });
    this.output.replaceChildren(...children);
    if (!lines.length) this.output.textContent = "Click a slice, step through slices with , and . or press N for the next gap of the tensor pipe, to read its reason here.";
  }

  showTip(event) {
    const found = this.hover;
    this.tip.hidden = !found;
    if (!found) return;
    const lines = this.words(found).map((line, n) => {
      const part = document.createElement(n ? "div" : "b");
      part.textContent = line;
      return part;
    });
    this.tip.replaceChildren(...lines);
    const box = this.tip.getBoundingClientRect();
    this.tip.style.left = `${Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8))}px`;
    this.tip.style.top = `${event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 12 : event.clientY + 18}px`;
  }

  listen() {
    const { canvas } = this;
    const point = (event) => {
      const box = canvas.getBoundingClientRect();
      return [event.clientX - box.left, event.clientY - box.top];
    };
    let grip = null;
    canvas.addEventListener("pointerdown", (event) => {
      const [x, y] = point(event);
      grip = { x, y, view: [...this.view], overview: y < 62, band: event.shiftKey, moved: false };
      if (grip.overview) this.centre(x);
      try { canvas.setPointerCapture(event.pointerId); } catch { /* a pointer that is gone already */ }
    });
    canvas.addEventListener("pointermove", (event) => {
      const [x, y] = point(event);
      if (!grip) {
        this.hover = this.hit(x, y);
        this.showTip(event);
        return;
      }
      grip.moved ||= Math.abs(x - grip.x) > 3;
      if (grip.overview) this.centre(x);
      else if (grip.band) { this.band = [this.cycle(grip.x), this.cycle(x)]; this.draw(); }
      else if (grip.moved) {
        const step = ((grip.x - x) / this.plot) * (grip.view[1] - grip.view[0]);
        this.tip.hidden = true;
        this.show(grip.view[0] + step, grip.view[1] + step);
      }
    });
    canvas.addEventListener("pointerup", (event) => {
      const [x, y] = point(event), was = grip;
      grip = null;
      if (this.band) {
        const [a, b] = this.band;
        this.band = null;
        this.show(Math.min(a, b), Math.max(a, b));
      } else if (was && !was.moved && !was.overview) {
        this.selected = this.hit(x, y);
        this.describe();
        this.draw();
      }
    });
    canvas.addEventListener("pointerleave", () => { this.hover = null; this.tip.hidden = true; });
    canvas.addEventListener("dblclick", () => this.enter());
    canvas.addEventListener("wheel", (event) => {
      if (!event.ctrlKey && !event.metaKey && document.activeElement !== canvas) return;
      event.preventDefault();
      if (event.shiftKey || Math.abs(event.deltaX) > Math.abs(event.deltaY)) this.pan((event.deltaX || event.deltaY) / 1000);
      else this.zoom(Math.exp(Math.max(-60, Math.min(60, event.deltaY)) * 0.005), this.cycle(point(event)[0]));
    }, { passive: false });
    canvas.addEventListener("keydown", (event) => this.key(event));
    for (const happening of ["focus", "blur"]) canvas.addEventListener(happening, () => this.draw());
  }

  key(event) {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const acts = {
      ArrowLeft: () => this.pan(-0.2), a: () => this.pan(-0.2), ArrowRight: () => this.pan(0.2), d: () => this.pan(0.2),
      "+": () => this.zoom(0.6), "=": () => this.zoom(0.6), w: () => this.zoom(0.6),
      "-": () => this.zoom(1 / 0.6), s: () => this.zoom(1 / 0.6),
      0: () => this.show(this.data.begin, this.data.end), Home: () => this.show(...this.data.window),
      ",": () => this.step(-1), ".": () => this.step(1), ArrowUp: () => this.change(-1), ArrowDown: () => this.change(1),
      n: () => this.gap(1), p: () => this.gap(-1),
      Enter: () => this.enter(), Escape: () => { this.selected = null; this.describe(); this.draw(); },
    };
    const act = acts[event.key.length === 1 ? event.key.toLowerCase() : event.key];
    if (!act) return;
    event.preventDefault();
    act();
  }

  // The overview spans the recording: puts the middle of the view where the pointer is.
  centre(x) {
    const share = Math.max(0, Math.min(1, (x - this.left) / this.plot)), width = this.view[1] - this.view[0];
    const middle = this.data.begin + share * (this.data.end - this.data.begin);
    this.show(middle - width / 2, middle + width / 2);
  }

  step(by) {
    const track = this.selected?.track ?? this.tracks()[0];
    const at = this.selected ? this.selected.cycle ?? track.start[this.selected.i] : this.view[0];
    const known = this.selected && this.selected.i >= 0;
    const i = known ? this.selected.i + by : this.data.from(track, at) - (by < 0 ? 1 : 0);
    if (i >= 0 && i < track.count) this.select(track, i);
  }

  change(by) {
    const tracks = this.tracks();
    const now = this.selected ? tracks.indexOf(this.selected.track) : by > 0 ? -1 : tracks.length;
    const track = tracks[(now + by + tracks.length) % tracks.length];
    const at = this.selected && this.selected.i >= 0 ? this.selected.track.start[this.selected.i] : (this.view[0] + this.view[1]) / 2;
    const i = this.data.at(track, at);
    if (track.count) this.select(track, i >= 0 ? i : Math.min(track.count - 1, this.data.from(track, at)));
  }

  // The next or previous stretch in which the tensor pipe has nothing to do, longer than what ends a WGMMA group.
  gap(by) {
    const track = this.tracks().find((one) => one.unit === "tensor");
    if (!track) return;
    const from = this.selected ? this.extent(this.selected)[by > 0 ? 1 : 0] : this.view[0];
    const found = this.data.nextGap(track, from, by, LONG_GAP);
    if (found) this.selectGap(track, ...found);
  }

  selectGap(track, begin, end) {
    this.selected = { track, i: -1, cycle: (begin + end) / 2 };
    const width = Math.max(this.view[1] - this.view[0], 1.5 * (end - begin)), middle = (begin + end) / 2;
    if (begin < this.view[0] || end > this.view[1]) this.view = [middle - width / 2, middle + width / 2];
    this.show(...this.view);
    this.describe();
  }

  // The cycles of what is selected: a slice, or a gap.
  extent({ track, i, cycle }) {
    return i >= 0 ? [track.start[i], track.end[i]] : this.data.gap(track, cycle);
  }

  enter() {
    if (!this.selected) return;
    const [begin, end] = this.extent(this.selected), room = 0.25 * (end - begin);
    this.show(begin - room, end + room);
  }
}

const LONG_GAP = 100;  // cycles
const PAPER_WIDTH = 1000;  // CSS pixels
const fmt = (number) => Math.round(number).toLocaleString("en-US");
