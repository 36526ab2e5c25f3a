// The Gantt: a canvas that zooms (wheel), pans (drag) and shows what is under the pointer. By warp,
// a row is cut into issues and waits with what is under way beneath; by unit, into what each unit
// works on. Blocks that follow each other on a core share rows.

const C = Object.fromEntries(run.timeline.columns.map((name, index) => [name, index]));
const GUTTER = 168;
const LABEL_HEIGHT = 12;
const AXIS = 26;

/** The active lanes of an entry that has some: "0–255", "0–2,5". */
function lanesOf(e) {
  const range = (first, last) => (first === last ? `${first}` : `${first}–${last}`);
  if (!e[C.lane_mask]) {
    return range(e[C.first_lane], e[C.last_lane]);
  }
  const parts = [];
  const has = (lane) => lane < 32 && (e[C.lane_mask] >>> lane) & 1;
  for (let lane = 0; lane < 32; ++lane) {
    if (has(lane)) {
      const first = lane;
      while (has(lane + 1)) {
        ++lane;
      }
      parts.push(range(32 * e[C.first_warp] + first, 32 * e[C.first_warp] + lane));
    }
  }
  return parts.join(',');
}

class Gantt {
  constructor(rows) {
    this.entries = rows;
    this.selected = null; // pcs that are picked out
    this.end = Math.max(run.cycles, 1);
    this.t0 = 0;
    this.t1 = this.end;
    this.top = 0;
    this.rowHeight = 0;
    this.hover = null;
    this.placeBlocks();
    this.canvas = el('canvas', { class: 'main', tabindex: 0, 'aria-label': 'timeline; wheel zooms, drag moves, arrow keys too' });
    this.overview = el('canvas', { class: 'overview', 'aria-label': 'overview of the whole run' });
    this.node = el('div', { class: 'gantt' }, this.overview, this.canvas);
    this.setMode(run.units.some((unit) => 'DC'.includes(unit.name) && unit.issues > 0) ? 'units' : 'warps');
    this.listen();
  }

  /** A slot a core for each block that is there at the same time. */
  placeBlocks() {
    const blocks = new Map();
    for (const e of this.entries) {
      const from = e[C.issue] - e[C.stall];
      const to = Math.max(e[C.done], e[C.issue] + 1);
      const block = blocks.get(e[C.block]);
      if (!block) {
        blocks.set(e[C.block], { id: e[C.block], core: e[C.core], from, to, warps: e[C.last_warp] + 1 });
      } else {
        block.from = Math.min(block.from, from);
        block.to = Math.max(block.to, to);
        block.warps = Math.max(block.warps, e[C.last_warp] + 1);
      }
    }
    this.blocks = [...blocks.values()].sort((a, b) => a.from - b.from);
    this.blockOf = blocks;
    this.cores = new Map(); // core -> slots with the number of their warps
    for (const block of this.blocks) {
      const slots = this.cores.get(block.core) || [];
      this.cores.set(block.core, slots);
      let slot = slots.find((candidate) => candidate.end <= block.from);
      if (!slot) {
        slot = { end: 0, warps: 0 };
        slots.push(slot);
      }
      slot.end = block.to;
      slot.warps = Math.max(slot.warps, block.warps);
      block.slot = slot;
    }
  }

  setMode(mode) {
    this.mode = mode;
    this.rows = [];
    this.items = []; // [row, rows, entry]
    const cores = [...this.cores.keys()].sort((a, b) => a - b);
    if (mode === 'warps') {
      for (const core of cores) {
        this.cores.get(core).forEach((slot, index) => {
          slot.first = this.rows.length;
          for (let warp = 0; warp < slot.warps; ++warp) {
            this.rows.push({ core, label: `warp ${warp}`, group: warp === 0, name: index ? `core ${core} · ${index + 1}` : `core ${core}` });
          }
        });
      }
      for (const e of this.entries) {
        const slot = this.blockOf.get(e[C.block]).slot;
        this.items.push([slot.first + e[C.first_warp], e[C.last_warp] - e[C.first_warp] + 1, e]);
      }
    } else {
      this.placeUnits(cores);
    }
    this.top = 0;
    this.rowHeight = 0;
    this.items.sort((a, b) => a[2][C.issue] - b[2][C.issue]);
    this.resize();
  }

