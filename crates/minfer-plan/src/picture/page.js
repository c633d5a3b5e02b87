// The page's behaviour. Takes the JSON in #data (see html.rs and scene.rs); draws the map, the live values of one step and
// the bars. Text reaches the page as text nodes only, never as markup.
'use strict';

const { scene, layers, no_layer: noLayer, owners } = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
const map = byId('map');
const nSteps = scene.steps.length;
const ARRANGED = ['naive', 'pool', 'planned'];
const MARGIN = { left: 74, top: 26, bottom: 124 };
const CORE_WIDTH = 150, CORE_GAP = 22, STRIP = 54;

const state = { layout: 0, arena: 0, step: 0, sameScale: false, chosen: null, view: null };
let drawn; // what follows from layout and arena alone
let frame; // pixels of the map within the svg
const nodes = new Map(); // item -> its elements

// ---- text ----

function formatBytes(n) {
  const units = ['B', 'KiB', 'MiB', 'GiB', 'TiB'];
  let unit = 0;
  while (n >= 1024 && unit + 1 < units.length) { n /= 1024; unit++; }
  const digits = unit === 0 || n >= 100 ? 0 : n >= 10 ? 1 : 2;
  return `${Number(n.toFixed(digits))} ${units[unit]}`;
}
const grouped = (n) => String(n).replace(/\B(?=(\d{3})+$)/g, '\u202f');
const rangeText = ([from, to]) => (to - from === 1 ? `${from}` : `${from}–${to - 1}`);
const cut = (text, longest) => (text.length > longest ? text.slice(0, longest - 1) + '…' : text);

function make(tag, attributes = {}, ...children) {
  const element = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}
function svgMake(tag, attributes, text) {
  const element = document.createElementNS('http://www.w3.org/2000/svg', tag);
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  if (text !== undefined) element.textContent = text;
  return element;
}
const colours = (item) => (item.layer === null ? noLayer : layers[item.layer]);

// ---- what there is ----

/** Bodies (chains that share bytes), who owns them when, and the sum of live bytes, for one layout of one arena. */
function arrange() {
  const layout = scene.layouts[state.layout], arena = scene.arenas[state.arena];
  const shown = [], bodyOf = [], bodies = [], items = [];
  scene.items.forEach((item, i) => {
    if (item.arena !== state.arena) return;
    items.push(i);
    const over = layout.takes_over[i];
    shown[i] = [...item.live];
    if (over) {
      shown[over.item][1] = item.live[0];
      bodyOf[i] = bodyOf[over.item];
      bodyOf[i].end = Math.max(bodyOf[i].end, item.live[1]);
    } else {
      const body = { first: i, start: item.live[0], end: item.live[1], offset: layout.offsets[i], bytes: item.occupied_bytes };
      bodies.push(bodyOf[i] = body);
    }
  });
  const live = new Array(nSteps).fill(0);
  for (const body of bodies) for (let s = body.start; s < body.end; s++) live[s] += body.bytes;
  let peak = 0;
  live.forEach((bytes, s) => { if (bytes > live[peak]) peak = s; });
  const height = layout.heights[state.arena], bound = arena.lower_bound_bytes;
  return { layout, arena, items, shown, bodyOf, bodies, live, peak, height, bound };
}

/** Items that own bytes at a step, highest address first. */
function liveAt(step) {
  const { items, shown, layout } = drawn;
  const live = items.filter((i) => shown[i][0] <= step && step < shown[i][1]);
  return live.sort((a, b) => layout.offsets[b] - layout.offsets[a]);
}

function topBytes() {
  const heights = state.sameScale ? scene.layouts.map((layout) => layout.heights[state.arena]) : [drawn.height];
  return Math.max(1, drawn.bound, ...heights) * 1.07;
}
const wholeView = () => ({ x0: 0, x1: Math.max(1, nSteps), y0: 0, y1: topBytes() });

// ---- pixels ----

const px = (step) => frame.x + ((step - state.view.x0) / (state.view.x1 - state.view.x0)) * frame.width;
const py = (bytes) => frame.y + (1 - (bytes - state.view.y0) / (state.view.y1 - state.view.y0)) * frame.height;
const stepAt = (x) => state.view.x0 + ((x - frame.x) / frame.width) * (state.view.x1 - state.view.x0);
const bytesAt = (y) => state.view.y0 + (1 - (y - frame.y) / frame.height) * (state.view.y1 - state.view.y0);

