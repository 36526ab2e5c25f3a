// Puts the page together.

const warpCycles = run.issued_cycles + sumOf(run.stalls);
let gantt = null;
const listingRows = []; // [row, pcs]

/** Picks insns out in the timeline and the listing; null: none. */
function selectPcs(pcs, scroll = false) {
  const wanted = pcs ? new Set(pcs) : null;
  for (const [row, own] of listingRows) {
    const on = wanted !== null && own.some((pc) => wanted.has(pc));
    row.classList.toggle('on', on);
    if (on && scroll) {
      const box = row.closest('.listing');
      box.scrollTop = row.offsetTop - box.clientHeight / 2;
    }
  }
  if (gantt) {
    gantt.selected = wanted;
    gantt.draw();
  }
}

function card(title, note, ...content) {
  return el('section', { class: 'card' }, el('div', { class: 'head' }, el('h2', {}, title), note ? el('span', { class: 'note' }, note) : null), ...content);
}

function segments(names, onPick) {
  const buttons = names.map((name, i) => el('button', {
    type: 'button', 'aria-pressed': String(i === 0),
    click: () => {
      buttons.forEach((button, j) => button.setAttribute('aria-pressed', String(i === j)));
      onPick(name);
    },
  }, name));
  return el('span', { class: 'seg' }, buttons);
}

function header() {
  const themes = { auto: null, light: 'light', dark: 'dark' };
  const shape = ([x, y, z]) => (z > 1 ? `${x}×${y}×${z}` : y > 1 ? `${x}×${y}` : `${x}`);
  return el('header', {},
    el('div', { class: 'grow' },
      el('h1', {}, run.kernel, el('span', { class: 'launch' }, ` <<<${shape(run.grid)}, ${shape(run.block)}>>>`)),
      el('div', { class: 'sub' }, 'on ', el('b', {}, run.profile), ` — ${run.profile_description}, ${run.clock_mhz} MHz`,
        run.status === 'completed' ? null : el('b', {}, ` — stopped: ${run.status}`))),
    segments(Object.keys(themes), (name) => {
      chosenTheme = themes[name];
      applyTheme();
    }));
}

function warnings() {
  const texts = [];
  if (run.notice) {
    texts.push(run.notice);
  }
  for (const key of run.missing_keys) {
    texts.push(`The profile has no latency for ${key}: ${run.fallback_latency} cycles were assumed.`);
  }
  const t = run.timeline;
  if (t.not_recorded) {
    texts.push(`The timeline leaves out ${count(t.not_recorded)} of ${count(run.warp_insns)} warp instructions (--trace-blocks, --trace-window, --trace-limit); counters and waits are of the whole run.`);
  }
  if (t.not_shown) {
    texts.push(`The timeline shows its first ${count(t.rows.length)} entries; ${count(t.not_shown)} more were recorded.`);
  }
  return texts.map((text) => el('div', { class: 'warn' }, text));
}

function tile(key, value, unit, detail, fraction) {
  return el('div', { class: 'tile' }, el('div', { class: 'k' }, key),
    el('div', { class: value.length > 9 ? 'v long' : 'v' }, value, unit ? el('small', {}, unit) : null), el('div', { class: 'd', title: detail }, detail),
    fraction === undefined ? null : el('div', { class: 'meter' }, el('i', { style: `width:${Math.min(100, 100 * fraction)}%` })));
}

function tiles() {
  const used = run.core_counters.filter((core) => core.blocks > 0).length;
  const [worst] = bySize(run.stalls);
  const roof = run.roofline;
  const blocks = run.grid[0] * run.grid[1] * run.grid[2];
  return el('div', { class: 'tiles' },
    tile('Time', count(run.cycles), run.cycles === 1 ? 'cycle' : 'cycles', `${time(run.cycles)} at ${run.clock_mhz} MHz`),
    tile('Warp instructions', count(run.warp_insns), '', `${(run.warp_insns / Math.max(run.cycles, 1) / Math.max(used, 1)).toFixed(3)} a cycle and core`),
    tile('Issuing', percent(run.issued_cycles, warpCycles), '', 'of the cycles of all warps', run.issued_cycles / Math.max(warpCycles, 1)),
    worst ? tile('Largest wait', worst[0], '', `${percent(worst[1], warpCycles)}: ${reasonOf(worst[0]).meaning}`, worst[1] / warpCycles)
      : tile('Largest wait', 'none', '', 'no warp ever waited'),
    tile('Lanes active', percent(run.lane_efficiency, 1), '', `${count(run.lane_insns)} lane instructions`, run.lane_efficiency),
    tile('Cores in use', count(used), `of ${run.cores}`, `${count(blocks)} block${blocks === 1 ? '' : 's'}, ${run.warps_per_block} warp${run.warps_per_block === 1 ? '' : 's'} each`, used / Math.max(run.cores, 1)),
    tile('Bound by', roof.bound, '', roof.text, roof.bound_fraction));
}