  /** Rows a unit, so many that what is under way together lies side by side (at most four). */
  placeUnits(cores) {
    const lanes = new Map();
    const assigned = [];
    for (const e of this.entries) {
      const insn = run.insns[e[C.pc]];
      if (insn.block_scoped && e[C.first_warp] !== 0) {
        continue;
      }
      const key = e[C.core] + insn.unit;
      const ends = lanes.get(key) || [];
      lanes.set(key, ends);
      let lane = ends.findIndex((end) => end <= e[C.start]);
      if (lane < 0) {
        lane = ends.length < 4 ? ends.length : ends.indexOf(Math.min(...ends));
      }
      ends[lane] = Math.max(ends[lane] || 0, e[C.done], e[C.start] + 1);
      assigned.push([key, lane, e]);
    }
    const first = new Map();
    for (const core of cores) {
      let isFirst = true;
      for (const unit of UNITS) {
        const ends = lanes.get(core + unit);
        if (!ends) {
          continue;
        }
        first.set(core + unit, this.rows.length);
        ends.forEach((_, lane) => {
          this.rows.push({ core, label: lane === 0 ? run.units[UNITS.indexOf(unit)].summary : '', group: isFirst, name: `core ${core}`, unit });
          isFirst = false;
        });
      }
    }
    for (const [key, lane, e] of assigned) {
      this.items.push([first.get(key) + lane, 1, e]);
    }
  }

  resize() {
    const width = this.node.clientWidth || 1000;
    if (!this.rowHeight) {
      this.rowHeight = Math.min(this.mode === 'units' ? 24 : 38, Math.max(this.mode === 'units' ? LABEL_HEIGHT : 9, Math.floor(420 / Math.max(this.rows.length, 1))));
    }
    const height = AXIS + Math.min(Math.max(this.rows.length * this.rowHeight, 60), 460) + 4;
    for (const [canvas, h] of [[this.canvas, height], [this.overview, 46]]) {
      const ratio = devicePixelRatio || 1;
      canvas.style.height = h + 'px';
      canvas.width = Math.round(width * ratio);
      canvas.height = Math.round(h * ratio);
      canvas.getContext('2d').setTransform(ratio, 0, 0, ratio, 0, 0);
    }
    this.width = width;
    this.height = height;
    this.draw();
  }

  x(cycle) {
    return GUTTER + ((cycle - this.t0) / (this.t1 - this.t0)) * (this.width - GUTTER);
  }

  cycleAt(x) {
    return this.t0 + ((x - GUTTER) / (this.width - GUTTER)) * (this.t1 - this.t0);
  }

  /** Shows [from, to), clipped to the run and to at least four cycles. */
  zoomTo(from, to) {
    const span = Math.min(Math.max(to - from, 4), this.end * 1.02 + 1);
    const low = -0.01 * this.end;
    this.t0 = Math.min(Math.max(from, low), Math.max(low, this.end * 1.01 - span));
    this.t1 = this.t0 + span;
    this.draw();
  }

  zoomAt(x, factor) {
    const cycle = this.cycleAt(Math.max(x, GUTTER));
    this.zoomTo(cycle - (cycle - this.t0) * factor, cycle + (this.t1 - cycle) * factor);
  }

  scrollTo(top) {
    const most = Math.max(0, this.rows.length * this.rowHeight - (this.height - AXIS - 4));
    this.top = Math.min(Math.max(0, top), most);
  }

  draw() {
    if (this.pending) {
      return;
    }
    this.pending = true;
    requestAnimationFrame(() => {
      this.pending = false;
      this.paint();
      this.paintOverview();
    });
  }

  paint() {
    const g = this.canvas.getContext('2d');
    g.clearRect(0, 0, this.width, this.height);
    g.font = '11px system-ui, sans-serif';
    g.textBaseline = 'middle';
    this.paintGrid(g);
    g.save();
    g.beginPath();
    g.rect(0, AXIS, this.width, this.height - AXIS);
    g.clip();
    this.paintGutter(g);
    g.save();
    g.beginPath();
    g.rect(GUTTER, AXIS, this.width - GUTTER, this.height - AXIS);
    g.clip();
    this.paintItems(g);
    this.paintBlocks(g);
    this.paintArrow(g);
    g.restore();
    this.paintScrollbar(g);
    g.restore();
  }