function measure() {
  const box = map.getBoundingClientRect();
  const width = Math.max(240, box.width - MARGIN.left - CORE_GAP - CORE_WIDTH);
  frame = { x: MARGIN.left, y: MARGIN.top, width, height: box.height - MARGIN.top - MARGIN.bottom };
  frame.core = frame.x + width + CORE_GAP;
}

/** The elements of a new layout or arena: made once, moved by `render`. */
function build() {
  nodes.clear();
  map.replaceChildren();
  const defs = svgMake('defs', {});
  const clip = svgMake('clipPath', { id: 'in-map' });
  clip.append(svgMake('rect', { id: 'clip' }));
  defs.append(clip, hatch(), dots());
  const items = svgMake('g', { id: 'items', 'clip-path': 'url(#in-map)' });
  for (const i of drawn.items) {
    const item = scene.items[i], [fill, ink] = colours(item), elements = {};
    elements.value = svgMake('rect', { class: 'value', fill, 'data-item': i });
    items.append(elements.value);
    const pattern = { staging: 'hatch', workspace: 'dots' }[item.kind];
    if (pattern) items.append(elements.over = svgMake('rect', { class: 'over', fill: `url(#${pattern})` }));
    if (drawn.bodyOf[i].first === i) elements.body = svgMake('rect', { class: `body ${item.kind}` });
    else elements.mark = svgMake('path', { class: 'mark', fill: ink, stroke: ink });
    nodes.set(i, elements);
  }
  for (const { body, mark } of nodes.values()) items.append(...[body, mark].filter(Boolean));
  const layer = (id, attributes = {}) => svgMake('g', { id, ...attributes });
  map.append(defs, layer('under'), items, layer('inside', { 'clip-path': 'url(#in-map)' }), layer('above'));
}

function hatch() {
  const pattern = svgMake('pattern', {
    id: 'hatch', width: 6, height: 6, patternUnits: 'userSpaceOnUse', patternTransform: 'rotate(45)' });
  pattern.append(svgMake('rect', { width: 3, height: 6, fill: '#fff', 'fill-opacity': 0.75 }));
  return pattern;
}
function dots() {
  const pattern = svgMake('pattern', { id: 'dots', width: 5, height: 5, patternUnits: 'userSpaceOnUse' });
  pattern.append(svgMake('rect', { width: 5, height: 5, fill: '#fff', 'fill-opacity': 0.55 }),
    svgMake('circle', { cx: 2.5, cy: 2.5, r: 1.3, fill: '#10141a' }));
  return pattern;
}

const setBox = (element, x, y, width, height) => {
  const box = { x, y, width: Math.max(0, width), height: Math.max(0, height) };
  for (const [name, value] of Object.entries(box)) element.setAttribute(name, value.toFixed(2));
};

function render() {
  setBox(byId('clip'), frame.x, frame.y, frame.width, frame.height);
  const under = byId('under'), inside = byId('inside'), above = byId('above');
  for (const group of [under, inside, above]) group.replaceChildren();
  const put = (group, tag, attributes, text) => group.append(svgMake(tag, attributes, text));
  const right = frame.x + frame.width, bottom = frame.y + frame.height;
  const box = (group, cls, x, y, width, height, more = {}) => {
    const rect = svgMake('rect', { class: cls, ...more });
    setBox(rect, x, y, width, height);
    group.append(rect);
    return rect;
  };

  box(under, 'field', frame.x, frame.y, frame.width, frame.height);
  box(under, 'field', frame.core, frame.y, CORE_WIDTH, frame.height);
  for (const bytes of ticks(state.view.y0, state.view.y1, 6, 2)) {
    const y = py(bytes);
    put(under, 'line', { class: 'grid', x1: frame.x, x2: right, y1: y, y2: y });
    put(under, 'text', { x: frame.x - 8, y: y + 4, 'text-anchor': 'end' }, formatBytes(bytes));
  }
  const middle = frame.y + frame.height / 2;
  put(under, 'text', { class: 'axis', 'text-anchor': 'middle', transform: `translate(11 ${middle}) rotate(-90)` },
    'address in the arena, bytes');

  for (const [i, elements] of nodes) place(i, elements, inside);
  drawStrip(put, box, under, above, bottom + 14);
  drawSteps(put, box, under, bottom + 14 + STRIP + 8);
  drawMarks(put, above, right, bottom + 14 + STRIP);
  drawCore(put, box, under, above);
  drawCursor(box, above, bottom + 14 + STRIP + 21);
}