function whereTimeGoes() {
  const rows = [['issued', run.issued_cycles], ...bySize(run.stalls)].filter(([, cycles]) => cycles > 0);
  return card('Where the time goes', 'cycles of all warps: each is an issue or charged to one reason',
    stack(run.issued_cycles, run.stalls, Math.max(warpCycles, 1)),
    el('div', { class: 'reasons' }, rows.map(([name, cycles]) => el('div', { class: 'reason' },
      el('span', { class: 'dot', style: `background:var(--r-${name})` }), el('span', { class: 'n' }, name),
      el('span', { class: 'p' }, percent(cycles, warpCycles)),
      el('span', { class: 'm' }, name === 'issued' ? 'a warp issued an instruction' : [el('em', {}, reasonOf(name).meaning), ` — ${reasonOf(name).hint}`])))));
}

function timeline() {
  const rows = run.timeline.rows;
  if (!rows.length) {
    return card('Timeline', '', el('div', { class: 'empty' }, 'No timeline was recorded.'));
  }
  gantt = new Gantt(rows);
  const button = (text, click) => el('button', { type: 'button', click }, text);
  const middle = () => (gantt.width + GUTTER) / 2;
  const units = UNITS.filter((name) => run.units[UNITS.indexOf(name)].issues > 0);
  const seen = [...new Set(rows.filter((e) => e[C.stall]).map((e) => REASONS[e[C.reason]].name))].filter((name) => name in run.stalls);
  const section = card('Timeline', 'when each instruction issued, what was under way, and what warps waited for', gantt.node,
    el('div', { class: 'legend' },
      units.map((name) => el('span', {}, el('i', { style: `background:var(--u-${name})` }), run.units[UNITS.indexOf(name)].summary)),
      seen.map((name) => el('span', {}, el('i', { style: `background:var(--r-${name});opacity:.6` }), `waits: ${name}`)),
      el('span', { class: 'keys' }, el('kbd', {}, 'wheel'), ' zoom ', el('kbd', {}, 'drag'), ' move ', el('kbd', {}, 'shift+wheel'), ' rows ', el('kbd', {}, 'click'), ' find the line')));
  section.querySelector('.head').append(el('span', { class: 'spacer' }),
    segments(gantt.mode === 'warps' ? ['by warp', 'by unit'] : ['by unit', 'by warp'], (name) => gantt.setMode(name === 'by warp' ? 'warps' : 'units')),
    button('−', () => gantt.zoomAt(middle(), 1.6)), button('+', () => gantt.zoomAt(middle(), 0.6)),
    button('fit', () => gantt.zoomTo(0, gantt.end)),
    button('busy part', () => gantt.zoomTo(...busyPart())));
  return section;
}

/** From the first to the last thing on record, with a margin. */
function busyPart() {
  const from = Math.min(...gantt.blocks.map((block) => block.from));
  const to = Math.max(...gantt.blocks.map((block) => block.to));
  const first = gantt.items.length ? gantt.items[0][2][C.issue] : from;
  const margin = (to - first) * 0.02 + 1;
  return [first - margin, to + margin];
}

function bubbles() {
  if (!run.bubbles.length) {
    return null;
  }
  return card('Bubbles', 'the longest times in which a unit had nothing under way, or no warp issued; click one to see it',
    el('div', { class: 'bubbles' }, run.bubbles.slice(0, 9).map((bubble) => el('button', {
      type: 'button', class: 'bubble', style: `border-left-color:var(--r-${bubble.reason})`,
      click: () => {
        if (gantt) {
          const margin = bubble.longest_cycles * 0.25 + 4;
          gantt.zoomTo(bubble.longest_from - margin, bubble.longest_from + bubble.longest_cycles + margin);
          selectPcs([bubble.ended_by_pc, ...(bubble.cause_pc === undefined ? [] : [bubble.cause_pc])]);
          gantt.node.scrollIntoView({ block: 'center' });
        }
      },
    },
    el('div', { class: 'h' }, el('b', {}, bubble.unit === 'issue' ? 'no issue' : run.units[UNITS.indexOf(bubble.unit)].summary),
      el('span', { class: 'x' }, `${count(bubble.total_cycles)} cycles` + (bubble.count > 1 ? ` in ${count(bubble.count)} stretches` : ` from cycle ${count(bubble.longest_from)}`))),
    el('div', {}, bubble.text), el('div', { class: 'hint' }, bubble.hint)))));
}

// ---- listing

