// What stands beside the map: tooltips' text, the values of one step, bars, switches, the legend.

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
    ? { ...owner, note: `${owner.note}: ${drawn.layout.strategy}`, bytes: drawn.layout.heights.reduce((a, b) => a + b, 0) }
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
  const swatch = (fill, kind, extra) => {
    const svg = svgMake('svg', { width: 26, height: 16, 'aria-hidden': 'true' });
    const box = { x: 1, y: 1, width: 24, height: 14 };
    if (fill) svg.append(svgMake('rect', { ...box, fill }), svgMake('rect', { ...box, class: 'body' }));
    if (kind) svg.append(svgMake('rect', { ...box, class: `over is-${kind}` }));
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
  entries.push([swatch(noLayer[0]), 'no layer'], [swatch(noLayer[0], 'input'), 'pinned (input, output)']);
  if (kinds.has('staging')) entries.push([swatch(teal, 'staging'), 'copy on another backend']);
  if (kinds.has('workspace')) entries.push([swatch(teal, 'workspace'), 'workspace']);
  const arrow = svgMake('path', { class: 'mark', fill: '#fff', stroke: '#fff', d: 'M13 1v14M13 4l5 4l-5 4z' });
  entries.push([swatch(teal, null, arrow), 'in place: takes over the bytes']);
  const line = (cls, at) => svgMake('line', { class: cls, ...at });
  entries.push([swatch(null, null, line('bound', { x1: 1, x2: 25, y1: 8, y2: 8 })), 'lower bound']);
  entries.push([swatch(null, null, line('peak', { x1: 13, x2: 13, y1: 0, y2: 16 })), 'peak step']);
  byId('legend').replaceChildren(...entries.map(([picture, text]) => make('span', {}, picture, text)));
}