/** Moves the elements of one item; names it where there is room. */
function place(i, { value, over, body, mark }, inside) {
  const [from, to] = drawn.shown[i], whole = drawn.bodyOf[i];
  const x = px(from), width = px(to) - x, y = py(whole.offset + whole.bytes), height = py(whole.offset) - y;
  setBox(value, x, y, width, height);
  if (over) setBox(over, x, y, width, height);
  if (body) setBox(body, px(whole.start), y, px(whole.end) - px(whole.start), height);
  if (mark) {
    const half = Math.min(height / 4, 4), m = y + height / 2;
    mark.setAttribute('d', `M${x} ${y}v${height}M${x} ${m - half}l${half * 1.2} ${half}l${-half * 1.2} ${half}z`);
  }
  const left = Math.max(x, frame.x), room = Math.min(x + width, frame.x + frame.width) - left;
  const inView = y < frame.y + frame.height - 12 && y + height > frame.y + 12;
  if (height < 14 || room < 46 || !inView) return;
  const text = cut(scene.items[i].name, Math.floor((room - 16) / 6.4));
  const at = Math.max(frame.y + 13, Math.min(frame.y + frame.height - 5, y + height / 2 + 4));
  const label = svgMake('text', { class: 'inside', x: left + 10, y: at }, text);
  label.style.fill = colours(scene.items[i])[1];
  if (!over) inside.append(label);
}

/** The sum of live bytes over the steps in view. */
function drawStrip(put, box, under, above, y) {
  box(under, 'field', frame.x, y, frame.width, STRIP);
  const top = Math.max(drawn.bound, drawn.live[drawn.peak] || 0, 1) * 1.07;
  const height = (bytes) => y + STRIP * (1 - bytes / top);
  const first = Math.max(0, Math.floor(state.view.x0)), last = Math.min(nSteps, Math.ceil(state.view.x1));
  const clamp = (x) => Math.max(frame.x, Math.min(frame.x + frame.width, x));
  let path = `M${clamp(px(first))} ${y + STRIP}`;
  for (let s = first; s < last; s++) path += `V${height(drawn.live[s]).toFixed(1)}H${clamp(px(s + 1)).toFixed(1)}`;
  put(under, 'path', { class: 'live-area', d: `${path}V${y + STRIP}z` });
  put(under, 'text', { class: 'axis', x: frame.x - 8, y: y + 11, 'text-anchor': 'end' }, 'live bytes');
  put(under, 'text', { x: frame.x - 8, y: y + STRIP, 'text-anchor': 'end' }, '0 B');
  const bound = height(drawn.bound);
  put(above, 'line', { class: 'bound', x1: frame.x, x2: frame.x + frame.width, y1: bound, y2: bound });
}

/** The axis of steps: a band coloured by layer, and numbers. */
function drawSteps(put, box, under, y) {
  const { x0, x1 } = state.view;
  put(under, 'text', { class: 'axis', x: frame.x - 8, y: y + 10, 'text-anchor': 'end' }, 'layer');
  for (let s = 0; s < nSteps;) {
    let end = s + 1;
    while (end < nSteps && scene.steps[end].layer === scene.steps[s].layer) end++;
    const [fill, ink] = colours(scene.steps[s]);
    const left = Math.max(frame.x, px(s)), right = Math.min(frame.x + frame.width, px(end));
    if (right > left) {
      box(under, 'band', left, y, right - left - 0.7, 13, { fill });
      const number = scene.steps[s].layer;
      if (number !== null && right - left > 7 + 6 * String(number).length) {
        const label = svgMake('text', { x: (left + right) / 2, y: y + 10, 'text-anchor': 'middle' }, number);
        label.style.fill = ink;
        under.append(label);
      }
    }
    s = end;
  }
  for (const step of ticks(x0, Math.min(x1, nSteps), 10, 10)) {
    const x = px(step + 0.5);
    if (step < nSteps && x >= frame.x && x <= frame.x + frame.width) {
      put(under, 'text', { x, y: y + 27, 'text-anchor': 'middle' }, step);
    }
  }
  const label = `execution step (${nSteps} steps, in the order they run)`;
  put(under, 'text', { class: 'axis', x: frame.x + frame.width / 2, y: y + 46, 'text-anchor': 'middle' }, label);
}

