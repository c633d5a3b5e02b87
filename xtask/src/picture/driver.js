// Uses the page of a plan as a reader would and writes one line per check into #result: `ok ...` or `FAIL ...`, then `end`.
// Sees the page's own `scene` and `state`; `problems` are the errors seen since the page began.
(async () => {
  const lines = [];
  const check = (what, held, seen = '') => lines.push(held ? `ok ${what}` : `FAIL ${what} ${seen}`);
  const find = (selector) => document.querySelector(selector);
  const text = (selector) => find(selector).textContent;
  const frames = () => new Promise((done) => requestAnimationFrame(() => requestAnimationFrame(done)));
  const fire = async (target, event) => { target.dispatchEvent(event); await frames(); };
  const pointer = (type, x, y) => new PointerEvent(type, { clientX: x, clientY: y, bubbles: true, button: 0, pointerId: 1 });
  const key = (name, more = {}) => new KeyboardEvent('keydown', { key: name, bubbles: true, cancelable: true, ...more });
  const middle = (element) => {
    const box = element.getBoundingClientRect();
    return [box.left + box.width / 2, box.top + box.height / 2];
  };
  const pick = async (group, label) => {
    const choices = [...document.querySelectorAll(`#${group} label`)];
    choices.find((choice) => choice.textContent.startsWith(label)).querySelector('input').click();
    await frames();
  };
  const rects = () => [...document.querySelectorAll('#items rect.value')];
  const largest = () => rects().sort((a, b) => area(b) - area(a))[0];
  const area = (rect) => rect.getAttribute('width') * rect.getAttribute('height');

  try {
    await frames();
    check('nothing is loaded', performance.getEntriesByType('resource').length === 0);
    await pick('arenas', 'cpu');
    const inArena = scene.items.filter((item) => scene.arenas[item.arena].name === 'cpu').length;
    check('one rectangle per value', rects().length === inArena, `${rects().length} of ${inArena}`);
    check('a copy is hatched', scene.items.some((item) => item.kind === 'staging') && find('#items rect.is-staging') !== null);

    const rect = largest(), name = scene.items[rect.dataset.item].name, [x, y] = middle(rect);
    await fire(document.elementFromPoint(x, y), pointer('pointermove', x, y));
    check('hover shows the name', !find('#tip').hidden && text('#tip b') === name, text('#tip'));
    check('hover shows op, bytes, live range and offset', /bytes at offset[^]*live in step/.test(text('#tip')));

    const slide = async (step) => { find('#step').value = step; await fire(find('#step'), new Event('input', { bubbles: true })); };
    await slide(0);
    const atStart = text('#live-sum'), rowsAtStart = find('#live').children.length;
    find('#step-peak').click();
    await frames();
    check('the slider changes the sum', atStart !== text('#live-sum'), atStart);
    check('the slider changes the values', rowsAtStart > 0 && find('#live').children.length > rowsAtStart);
    const bound = scene.arenas[state.arena].lower_bound_bytes;
    check('the peak is the lower bound', text('#live-sum') === formatBytes(bound), text('#live-sum'));

    const heights = {};
    for (const strategy of ['naive', 'pool', 'planned']) {
      await pick('strategies', strategy);
      heights[strategy] = scene.layouts[state.layout].heights[state.arena];
      check(`the switch shows ${strategy}`, text('#height') === formatBytes(heights[strategy]), text('#height'));
    }
    check('the switch changes the height', heights.naive > heights.pool && heights.pool > heights.planned);
    const before = largest().getAttribute('height');
    find('#same-scale').click();
    await frames();
    check('one scale makes the smaller placement lower', largest().getAttribute('height') < before / 2);
    find('#same-scale').click();
    await frames();

    const width = () => Number(largest().getAttribute('width'));
    const whole = width(), [wx, wy] = middle(largest());
    await fire(find('#map'), new WheelEvent('wheel', { clientX: wx, clientY: wy, deltaY: -200, bubbles: true, cancelable: true }));
    check('the wheel zooms', width() > whole * 1.2, `${whole} ${width()}`);
    const view = { ...state.view };
    await fire(find('#map'), pointer('pointerdown', wx, wy));
    await fire(find('#map'), pointer('pointermove', wx + 40, wy - 30));
    await fire(find('#map'), pointer('pointerup', wx + 40, wy - 30));
    check('a drag pans', state.view.x0 < view.x0 && state.view.y0 < view.y0, JSON.stringify([view, state.view]));
    find('#fit').click();
    await frames();
    check('fit shows all', Math.abs(width() - whole) < 0.01);

    find('#map').focus();
    check('the map takes the focus', document.activeElement === find('#map'));
    await slide(3);
    await fire(find('#map'), key('ArrowRight'));
    check('a key steps', text('#step-number') === '4', text('#step-number'));
    await fire(find('#map'), key('ArrowDown'));
    check('a key chooses a value and says it', !find('#tip').hidden && text('#said').includes('bytes at offset'));
    check('the chosen row is marked', find('tr.chosen-row') !== null);
    await fire(find('#map'), key('+'));
    check('a key zooms', width() > whole);
    await fire(find('#map'), key('0'));
    await fire(find('#map'), key('Escape'));
    check('escape puts the tooltip away', find('#tip').hidden);

    const unnamed = [...document.querySelectorAll('input, button, svg[tabindex]')].filter(
      (element) => !element.ariaLabel && !element.textContent && !element.closest('label'));
    check('every control has a name', unnamed.length === 0, unnamed.map((element) => element.outerHTML).join(' '));
    await slide(0);
    check('names are text, never markup', typeof hacked === 'undefined' && !find('#live img, #live script, #tip img, h1 *'));
    check('a hostile name is shown as it is', text('h1').includes('</scr' + 'ipt>'));
    await pick('arenas', 'gpu');
    check('the other arena is drawn', find('#map').ariaLabel.startsWith('gpu') && rects().length > 0, find('#map').ariaLabel);
  } catch (error) {
    lines.push(`FAIL the driver stopped: ${error.stack}`);
  }
  check('no errors', problems.length === 0, problems.join('; '));
  const result = document.createElement('pre');
  result.id = 'result';
  result.textContent = `${lines.join('\n').replaceAll('<', '‹')}\nend\n`;
  document.body.append(result);
})();
