// Roofline, occupancy and units.

function niceLog(from, to) {
  const ticks = [];
  for (let power = Math.floor(Math.log10(from)); power <= Math.ceil(Math.log10(to)); ++power) {
    ticks.push(10 ** power);
  }
  return ticks;
}

const short = (value) => (value >= 1e6 ? +(value / 1e6).toPrecision(3) + 'M' : value >= 1e4 ? +(value / 1e3).toPrecision(3) + 'k' : String(+value.toPrecision(value >= 1000 ? 4 : 3)));

/** The next round number whose quarters are round too. */
function roundUp(value) {
  const power = 10 ** Math.floor(Math.log10(value));
  return [1, 2, 4, 8, 10].map((m) => m * power).find((candidate) => candidate >= value * 0.999);
}

/** log-log: operations a cycle over operations a byte. */
function rooflineChart() {
  const roof = run.roofline;
  const memory = roof.memory_limits.filter((limit) => limit.per_cycle > 0);
  const compute = roof.compute_limits.filter((limit) => limit.per_cycle > 0);
  if (roof.flops === 0 || roof.hbm_bytes === 0 || (!memory.length && !compute.length)) {
    const why = roof.flops === 0 ? 'This kernel does no floating-point arithmetic, so its place on a roofline is the left edge.'
      : roof.hbm_bytes === 0 ? 'No byte of hbm was moved.' : `The profile ${run.profile} sets no limits.`;
    return el('div', {}, el('div', { class: 'empty' }, why), bandwidthTable());
  }
  const W = 560, H = 300, L = 52, R = 14, T = 16, B = 38;
  const peak = Math.max(...compute.map((c) => c.per_cycle), roof.flops_per_cycle * 2, 1);
  const ridge = memory.length && compute.length ? Math.max(...compute.map((c) => c.per_cycle)) / Math.min(...memory.map((m) => m.per_cycle)) : 1;
  const x0 = Math.min(0.02, roof.intensity / 4), x1 = Math.max(ridge * 6, roof.intensity * 6, 10);
  const y1 = peak * 3;
  const y0 = Math.min(roof.flops_per_cycle / 5, y1 / 1e3);
  const X = (v) => L + (Math.log(v / x0) / Math.log(x1 / x0)) * (W - L - R);
  const Y = (v) => H - B - (Math.log(v / y0) / Math.log(y1 / y0)) * (H - T - B);
  const svg = el('svg', { viewBox: `0 0 ${W} ${H}`, width: '100%', role: 'img', 'aria-label': 'roofline' });
  for (const tick of niceLog(x0, x1)) {
    if (tick >= x0 && tick <= x1) {
      svg.append(el('line', { x1: X(tick), x2: X(tick), y1: T, y2: H - B, stroke: 'var(--grid)' }),
        el('text', { x: X(tick), y: H - B + 15, 'text-anchor': 'middle' }, short(tick)));
    }
  }
  for (const tick of niceLog(y0, y1)) {
    if (tick >= y0 && tick <= y1) {
      svg.append(el('line', { x1: L, x2: W - R, y1: Y(tick), y2: Y(tick), stroke: 'var(--grid)' }),
        el('text', { x: L - 6, y: Y(tick) + 4, 'text-anchor': 'end' }, short(tick)));
    }
  }
  svg.append(el('text', { x: (L + W) / 2, y: H - 5, 'text-anchor': 'middle' }, 'operations a byte of hbm'),
    el('text', { x: 12, y: (T + H - B) / 2, 'text-anchor': 'middle', transform: `rotate(-90 12 ${(T + H - B) / 2})` }, 'operations a cycle'));
  const top = compute.length ? Math.max(...compute.map((c) => c.per_cycle)) : y1;
  memory.forEach((limit, i) => {
    const xEnd = Math.min(x1, top / limit.per_cycle);
    const xStart = Math.max(x0, y0 / limit.per_cycle);
    if (xEnd > xStart) {
      svg.append(el('path', { d: `M${X(xStart)} ${Y(xStart * limit.per_cycle)}L${X(xEnd)} ${Y(xEnd * limit.per_cycle)}`, stroke: 'var(--u-M)', 'stroke-width': 2, fill: 'none', 'stroke-dasharray': i ? '5 4' : 'none' }));
      const at = Math.sqrt(xStart * xEnd);
      svg.append(el('text', { x: X(at) + (i ? -8 : 8), y: Y(at * limit.per_cycle) + (i ? -10 : 14), 'text-anchor': i ? 'end' : 'start' }, `${limit.name} ${short(limit.per_cycle)} B`));
    }
  });
  const fastest = memory.length ? Math.max(...memory.map((m) => m.per_cycle)) : Infinity;
  compute.forEach((limit) => {
    const from = Math.max(x0, memory.length ? limit.per_cycle / fastest : x0);
    svg.append(el('path', { d: `M${X(from)} ${Y(limit.per_cycle)}L${W - R} ${Y(limit.per_cycle)}`, stroke: 'var(--u-V)', 'stroke-width': 2 }),
      el('text', { x: W - R, y: Y(limit.per_cycle) - 5, 'text-anchor': 'end' }, `${limit.name} ${short(limit.per_cycle)}`));
  });
  const px = X(roof.intensity), py = Y(Math.max(roof.flops_per_cycle, y0));
  const right = px > W * 0.6;
  svg.append(el('line', { x1: px, x2: px, y1: py, y2: H - B, stroke: 'var(--r-cache-miss)', 'stroke-dasharray': '2 3' }),
    el('circle', { cx: px, cy: py, r: 6, fill: 'var(--r-cache-miss)', stroke: 'var(--card)', 'stroke-width': 2 }),
    el('text', { class: 'strong', x: px + (right ? -11 : 11), y: py + 4, 'text-anchor': right ? 'end' : 'start' }, `this run: ${short(roof.flops_per_cycle)}`));
  return el('div', {}, svg, bandwidthTable());
}