/** Round numbers in a range: powers of two for bytes, 1-2-5 for steps. */
function ticks(from, to, wanted, base) {
  const span = Math.max(to - from, 1) / wanted;
  let every = 1;
  if (base === 2) while (every < span) every *= 2;
  else for (let unit = 1; every < span; unit *= 10) every = [unit, 2 * unit, 5 * unit].find((n) => n >= span) || unit;
  const found = [];
  for (let at = Math.ceil(from / every) * every; at <= to; at += every) found.push(at);
  return found;
}

/** Lower bound, height and peak. */
function drawMarks(put, above, right, bottom) {
  const { bound, height, peak, live } = drawn;
  const inView = (y) => y >= frame.y - 0.5 && y <= frame.y + frame.height + 0.5;
  const level = (bytes, cls, textClass, text) => {
    const y = py(bytes);
    if (!inView(y)) return;
    put(above, 'line', { class: cls, x1: frame.x, x2: frame.core + CORE_WIDTH, y1: y, y2: y });
    put(above, 'text', { class: textClass, x: frame.x + 8, y: y - 6, id: `${cls}-label` }, text);
  };
  if (height !== bound) {
    level(height, 'height', 'said plain', `height ${formatBytes(height)}`);
    level(bound, 'bound', 'said', `lower bound ${formatBytes(bound)}`);
  } else level(bound, 'bound', 'said', `height = lower bound = ${formatBytes(bound)}: no placement is smaller`);
  const x = px(peak + 0.5);
  if (nSteps === 0 || x < frame.x || x > right) return;
  put(above, 'line', { class: 'peak', x1: x, x2: x, y1: frame.y - 5, y2: bottom });
  const text = `peak: ${formatBytes(live[peak])} live at step ${peak}, ${cut(scene.steps[peak].name, 40)}`;
  const half = text.length * 3.4;
  const anchor = x - half < frame.x ? 'start' : x + half > right ? 'end' : 'middle';
  put(above, 'text', { class: 'said', x: anchor === 'end' ? Math.min(right, x + 6) : x, y: frame.y - 10, 'text-anchor': anchor }, text);
}

/** The addresses of the step, beside the map and to its scale. */
function drawCore(put, box, under, above) {
  const x = frame.core, top = frame.y, bottom = frame.y + frame.height;
  put(above, 'text', { class: 'axis', x: x + CORE_WIDTH, y: top - 10, 'text-anchor': 'end' }, `at step ${state.step}`);
  for (const i of liveAt(state.step)) {
    const body = drawn.bodyOf[i], item = scene.items[i], [fill, ink] = colours(item);
    const y = Math.max(top, py(body.offset + body.bytes)), end = Math.min(bottom, py(body.offset));
    if (end <= y) continue;
    box(under, 'value-core', x, y, CORE_WIDTH, end - y, { fill, 'data-item': i });
    const pattern = { staging: 'hatch', workspace: 'dots' }[item.kind];
    if (pattern) box(under, 'over', x, y, CORE_WIDTH, end - y, { fill: `url(#${pattern})` });
    box(under, `body ${item.kind}`, x, y, CORE_WIDTH, end - y);
    if (end - y < 14 || pattern) continue;
    const label = svgMake('text', { class: 'inside', x: x + 7, y: (y + end) / 2 + 4 }, cut(item.name, 21));
    label.style.fill = ink;
    under.append(label);
  }
}