/** PTO text with colours: comment, directive or mnemonic, registers, numbers. */
function highlight(text) {
  const parts = [];
  const comment = text.indexOf('//');
  const code = comment < 0 ? text : text.slice(0, comment);
  const pattern = /(\.[a-z]\w*)|(\b[rdpte]\d+\b|%[\w.]+)|(\b0x[0-9a-fA-F]+\b|\b\d[\w.]*\b)|([A-Za-z_][\w.]*)|(\s+|.)/g;
  let first = true;
  for (const [token, directive, register, number, word] of code.matchAll(pattern)) {
    const kind = directive && first ? 'd' : register ? 'r' : number ? 'n' : word && first ? 'o' : '';
    if (word || directive) {
      first = false;
    }
    parts.push(kind ? el('span', { class: 'tok-' + kind }, token) : token);
  }
  if (comment >= 0) {
    parts.push(el('span', { class: 'tok-c' }, text.slice(comment)));
  }
  return parts;
}

function listingLine(line, number, text, most) {
  const cycles = line ? line.issues + sumOf(line.stalls) : 0;
  const [worst] = line ? bySize(line.stalls) : [];
  const row = el('tr', { class: line ? 'has' : '' },
    el('td', { class: 'num' }, number || ''),
    el('td', { class: 'bar' }, cycles ? stack(line.issues, line.stalls, most) : ''),
    el('td', { class: 'num' }, cycles ? percent(cycles, warpCycles) : ''),
    el('td', { class: 'num' }, line && line.issues ? count(line.issues) : ''),
    el('td', { class: 'why' }, !cycles ? '' : worst ? `${worst[0]} ${percent(worst[1], cycles)}` : 'issue'),
    el('td', {}, highlight(text)));
  if (line) {
    listingRows.push([row, line.pcs]);
    row.addEventListener('click', () => {
      const on = row.classList.contains('on');
      selectPcs(on ? null : line.pcs);
    });
  }
  return row;
}

/** Line `number` itself and the text around the kernel's lines. */
function listing() {
  const most = Math.max(1, ...run.lines.map((line) => line.issues + sumOf(line.stalls)));
  const body = el('tbody');
  const files = [...new Set(run.lines.filter((line) => line.line).map((line) => line.file))];
  for (const file of files) {
    const lines = new Map(run.lines.filter((line) => line.line && line.file === file).map((line) => [line.line, line]));
    const texts = (run.sources[file] || '').split('\n');
    const numbers = [...lines.keys()];
    let from = Math.min(...numbers); // and what stands above it, back to the kernel before
    while (from > 1 && numbers[0] - from < 16 && (texts[from - 2] || '').trim() !== '.end') {
      --from;
    }
    while (from < numbers[0] && !(texts[from - 1] || '').trim()) {
      ++from;
    }
    const to = Math.max(...numbers) + (run.sources[file] ? 1 : 0);
    body.append(el('tr', { class: 'file' }, el('td', { colspan: 6 }, run.files[file])));
    for (let number = from; number <= to; ++number) {
      const line = lines.get(number);
      if (!line && !run.sources[file]) {
        continue;
      }
      body.append(listingLine(line, number, line ? line.text : texts[number - 1] || '', most));
    }
  }
  const bare = run.lines.filter((line) => !line.line);
  for (const line of bare) {
    body.append(listingLine(line, '', line.text, most));
  }
  const head = el('thead', {}, el('tr', {}, ['line', 'warp cycles', 'share', 'issued', 'mostly', 'source'].map((name) => el('th', {}, name))));
  return card('Source', 'share of the cycles of all warps, and what they waited for in front of each line; click a line to see it in the timeline',
    el('div', { class: 'listing' }, el('table', {}, head, body)));
}

function footer() {
  return el('footer', {}, 'A cycle-approximate model: results are exact, times are estimates of the profile named above. ',
    'A wait is charged to the first thing that still holds the warp; the sum of issues and waits is the time that the warp was there.');
}

applyTheme();
document.getElementById('app').append(el('div', { class: 'wrap' }, header(), warnings(), tiles(),
  timeline(), el('div', { class: 'cols' }, whereTimeGoes(), card('Units', 'share of the time in which work is under way; full colour: the pipe is taken', unitBars(), el('div', { style: 'height:16px' }), memoryTable())),
  bubbles() || '', listing(),
  el('div', { class: 'cols' }, card('Roofline', 'what the machine could give, and what this run took', rooflineChart()), card('Occupancy', 'over the time of the run', occupancyChart())),
  footer()), tip);
if (gantt) {
  themeListeners.push(() => gantt.draw());
  gantt.resize();
  const [from, to] = busyPart();
  if (to - from < gantt.end * 0.7) {
    gantt.zoomTo(from, to);
  }
}