  paintScrollbar(g) {
    const seen = this.height - AXIS - 4;
    const all = this.rows.length * this.rowHeight;
    if (all > seen + 1) {
      g.fillStyle = colour('dim');
      g.globalAlpha = 0.5;
      g.beginPath();
      g.roundRect(this.width - 7, AXIS + (this.top / all) * seen, 5, Math.max((seen / all) * seen, 18), 3);
      g.fill();
      g.globalAlpha = 1;
    }
  }

  rowTop(row) {
    return AXIS + row * this.rowHeight - this.top;
  }

  paintGrid(g) {
    const wanted = ((this.t1 - this.t0) * 90) / (this.width - GUTTER);
    const power = 10 ** Math.floor(Math.log10(Math.max(wanted, 1)));
    const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= wanted) || power * 10;
    g.fillStyle = colour('dim');
    g.strokeStyle = colour('grid');
    g.lineWidth = 1;
    for (let cycle = Math.ceil(Math.max(this.t0, 0) / step) * step; cycle <= Math.min(this.t1, this.end); cycle += step) {
      const x = Math.round(this.x(cycle)) + 0.5;
      g.beginPath();
      g.moveTo(x, AXIS - 6);
      g.lineTo(x, this.height);
      g.stroke();
      g.textAlign = 'center';
      g.fillText(count(cycle), Math.min(Math.max(x, GUTTER + 12), this.width - 20), AXIS / 2 - 1);
    }
    g.textAlign = 'left';
    g.fillText('cycle', 10, AXIS / 2 - 1);
  }

  paintGutter(g) {
    g.textAlign = 'left';
    const every = Math.ceil(LABEL_HEIGHT / this.rowHeight);
    this.labels = []; // what is written, for who looks at the page from outside
    for (let row = 0; row < this.rows.length; ++row) {
      const y = this.rowTop(row);
      if (y > this.height || y + this.rowHeight < AXIS) {
        continue;
      }
      const { label, group, name } = this.rows[row];
      if (group) {
        g.fillStyle = colour('line');
        g.fillRect(0, y, this.width, 1);
        g.fillStyle = colour('text');
        g.fillText(name, 10, y + Math.max(this.rowHeight / 2, LABEL_HEIGHT / 2));
      }
      if (this.mode === 'units' ? label : row % every === 0) {
        g.fillStyle = colour('dim');
        g.textAlign = 'right';
        g.fillText(label, GUTTER - 8, y + this.rowHeight / 2);
        this.labels.push({ text: label, from: GUTTER - 8 - g.measureText(label).width, at: y + this.rowHeight / 2, after: group ? 10 + g.measureText(name).width : 0 });
        g.textAlign = 'left';
      }
    }
  }

  paintItems(g) {
    const h = this.rowHeight;
    const pad = h > 12 ? 2 : h > 6 ? 1 : 0;
    const scale = (this.width - GUTTER) / (this.t1 - this.t0);
    const byWarp = this.mode === 'warps';
    this.drawn = 0;
    const labelled = []; // by row: where its latest label ends
    for (const [row, rows, e] of this.items) {
      const from = byWarp ? e[C.issue] - e[C.stall] : e[C.start];
      const to = Math.max(e[C.done], e[C.issue] + 1);
      if (to < this.t0 || from > this.t1) {
        continue;
      }
      const y = this.rowTop(row) + pad;
      const height = rows * h - 2 * pad;
      if (y > this.height || y + height < AXIS) {
        continue;
      }
      ++this.drawn;
      const faded = this.selected && !this.selected.has(e[C.pc]);
      const unit = colour('u-' + run.insns[e[C.pc]].unit);
      const x = this.x(e[C.issue]);
      g.globalAlpha = faded ? 0.18 : 1;
      if (byWarp) {
        this.paintWarpItem(g, e, x, y, height, scale, unit, faded);
      } else {
        const x0 = this.x(e[C.start]);
        g.fillStyle = unit;
        g.globalAlpha *= e[C.active_lanes] === 0 ? 0.4 : 1;
        g.fillRect(x0, y, Math.max(1, this.x(to) - x0 - (scale > 3 ? 1 : 0)), height);
      }
      const textFrom = byWarp ? x + 4 : this.x(e[C.start]) + 4;
      const room = this.x(to) - textFrom - 4;
      const text = run.insns[e[C.pc]].mnemonic;
      if (room > 30 && height >= 11 && room > 6.6 * text.length && !faded && textFrom > (labelled[row] || 0)) {
        labelled[row] = textFrom + 6.6 * text.length + (byWarp ? Math.max(0, scale) : 0) + 6;
        g.fillStyle = byWarp && scale < 14 ? colour('text') : '#fff';
        g.globalAlpha = 1;
        g.fillText(text, textFrom + (byWarp ? Math.max(0, scale) : 0), byWarp ? y + height * 0.72 : y + height / 2);
      }
    }
    g.globalAlpha = 1;
  }

  paintWarpItem(g, e, x, y, height, scale, unit, faded) {
    const wait = e[C.stall] * scale;
    if (wait > 0.3) {
      g.globalAlpha = faded ? 0.12 : 0.55;
      g.fillStyle = colour('r-' + REASONS[e[C.reason]].name);
      g.fillRect(x - wait, y, wait, height * 0.45);
    }
    const tail = (e[C.done] - e[C.issue]) * scale;
    if (tail > 0.3) {
      g.globalAlpha = faded ? 0.1 : 0.32;
      g.fillStyle = unit;
      g.fillRect(x, y + height * 0.45, tail, height * 0.55);
    }
    g.globalAlpha = faded ? 0.2 : 1;
    const width = Math.max(scale - (scale > 4 ? 1 : 0), 1);
    if (e[C.active_lanes] === 0) { // hollow: no lane executes it
      g.strokeStyle = unit;
      g.strokeRect(x + 0.5, y + 0.5, Math.max(width - 1, 0), height - 1);
    } else {
      g.fillStyle = unit;
      g.fillRect(x, y, width, height);
    }
  }

  paintBlocks(g) {
    if (this.mode !== 'warps') {
      return;
    }
    g.strokeStyle = colour('dim');
    for (const block of this.blocks) {
      const x0 = this.x(block.from);
      const x1 = this.x(block.to);
      if (x1 < GUTTER || x0 > this.width || x1 - x0 < 6) {
        continue;
      }
      const y = this.rowTop(block.slot.first) + 0.5;
      g.globalAlpha = 0.45;
      g.strokeRect(Math.round(x0) + 0.5, y, Math.round(x1 - x0), block.slot.warps * this.rowHeight - 1);
      g.globalAlpha = 1;
    }
  }

  /** From what the entry under the pointer waited for. */
  paintArrow(g) {
    const item = this.hover;
    if (!item) {
      return;
    }
    const [row, rows, e] = item;
    const y = this.rowTop(row) + (rows * this.rowHeight) / 2;
    g.strokeStyle = colour('text');
    g.fillStyle = colour('text');
    g.lineWidth = 1.5;
    g.strokeRect(this.x(e[C.issue]) - 1, this.rowTop(row) + 0.5, Math.max(this.x(Math.max(e[C.done], e[C.issue] + 1)) - this.x(e[C.issue]), 2) + 1, rows * this.rowHeight - 1);
    const cause = this.causeOf(item);
    if (cause) {
      const cy = this.rowTop(cause[0]) + (cause[1] * this.rowHeight) / 2;
      const x0 = this.x(this.mode === 'warps' ? cause[2][C.issue] : cause[2][C.done]);
      const x1 = this.x(e[C.issue]);
      g.beginPath();
      g.moveTo(x0, cy);
      g.bezierCurveTo(x0 + 30, cy - 14, x1 - 30, y - 14, x1 - 2, y);
      g.stroke();
      g.beginPath();
      g.arc(x0, cy, 3, 0, 7);
      g.fill();
      g.beginPath();
      g.moveTo(x1, y);
      g.lineTo(x1 - 8, y - 5);
      g.lineTo(x1 - 6, y + 2);
      g.fill();
    }
    g.lineWidth = 1;
  }

  causeOf([, , e]) {
    const pc = e[C.held_by_pc] >= 0 ? e[C.held_by_pc] : e[C.cause_pc];
    if (pc < 0) {
      return null;
    }
    let best = null;
    for (const item of this.items) {
      if (item[2][C.issue] >= e[C.issue]) {
        break;
      }
      if (item[2][C.pc] === pc && item[2][C.block] === e[C.block] &&
          (item[2][C.first_warp] === 0 || item[2][C.first_warp] <= e[C.last_warp] && e[C.first_warp] <= item[2][C.last_warp])) {
        best = item;
      }
    }
    return best;
  }

  paintOverview() {
    const g = this.overview.getContext('2d');
    const width = this.width - GUTTER;
    g.clearRect(0, 0, this.width, 46);
    g.font = '11px system-ui, sans-serif';
    g.textBaseline = 'middle';
    g.fillStyle = colour('dim');
    g.fillText('whole run', 10, 23);
    const points = run.occupancy;
    const most = Math.max(...points.map((p) => p[2]), 1e-9);
    const step = width / Math.max(points.length, 1);
    g.fillStyle = colour('accent');
    points.forEach((point, i) => {
      g.globalAlpha = 0.5;
      const h = (point[2] / most) * 36;
      g.fillRect(GUTTER + i * step, 43 - h, Math.max(step - 0.5, 0.5), h);
    });
    g.globalAlpha = 1;
    const x0 = GUTTER + (Math.max(this.t0, 0) / this.end) * width;
    const x1 = GUTTER + (Math.min(this.t1, this.end) / this.end) * width;
    g.globalAlpha = 0.55;
    g.fillStyle = colour('bg');
    g.fillRect(GUTTER, 0, x0 - GUTTER, 46);
    g.fillRect(x1, 0, this.width - x1, 46);
    g.globalAlpha = 1;
    g.strokeStyle = colour('accent');
    g.strokeRect(Math.round(x0) + 0.5, 0.5, Math.max(Math.round(x1 - x0) - 1, 3), 45);
  }

  /** The entry under a point of the canvas. */
  pick(x, y) {
    if (x < GUTTER || y < AXIS) {
      return null;
    }
    const row = Math.floor((y - AXIS + this.top) / this.rowHeight);
    const cycle = this.cycleAt(x);
    const slack = ((this.t1 - this.t0) / (this.width - GUTTER)) * 2;
    let best = null;
    let bestSize = Infinity;
    for (const item of this.items) {
      const e = item[2];
      if (row < item[0] || row >= item[0] + item[1]) {
        continue;
      }
      const from = this.mode === 'warps' ? e[C.issue] - e[C.stall] : e[C.start];
      const to = Math.max(e[C.done], e[C.issue] + 1);
      // The issue itself first, then the wait, then what is under way.
      const size = cycle >= e[C.issue] - slack && cycle <= e[C.issue] + 1 + slack ? 0
        : cycle >= from && cycle < e[C.issue] ? 1 : cycle >= e[C.issue] && cycle <= to ? 2 : Infinity;
      if (size < bestSize) {
        best = item;
        bestSize = size;
      }
    }
    return best;
  }

  describe([, , e]) {
    const insn = run.insns[e[C.pc]];
    const warps = e[C.first_warp] === e[C.last_warp] ? e[C.first_warp] : `${e[C.first_warp]}–${e[C.last_warp]}`;
    const lanes = e[C.active_lanes] === 0 ? 'no lane: the guard holds in none' : `lanes ${lanesOf(e)}, ${count(e[C.active_lanes])} active`;
    const waited = e[C.least_stall] === e[C.stall] ? count(e[C.stall]) : `${count(e[C.least_stall])}–${count(e[C.stall])}`;
    const reason = REASONS[e[C.reason]];
    const name = (pc) => `${run.insns[pc].text}  (${run.insns[pc].place})`;
    return tipTable((insn.stage ? insn.stage + ': ' : '') + insn.text, [
      ['place', insn.place],
      ['issued', `cycle ${count(e[C.issue])} (${time(e[C.issue])})` + (e[C.fused] ? ', joined with the instruction before' : '')],
      e[C.start] > e[C.issue] ? ['began', `cycle ${count(e[C.start])}, after ${count(e[C.start] - e[C.issue])} in the queue`] : null,
      e[C.held_by_pc] >= 0 ? ['held by', name(e[C.held_by_pc])] : null,
      ['done', `cycle ${count(e[C.done])}, ${count(e[C.done] - e[C.issue])} later`],
      ['waited', e[C.stall] ? `${waited} cycles, mostly ${reason.name}: ${reason.meaning}` : 'not at all'],
      e[C.stall] && e[C.cause_pc] >= 0 ? ['for', name(e[C.cause_pc])] : null,
      ['where', `core ${e[C.core]}, block ${e[C.block]}, warp ${warps}, ${lanes}`],
      ['unit', run.units[UNITS.indexOf(insn.unit)].summary],
    ]);
  }

  listen() {
    const canvas = this.canvas;
    let drag = null;
    canvas.addEventListener('wheel', (event) => {
      event.preventDefault();
      if (event.shiftKey) {
        this.scrollTo(this.top + (event.deltaY || event.deltaX));
        this.draw();
      } else if (Math.abs(event.deltaX) > Math.abs(event.deltaY)) {
        const cycles = (event.deltaX * (this.t1 - this.t0)) / (this.width - GUTTER);
        this.zoomTo(this.t0 + cycles, this.t1 + cycles);
      } else {
        this.zoomAt(event.offsetX, Math.exp(Math.max(-1, Math.min(1, event.deltaY / 240))));
      }
    }, { passive: false });
    canvas.addEventListener('pointerdown', (event) => {
      drag = { x: event.offsetX, y: event.offsetY, t0: this.t0, t1: this.t1, top: this.top, moved: false };
      canvas.setPointerCapture(event.pointerId);
      canvas.classList.add('drag');
    });
    canvas.addEventListener('pointermove', (event) => {
      if (drag) {
        drag.moved = drag.moved || Math.abs(event.offsetX - drag.x) + Math.abs(event.offsetY - drag.y) > 4;
        const cycles = ((drag.x - event.offsetX) * (drag.t1 - drag.t0)) / (this.width - GUTTER);
        this.scrollTo(drag.top + drag.y - event.offsetY);
        this.zoomTo(drag.t0 + cycles, drag.t1 + cycles);
        return;
      }
      const item = this.pick(event.offsetX, event.offsetY);
      if (item !== this.hover) {
        this.hover = item;
        this.draw();
      }
      if (item) {
        showTip(event, this.describe(item));
      } else {
        hideTip();
      }
    });
    canvas.addEventListener('pointerup', (event) => {
      if (drag && !drag.moved) {
        const item = this.pick(event.offsetX, event.offsetY);
        selectPcs(item ? [item[2][C.pc]] : null, true);
      }
      drag = null;
      canvas.classList.remove('drag');
    });
    canvas.addEventListener('pointerleave', () => {
      this.hover = null;
      hideTip();
      this.draw();
    });
    canvas.addEventListener('dblclick', (event) => this.zoomAt(event.offsetX, 0.25));
    canvas.addEventListener('keydown', (event) => {
      const step = (this.t1 - this.t0) * 0.15;
      const middle = (this.width + GUTTER) / 2;
      const keys = {
        ArrowLeft: () => this.zoomTo(this.t0 - step, this.t1 - step),
        ArrowRight: () => this.zoomTo(this.t0 + step, this.t1 + step),
        ArrowUp: () => this.scrollTo(this.top - 40),
        ArrowDown: () => this.scrollTo(this.top + 40),
        '+': () => this.zoomAt(middle, 0.7),
        '=': () => this.zoomAt(middle, 0.7),
        '-': () => this.zoomAt(middle, 1.4),
        0: () => this.zoomTo(0, this.end),
        Escape: () => selectPcs(null),
      };
      if (keys[event.key]) {
        event.preventDefault();
        keys[event.key]();
        this.draw();
      }
    });
    const jump = (event) => {
      const at = ((event.offsetX - GUTTER) / (this.width - GUTTER)) * this.end;
      const half = (this.t1 - this.t0) / 2;
      this.zoomTo(at - half, at + half);
    };
    this.overview.addEventListener('pointerdown', (event) => {
      this.overview.setPointerCapture(event.pointerId);
      jump(event);
    });
    this.overview.addEventListener('pointermove', (event) => {
      if (event.buttons) {
        jump(event);
      }
    });
    addEventListener('resize', () => this.resize());
  }
}