function drawCursor(box, above, bottom) {
  const left = Math.max(frame.x, px(state.step)), right = Math.min(frame.x + frame.width, px(state.step + 1));
  if (right > left) box(above, 'cursor', left, frame.y, right - left, bottom - frame.y);
  if (state.chosen === null || !drawn.bodyOf[state.chosen]) return;
  const [from, to] = drawn.shown[state.chosen], body = drawn.bodyOf[state.chosen];
  const x = Math.max(frame.x, px(from)), end = Math.min(frame.x + frame.width, px(to));
  const y = Math.max(frame.y, py(body.offset + body.bytes)), floor = Math.min(frame.y + frame.height, py(body.offset));
  if (end > x && floor >= y) box(above, 'chosen', x - 1, y - 1, end - x + 2, floor - y + 2);
}

let waiting = false;
function refresh() {
  if (waiting) return;
  waiting = true;
  requestAnimationFrame(() => { waiting = false; measure(); render(); });
}

// ---- beside the map ----

function describe(i) {
  const item = scene.items[i], { layout } = drawn, lines = [];
  lines.push(`${item.op} ${item.shape}${item.layer === null ? '' : `, layer ${item.layer}`}`);
  lines.push(`${grouped(item.bytes)} bytes at offset ${grouped(layout.offsets[i])}`);
  lines.push(`live in step${item.live[1] - item.live[0] === 1 ? '' : 's'} ${rangeText(item.live)}`);
  if (item.kind === 'input') lines.push('pinned: filled before the first step');
  if (item.kind === 'output') lines.push('pinned: read after the last step');
  if (item.kind === 'staging') lines.push('the copy of a value on another backend');
  const over = layout.takes_over[i];
  if (over) lines.push(`in place of ${cut(scene.items[over.item].name, 80)}: ${over.why}`);
  return lines;
}

function showStep() {
  const step = scene.steps[state.step], live = liveAt(state.step);
  byId('step').value = state.step;
  byId('step-number').textContent = state.step;
  const name = step ? cut(step.name, 80) : 'no step';
  byId('step').setAttribute('aria-valuetext', step ? `step ${state.step}, ${name}` : name);
  const sum = drawn.live[state.step] || 0, share = Math.round((100 * sum) / Math.max(1, drawn.height));
  const bold = make('b', { id: 'live-sum' }, formatBytes(sum));
  byId('sum').replaceChildren(`${name}${step ? ` (${step.op})` : ''}`, make('br'), bold,
    ` live in ${live.length} place${live.length === 1 ? '' : 's'}: ${share} % of this arena's `,
    make('span', { id: 'height' }, formatBytes(drawn.height)));
  byId('live').replaceChildren(...live.map(row));
  markRow();
}

function row(i) {
  const item = scene.items[i], over = drawn.layout.takes_over[i];
  const swatch = make('span', { class: 'swatch', 'aria-hidden': 'true' });
  swatch.style.background = colours(item)[0];
  const button = make('button', { type: 'button' }, swatch, cut(item.name, 120));
  const note = [`${item.op} ${item.shape}`];
  if (item.kind !== 'value') note.push(item.kind);
  if (over) note.push(`in place of ${cut(scene.items[over.item].name, 60)}`);
  const element = make('tr', { 'data-item': i }, make('td', {}, button, make('small', {}, note.join(', '))),
    make('td', { title: `${grouped(item.bytes)} bytes` }, formatBytes(item.bytes)),
    make('td', {}, grouped(drawn.layout.offsets[i])), make('td', {}, rangeText(item.live)));
  element.addEventListener('pointerenter', () => choose(i));
  button.addEventListener('focus', () => choose(i));
  button.addEventListener('click', () => choose(i));
  return element;
}

function choose(i) {
  if (state.chosen === i) return;
  state.chosen = i;
  markRow();
  refresh();
}
function markRow() {
  for (const element of byId('live').children) {
    element.classList.toggle('chosen-row', Number(element.dataset.item) === state.chosen);
  }
}

