'use strict';
// Data of the run, small builders of elements, numbers as text, colours and the tooltip.

const run = JSON.parse(document.getElementById('run-data').textContent);
const REASONS = run.reasons;
const UNITS = run.units.map((unit) => unit.name);

/** An element with attributes (class, style, events as functions) and children. */
function el(tag, attributes = {}, ...children) {
  const svg = ['svg', 'path', 'line', 'rect', 'circle', 'g', 'text', 'title'].includes(tag);
  const node = svg ? document.createElementNS('http://www.w3.org/2000/svg', tag) : document.createElement(tag);
  for (const [key, value] of Object.entries(attributes)) {
    if (typeof value === 'function') {
      node.addEventListener(key, value);
    } else if (value !== null && value !== undefined) {
      node.setAttribute(key, value);
    }
  }
  for (const child of children.flat()) {
    if (child !== null && child !== undefined) {
      node.append(child);
    }
  }
  return node;
}

/** 1234567 -> "1 234 567" with thin spaces. */
function count(value) {
  return Math.round(value).toString().replace(/\B(?=(\d{3})+$)/g, '\u2009');
}

function percent(part, whole) {
  const p = whole > 0 ? (100 * part) / whole : 0;
  return (p !== 0 && p < 9.95 ? p.toFixed(1) : Math.round(p)) + '\u2009%';
}

function bytes(value) {
  const names = ['B', 'KiB', 'MiB', 'GiB'];
  let i = 0;
  while (value >= 1024 && i + 1 < names.length) {
    value /= 1024;
    ++i;
  }
  return (i === 0 || value >= 100 ? Math.round(value) : value.toPrecision(3)) + '\u2009' + names[i];
}

function time(cycles) {
  const ns = (cycles * 1000) / run.clock_mhz;
  if (ns >= 1e6) {
    return (ns / 1e6).toPrecision(4) + '\u2009ms';
  }
  return ns >= 1000 ? (ns / 1000).toPrecision(4) + '\u2009µs' : ns.toPrecision(3) + '\u2009ns';
}

let colours = {};
/** The value of a custom property in the theme that is on. */
function colour(name) {
  if (!(name in colours)) {
    colours[name] = getComputedStyle(document.documentElement).getPropertyValue('--' + name).trim();
  }
  return colours[name];
}

const sumOf = (object) => Object.values(object).reduce((a, b) => a + b, 0);
/** [name, cycles] with most first. */
const bySize = (stalls) => Object.entries(stalls).sort((a, b) => b[1] - a[1]);
const reasonOf = (name) => REASONS.find((reason) => reason.name === name);

/** A bar of parts; `issued` first. `whole` is what the full width stands for. */
function stack(issued, stalls, whole) {
  const parts = [['issued', issued], ...bySize(stalls)].filter(([, cycles]) => cycles > 0);
  return el('div', { class: 'stack' }, parts.map(([name, cycles]) => {
    const part = el('i', { style: `width:${(100 * cycles) / whole}%;background:var(--r-${name})` });
    tooltip(part, () => tipTable(name, [
      ['cycles', `${count(cycles)} (${percent(cycles, whole)})`],
      name === 'issued' ? ['', 'a warp issued an instruction'] : ['meaning', reasonOf(name).meaning],
    ]));
    return part;
  }));
}

// ---- tooltip

const tip = el('div', { id: 'tip', role: 'tooltip' });

function tipTable(title, rows) {
  return [el('div', { class: 't' }, title),
    el('table', {}, rows.filter(Boolean).map(([key, value]) => el('tr', {}, el('td', {}, key), el('td', {}, value))))];
}

function showTip(event, content) {
  tip.replaceChildren(...content);
  tip.style.display = 'block';
  const { width, height } = tip.getBoundingClientRect();
  const x = event.clientX + 16 + width > innerWidth ? event.clientX - 16 - width : event.clientX + 16;
  const y = event.clientY + 16 + height > innerHeight ? event.clientY - 12 - height : event.clientY + 16;
  tip.style.left = Math.max(4, x) + 'px';
  tip.style.top = Math.max(4, y) + 'px';
}

function hideTip() {
  tip.style.display = 'none';
}

function tooltip(node, content) {
  node.addEventListener('mousemove', (event) => showTip(event, content()));
  node.addEventListener('mouseleave', hideTip);
}

// ---- theme: follows the system until somebody chooses

const systemDark = matchMedia('(prefers-color-scheme: dark)');
let chosenTheme = null;
const themeListeners = [];

function applyTheme() {
  document.documentElement.dataset.theme = chosenTheme || (systemDark.matches ? 'dark' : 'light');
  colours = {};
  themeListeners.forEach((listener) => listener());
}

systemDark.addEventListener('change', applyTheme);
