// The recorded slices, unpacked, and what can be asked of them. Cycles are those of the SM clock.
class GanttData {
  constructor(packed) {
    Object.assign(this, packed);
    for (const track of this.tracks) this.unpack(track);
  }

  // Starts are differences; overlapping slices (TMA loads) get lanes of their own. The tensor pipe is one queue.
  unpack(track) {
    const count = track.start.length, most = track.unit === "tensor" ? 1 : 12;
    const start = new Float64Array(count), end = new Float64Array(count);
    const lane = new Uint8Array(count), free = [];
    let at = 0, longest = 0;
    for (let i = 0; i < count; i++) {
      at += track.start[i];
      start[i] = at;
      end[i] = at + track.length[i];
      longest = Math.max(longest, track.length[i]);
      let row = free.findIndex((until) => until <= at);
      if (row < 0) row = free.length < most ? free.push(0) - 1 : most - 1;
      free[row] = end[i];
      lane[i] = row;
    }
    Object.assign(track, { start, end, lane, longest, count, lanes: Math.max(1, free.length) });
  }

  // Calls visit(i) for the slices that overlap [begin, end).
  each(track, begin, end, visit) {
    for (let i = this.from(track, begin - track.longest); i < track.count && track.start[i] < end; i++) {
      if (track.end[i] > begin) visit(i);
    }
  }

  // The first slice that starts at or after a cycle.
  from(track, cycle) {
    let low = 0, high = track.count;
    while (low < high) {
      const middle = (low + high) >> 1;
      if (track.start[middle] < cycle) low = middle + 1;
      else high = middle;
    }
    return low;
  }

  // The slice at a cycle, of one lane where that is given; -1 for a gap.
  at(track, cycle, lane = -1) {
    let found = -1;
    this.each(track, cycle, cycle + 1e-9, (i) => { if (lane < 0 || track.lane[i] === lane) found = i; });
    return found;
  }

  label(track, i) {
    return this.labels[track.label[i]];
  }

  means(track, i) {
    const label = this.label(track, i);
    return track.means[label.name] || label.means || label.name;
  }

  // Cycles by label of a track in [begin, end), largest first.
  shares(track, begin, end) {
    const cycles = new Map();
    this.each(track, begin, end, (i) => {
      const label = this.label(track, i);
      const inside = Math.min(end, track.end[i]) - Math.max(begin, track.start[i]);
      cycles.set(label, (cycles.get(label) || 0) + inside);
    });
    return [...cycles].sort((a, b) => b[1] - a[1]);
  }

  // Cycles of [begin, end) in which the track's unit works; loads that overlap count once.
  busy(track, begin, end) {
    let cycles = 0, until = begin;
    this.each(track, begin, end, (i) => {
      if (this.label(track, i).name === "drain") return;
      const from = Math.max(until, track.start[i]), to = Math.min(end, track.end[i]);
      if (to > from) cycles += to - from;
      until = Math.max(until, to);
    });
    return cycles;
  }

  // The gap of a track around a cycle.
  gap(track, cycle) {
    let begin = this.shown[0], end = this.shown[1];
    const next = this.from(track, cycle);
    if (next < track.count) end = track.start[next];
    for (let i = next - 1; i >= 0 && i >= next - 64; i--) begin = Math.max(begin, track.end[i]);
    return [begin, end];
  }

  // The first gap of at least so many cycles that begins at or after a cycle, or the last that ends at or before it.
  nextGap(track, cycle, by, least) {
    const from = this.from(track, cycle);
    for (let i = by > 0 ? Math.max(1, from) : Math.min(from, track.count - 1); i > 0 && i < track.count; i += by) {
      const begin = track.end[i - 1], end = track.start[i];
      if (end - begin >= least && (by > 0 ? begin >= cycle : end <= cycle)) return [begin, end];
    }
    return null;
  }

  consumers(place) {
    return this.tracks.filter((track) => track.place === place && track.unit.startsWith("consumer"));
  }

  us(cycles) {
    return (cycles / this.clock_hz) * 1e6;
  }
}