function showBars() {
  const rows = owners.map((owner) => (owner.is_arena
    ? { ...owner, note: `${drawn.layout.strategy}, the map above`, bytes: drawn.layout.heights.reduce((a, b) => a + b, 0) }
    : owner));
  const longest = Math.max(1, ...rows.map((owner) => owner.bytes));
  byId('total').textContent = formatBytes(rows.reduce((sum, owner) => sum + owner.bytes, 0));
  byId('owners').replaceChildren(...rows.map((owner) => make('div', { class: owner.is_arena ? 'owner marked' : 'owner' },
    make('span', {}, `${owner.owner} `, make('small', {}, owner.note)),
    make('span', { title: `${grouped(owner.bytes)} bytes` }, formatBytes(owner.bytes)), trough(owner.bytes / longest))));
}
function trough(part) {
  const bar = make('i');
  bar.style.width = `${Math.min(100, 100 * part)}%`;
  return make('span', { class: 'trough', 'aria-hidden': 'true' }, bar);
}

function showChoices() {
  const figures = scene.arenas[state.arena];
  const order = [...scene.layouts.keys()].sort(
    (a, b) => ARRANGED.indexOf(scene.layouts[a].strategy) - ARRANGED.indexOf(scene.layouts[b].strategy));
  const longest = figures ? Math.max(1, figures.naive_bytes, figures.pool_bytes, figures.planned_bytes) : 1;
  choices('strategies', order, state.layout, (index) => {
    const layout = scene.layouts[index], bytes = layout.heights[state.arena] || 0;
    return [make('b', {}, layout.strategy), make('span', { class: 'bytes' }, formatBytes(bytes)), trough(bytes / longest)];
  }, (index) => { state.layout = index; });
  byId('arenas').hidden = scene.arenas.length < 2;
  choices('arenas', [...scene.arenas.keys()], state.arena, (index) => {
    const bytes = scene.layouts[state.layout].heights[index];
    return [make('b', {}, cut(scene.arenas[index].name, 16)), make('span', { class: 'bytes' }, formatBytes(bytes))];
  }, (index) => { state.arena = index; showChoices(); });
}

function choices(id, indices, chosen, label, choose) {
  byId(id).querySelector('.choices').replaceChildren(...indices.map((index) => {
    const input = make('input', { type: 'radio', name: id, value: index });
    input.checked = index === chosen;
    input.addEventListener('change', () => { choose(index); change(); });
    return make('label', { class: 'choice' }, input, ...label(index));
  }));
}

function showLegend() {
  const kinds = new Set(scene.items.map((item) => item.kind));
  const swatch = (fill, cls, pattern, extra) => {
    const svg = svgMake('svg', { width: 26, height: 16, 'aria-hidden': 'true' });
    const box = { x: 1, y: 1, width: 24, height: 14 };
    if (fill) svg.append(svgMake('rect', { ...box, fill }), svgMake('rect', { ...box, class: `body ${cls}` }));
    if (pattern) svg.insertBefore(svgMake('rect', { ...box, fill: `url(#${pattern})` }), svg.lastChild);
    if (extra) svg.append(extra);
    return svg;
  };
  const entries = [];
  const teal = (layers[Math.floor(layers.length / 2)] || noLayer)[0];
  if (layers.length) {
    const ramp = svgMake('svg', { width: 96, height: 14, 'aria-hidden': 'true' });
    layers.forEach(([fill], i) => ramp.append(
      svgMake('rect', { x: (96 * i) / layers.length, width: 96 / layers.length + 0.5, height: 14, fill })));
    entries.push([ramp, layers.length === 1 ? 'layer 0' : `layers 0 to ${layers.length - 1}`]);
  }
  entries.push([swatch(noLayer[0], 'value'), 'no layer'], [swatch(noLayer[0], 'input'), 'pinned (input, output)']);
  if (kinds.has('staging')) entries.push([swatch(teal, 'staging', 'hatch'), 'copy on another backend']);
  if (kinds.has('workspace')) entries.push([swatch(teal, 'workspace', 'dots'), 'workspace']);
  const arrow = svgMake('path', { class: 'mark', fill: '#fff', stroke: '#fff', d: 'M13 1v14M13 4l5 4l-5 4z' });
  entries.push([swatch(teal, 'value', null, arrow), 'in place: takes over the bytes']);
  const line = (cls, at) => svgMake('line', { class: cls, ...at });
  entries.push([swatch(null, '', null, line('bound', { x1: 1, x2: 25, y1: 8, y2: 8 })), 'lower bound']);
  entries.push([swatch(null, '', null, line('peak', { x1: 13, x2: 13, y1: 0, y2: 16 })), 'peak step']);
  byId('legend').replaceChildren(...entries.map(([picture, text]) => make('span', {}, picture, text)));
}

