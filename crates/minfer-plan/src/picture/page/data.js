// What there is to show. Takes the JSON in #data (see html.rs and scene.rs); gives the state of the page, and which items
// are live when. Text reaches the page as text nodes only, never as markup.
'use strict';

const { scene, layers, no_layer: noLayer, owners } = JSON.parse(document.getElementById('data').textContent);
const byId = (id) => document.getElementById(id);
const map = byId('map');
const nSteps = scene.steps.length;
const ARRANGED = ['naive', 'pool', 'planned'];
const PATTERNED = ['staging', 'workspace']; // no text is legible on these
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