function bandwidthTable() {
  const roof = run.roofline;
  const rate = (achieved, limits, name, unit) => {
    const limit = limits.find((candidate) => candidate.name === name);
    const text = `${achieved.toFixed(achieved < 10 ? 2 : 0)} ${unit} a cycle`;
    return limit && limit.per_cycle > 0 ? `${text}, ${percent(achieved, limit.per_cycle)} of ${short(limit.per_cycle)}` : text;
  };
  return el('table', { class: 'kv' },
    el('tr', {}, el('td', {}, 'hbm'), el('td', {}, rate(roof.hbm_bytes_per_cycle, roof.memory_limits, 'hbm', 'bytes'))),
    el('tr', {}, el('td', {}, 'l2'), el('td', {}, rate(roof.l2_bytes_per_cycle, roof.memory_limits, 'l2', 'bytes'))),
    el('tr', {}, el('td', {}, 'bound by'), el('td', {}, `${roof.bound}: ${roof.text}`)));
}

/** Resident warps as an area, issues as a line. */
function occupancyChart() {
  const points = run.occupancy;
  if (!points.length) {
    return el('div', { class: 'empty' }, 'The run took no time.');
  }
  const W = 560, H = 200, L = 44, R = 44, T = 12, B = 26;
  const used = Math.max(run.core_counters.filter((core) => core.blocks > 0).length, 1);
  const most = Math.max(...points.map((p) => p[1] / used), 1);
  const top = most > run.max_warps_per_core / 3 ? run.max_warps_per_core : roundUp(most * 1.1);
  const issueTop = roundUp(Math.max(...points.map((p) => p[2] / used), 1e-6));
  const X = (i) => L + (i / points.length) * (W - L - R);
  const Y = (v, max) => H - B - (v / max) * (H - T - B);
  const svg = el('svg', { viewBox: `0 0 ${W} ${H}`, width: '100%', role: 'img', 'aria-label': 'occupancy over time' });
  for (let i = 0; i <= 4; ++i) {
    const y = Y(i, 4);
    svg.append(el('line', { x1: L, x2: W - R, y1: y, y2: y, stroke: 'var(--grid)' }),
      el('text', { x: L - 6, y: y + 4, 'text-anchor': 'end' }, short((top * i) / 4)),
      el('text', { x: W - R + 6, y: y + 4 }, short((issueTop * i) / 4)));
  }
  let area = `M${X(0)} ${H - B}`;
  let line = '';
  points.forEach((point, i) => {
    const y = Y(Math.min(point[1] / used, top), top);
    area += `L${X(i)} ${y}L${X(i + 1)} ${y}`;
    line += `${i ? 'L' : 'M'}${(X(i) + X(i + 1)) / 2} ${Y(point[2] / used, issueTop)}`;
  });
  svg.append(el('path', { d: area + `L${X(points.length)} ${H - B}Z`, fill: 'var(--u-D)', 'fill-opacity': 0.25, stroke: 'var(--u-D)' }),
    el('path', { d: line, fill: 'none', stroke: 'var(--u-V)', 'stroke-width': 1.5 }),
    el('text', { x: L, y: H - 6 }, '0'), el('text', { x: W - R, y: H - 6, 'text-anchor': 'end' }, `${count(run.cycles)} cycles`));
  return el('div', {}, svg, el('div', { class: 'legend' },
    el('span', {}, el('i', { style: 'background:var(--u-D)' }), `resident warps on a core (at most ${run.max_warps_per_core}; mean of the ${used} in use)`),
    el('span', {}, el('i', { style: 'background:var(--u-V)' }), 'instructions issued a cycle (right)')));
}