// ---- what the reader does ----

/** Another layout, arena or scale: everything is drawn anew. */
function change() {
  drawn = arrange();
  state.view = wholeView();
  if (!drawn.items.includes(state.chosen)) state.chosen = null;
  map.setAttribute('aria-label', `${scene.arenas[state.arena].name}, ${drawn.layout.strategy}: ` +
    `${formatBytes(drawn.height)} high, lower bound ${formatBytes(drawn.bound)}, ${drawn.items.length} values over ${nSteps} steps`);
  measure();
  build();
  showBars();
  goTo(state.step);
}

function goTo(step) {
  state.step = Math.max(0, Math.min(nSteps - 1, step));
  showStep();
  refresh();
}

/** Scales the view by a factor that keeps the point (step, bytes) where it is. */
function zoom(factorX, factorY, step, bytes) {
  const { x0, x1, y0, y1 } = state.view;
  const spanX = Math.max(Math.min(3, nSteps), (x1 - x0) * factorX), spanY = Math.max(64, (y1 - y0) * factorY);
  const partX = (step - x0) / (x1 - x0), partY = (bytes - y0) / (y1 - y0);
  setView(step - spanX * partX, spanX, bytes - spanY * partY, spanY);
}
function setView(x0, spanX, y0, spanY) {
  const whole = wholeView();
  spanX = Math.min(spanX, whole.x1);
  spanY = Math.min(spanY, whole.y1);
  x0 = Math.max(0, Math.min(whole.x1 - spanX, x0));
  y0 = Math.max(0, Math.min(whole.y1 - spanY, y0));
  state.view = { x0, x1: x0 + spanX, y0, y1: y0 + spanY };
  refresh();
}
function pan(steps, bytes) {
  const { x0, x1, y0, y1 } = state.view;
  setView(x0 + steps, x1 - x0, y0 + bytes, y1 - y0);
}
const zoomAtStep = (factor) => {
  const body = state.chosen === null ? null : drawn.bodyOf[state.chosen];
  const { y0, y1 } = state.view;
  zoom(factor, factor, state.step + 0.5, body ? body.offset + body.bytes / 2 : (y0 + y1) / 2);
};
const fit = () => { state.view = wholeView(); refresh(); };

/** The item at a point of the map or of the step's column; thin ones are found a few pixels off. */
function itemAt(x, y) {
  const inCore = x >= frame.core && x <= frame.core + CORE_WIDTH;
  if (y < frame.y || y > frame.y + frame.height || (!inCore && (x < frame.x || x > frame.x + frame.width))) return null;
  const step = inCore ? state.step : Math.floor(stepAt(x)), bytes = bytesAt(y);
  const perPixel = (state.view.y1 - state.view.y0) / frame.height;
  let best = null, least = 4 * perPixel;
  for (const i of liveAt(step)) {
    const { offset, bytes: length } = drawn.bodyOf[i];
    const away = Math.max(offset - bytes, bytes - offset - length, 0);
    if (away < least) { best = i; least = away; }
  }
  return best;
}

function point(event) {
  const box = map.getBoundingClientRect();
  return [event.clientX - box.left, event.clientY - box.top];
}

let grip = null; // where a drag began
map.addEventListener('pointerdown', (event) => {
  if (event.button !== 0) return;
  map.setPointerCapture?.(event.pointerId);
  const [x, y] = point(event);
  grip = { x, y, view: { ...state.view }, moved: false };
});
map.addEventListener('pointermove', (event) => {
  const [x, y] = point(event);
  if (grip) {
    grip.moved ||= Math.hypot(x - grip.x, y - grip.y) > 3;
    if (grip.moved) {
      map.classList.add('panning');
      const { x0, x1, y0, y1 } = grip.view;
      setView(x0 - ((x - grip.x) / frame.width) * (x1 - x0), x1 - x0, y0 + ((y - grip.y) / frame.height) * (y1 - y0), y1 - y0);
    }
    return hideTip();
  }
  const item = itemAt(x, y);
  if (item === null) return hideTip();
  choose(item);
  showTip(item, event.clientX, event.clientY);
});
map.addEventListener('pointerup', (event) => {
  const [x] = point(event);
  if (grip && !grip.moved && x >= frame.x && x <= frame.x + frame.width) goTo(Math.floor(stepAt(x)));
  release();
});
map.addEventListener('pointercancel', release);
map.addEventListener('pointerleave', hideTip);
function release() {
  grip = null;
  map.classList.remove('panning');
}

