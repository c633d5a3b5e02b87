// The map. Takes the state and what is arranged; gives the picture in #map, drawn anew for every view.

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
    if (item.kind !== 'value') elements.over = svgMake('rect', { class: `over is-${item.kind}` });
    if (drawn.bodyOf[i].first === i) elements.body = svgMake('rect', { class: 'body' });
    else elements.mark = svgMake('path', { class: 'mark', fill: ink, stroke: ink });
    nodes.set(i, elements);
  }
  for (const { body, over, mark } of nodes.values()) items.append(...[body, over, mark].filter(Boolean));
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
  if (height < 14 || room < 72 || !inView || PATTERNED.includes(scene.items[i].kind)) return;
  const text = cut(scene.items[i].name, Math.floor((room - 16) / 6.4));
  const at = Math.max(frame.y + 13, Math.min(frame.y + frame.height - 5, y + height / 2 + 4));
  const label = svgMake('text', { class: 'inside', x: left + 10, y: at }, text);
  label.style.fill = colours(scene.items[i])[1];
  inside.append(label);
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
  for (const step of ticks(x0, Math.min(x1, nSteps), 13, 10)) {
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
  const near = Math.abs(py(bound) - py(height)) < 16; // then the bound is named at the right end
  const level = (bytes, cls, textClass, text) => {
    const y = py(bytes);
    if (!inView(y)) return;
    put(above, 'line', { class: cls, x1: frame.x, x2: frame.core + CORE_WIDTH, y1: y, y2: y });
    const at = near && cls === 'bound' && height !== bound ? { x: right - 8, 'text-anchor': 'end' } : { x: frame.x + 8 };
    put(above, 'text', { class: textClass, y: y - 6, ...at }, text);
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
    box(under, 'body', x, y, CORE_WIDTH, end - y);
    if (item.kind !== 'value') box(under, `over is-${item.kind}`, x, y, CORE_WIDTH, end - y);
    if (end - y < 14 || PATTERNED.includes(item.kind)) continue;
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