/** Work under way, and in full colour the time that the pipe is taken. */
function track(unit) {
  const width = (cycles) => Math.min(100, (100 * cycles) / Math.max(run.cycles, 1));
  const node = el('div', { class: 'track' },
    el('i', { style: `width:${width(unit.most_under_way_cycles)}%;background:var(--u-${unit.name});opacity:.38` }),
    el('i', { style: `width:${width(unit.most_busy_cycles)}%;background:var(--u-${unit.name})` }));
  tooltip(node, () => tipTable(unit.summary, [['pipe taken', percent(unit.most_busy_cycles, run.cycles)],
    ['under way', unit.most_under_way_cycles ? percent(unit.most_under_way_cycles, run.cycles) : 'not recorded']]));
  return node;
}

function unitBars() {
  const node = el('div', { class: 'units' });
  for (const unit of run.units) {
    if (!unit.issues) {
      continue;
    }
    node.append(el('div', { class: 'name' }, el('b', { style: `color:var(--u-${unit.name})` }, unit.name), el('span', {}, unit.summary)),
      track(unit),
      el('div', { class: 'p' }, percent(Math.max(unit.most_busy_cycles, unit.most_under_way_cycles), run.cycles)),
      el('div', { class: 'q' }, `${count(unit.issues)} issues`));
  }
  return node;
}

function memoryTable() {
  const m = run.memory, s = run.shared_memory;
  const rows = [];
  const lookups = m.cache_hits + m.cache_misses;
  const sectors = s.l2_hit_sectors + s.l2_miss_sectors;
  if (m.requests) {
    rows.push(['requests to hbm', `${count(m.requests)}, ${(m.lines / m.requests).toFixed(2)} lines each`]);
  }
  if (lookups) {
    rows.push(['data cache', `${percent(m.cache_hits, lookups)} of ${count(lookups)} lines hit`]);
  }
  if (m.l1_requests) {
    rows.push(['requests to l1', `${count(m.l1_requests)}, ${count(m.bank_conflicts)} bank conflicts`]);
  }
  if (m.copies_in + m.copies_out) {
    rows.push(['copies', `${count(m.copies_in)} in, ${count(m.copies_out)} out, ${bytes(m.copy_bytes)}`]);
  }
  if (sectors) {
    rows.push(['l2', `${percent(s.l2_hit_sectors, sectors)} of ${count(sectors)} sectors hit`]);
  }
  if (s.atomic_ops) {
    rows.push(['atomics', count(s.atomic_ops)]);
  }
  rows.push(['hbm', `${bytes(s.hbm_read_bytes)} read, ${bytes(s.hbm_write_bytes)} written`]);
  return el('table', { class: 'kv' }, rows.map(([key, value]) => el('tr', {}, el('td', {}, key), el('td', {}, value))));
}