map.addEventListener('wheel', (event) => {
  event.preventDefault();
  const [x, y] = point(event);
  // With Shift some browsers turn the wheel sideways.
  const turn = (event.deltaY || event.deltaX) * (event.deltaMode === 1 ? 30 : 1);
  const factor = Math.exp(Math.max(-200, Math.min(200, turn)) * 0.002);
  zoom(event.altKey ? 1 : factor, event.shiftKey ? 1 : factor, stepAt(x), bytesAt(y));
}, { passive: false });

function showTip(i, x, y) {
  const tip = byId('tip');
  tip.replaceChildren(make('b', {}, cut(scene.items[i].name, 120)), '\n', describe(i).join('\n'));
  tip.hidden = false;
  const left = x + 16 + tip.offsetWidth > innerWidth ? x - tip.offsetWidth - 12 : x + 16;
  tip.style.left = `${Math.max(4, left)}px`;
  tip.style.top = `${Math.max(4, Math.min(y + 14, innerHeight - tip.offsetHeight - 6))}px`;
}
function hideTip() {
  byId('tip').hidden = true;
}

/** The next value up or down at this step; said through the map's label. */
function chooseNext(direction) {
  const live = liveAt(state.step);
  if (!live.length) return;
  const at = live.indexOf(state.chosen);
  const next = live[at < 0 ? 0 : (at + direction + live.length) % live.length];
  choose(next);
  const body = drawn.bodyOf[next], box = map.getBoundingClientRect();
  showTip(next, box.left + Math.min(px(state.step + 1), frame.x + frame.width), box.top + py(body.offset + body.bytes / 2));
  map.setAttribute('aria-label', [scene.items[next].name, ...describe(next)].join(', '));
}

map.addEventListener('keydown', (event) => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const { x0, x1, y0, y1 } = state.view, across = (x1 - x0) / 10, up = (y1 - y0) / 10;
  const moves = event.shiftKey
    ? { ArrowLeft: () => pan(-across, 0), ArrowRight: () => pan(across, 0), ArrowUp: () => pan(0, up), ArrowDown: () => pan(0, -up) }
    : { ArrowLeft: () => goTo(state.step - 1), ArrowRight: () => goTo(state.step + 1), ArrowUp: () => chooseNext(-1),
      ArrowDown: () => chooseNext(1), Home: () => goTo(0), End: () => goTo(nSteps - 1),
      PageUp: () => goTo(state.step - 10), PageDown: () => goTo(state.step + 10) };
  const others = { '+': () => zoomAtStep(0.7), '=': () => zoomAtStep(0.7), '-': () => zoomAtStep(1 / 0.7), 0: fit,
    p: () => goTo(drawn.peak), Escape: () => { hideTip(); state.chosen = null; markRow(); refresh(); } };
  const act = moves[event.key] || others[event.key];
  if (!act) return;
  event.preventDefault();
  act();
});

const on = (id, type, act) => byId(id).addEventListener(type, act);
on('step', 'input', () => goTo(Number(byId('step').value)));
on('step-back', 'click', () => goTo(state.step - 1));
on('step-on', 'click', () => goTo(state.step + 1));
on('step-peak', 'click', () => goTo(drawn.peak));
on('zoom-in', 'click', () => zoomAtStep(0.7));
on('zoom-out', 'click', () => zoomAtStep(1 / 0.7));
on('fit', 'click', fit);
on('same-scale', 'change', () => { state.sameScale = byId('same-scale').checked; change(); });
new ResizeObserver(refresh).observe(map);

if (scene.arenas.length && nSteps) {
  byId('step').max = nSteps - 1;
  byId('same-scale').parentElement.hidden = scene.layouts.length < 2;
  showChoices();
  showLegend();
  state.step = arrange().peak;
  change();
} else {
  byId('work').replaceChildren('No value of this plan is in an arena.');
}
