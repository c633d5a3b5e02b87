// What the reader does: switches, steps, zoom, pan, hover, keys. Begins the page.

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

/** The next value up or down at this step; said to a screen reader. */
function chooseNext(direction) {
  const live = liveAt(state.step);
  if (!live.length) return;
  const at = live.indexOf(state.chosen);
  const next = live[at < 0 ? 0 : (at + direction + live.length) % live.length];
  choose(next);
  const body = drawn.bodyOf[next], box = map.getBoundingClientRect();
  showTip(next, box.left + Math.min(px(state.step + 1), frame.x + frame.width), box.top + py(body.offset + body.bytes / 2));
  byId('said').textContent = [scene.items[next].name, ...describe(next)].join(', ');
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
