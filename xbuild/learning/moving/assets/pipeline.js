// Pipelines as orders: each schedule gives every stage its order of passes, and a simulation gives all figures.

const count = (number, make) => Array.from({ length: number }, (_, index) => make(index));

/** A pass of one microbatch through one chunk of the layers: `F` forward, `B` backward, `W` the gradient of weights. */
const pass = (kind, microbatch, chunk = 0) => ({ kind, microbatch, chunk });

/** Microbatches in rounds of as many as there are stages; in each round, chunk after chunk. */
function interleaved(number, stages, chunks, isForward) {
  const within = number % (stages * chunks), round = Math.floor(number / (stages * chunks));
  const chunk = Math.floor(within / stages);
  return pass(isForward ? 'F' : 'B', round * stages + within % stages, isForward ? chunk : chunks - 1 - chunk);
}

/** The first forward passes, then forward and backward passes in turn, then the backward passes that are left. */
function inTurn(total, ahead, forward, backward) {
  const first = Math.min(ahead, total);
  return [
    ...count(first, forward),
    ...count(total - first, i => [forward(first + i), backward(i)]).flat(),
    ...count(first, i => backward(total - first + i)),
  ];
}

const SCHEDULES = {
  gpipe: {
    words: 'GPipe',
    fits: () => true,
    orders: (p, m) => count(p, () => [...count(m, i => pass('F', i)), ...count(m, i => pass('B', i))]),
  },
  '1f1b': {
    words: '1F1B',
    fits: () => true,
    orders: (p, m) => count(p, stage => inTurn(m, p - stage - 1, i => pass('F', i), i => pass('B', i))),
  },
  interleaved: {
    words: 'interleaved 1F1B',
    fits: (p, m, chunks) => chunks > 1 && m % p === 0,
    orders: (p, m, chunks) => count(p, stage => inTurn(m * chunks, 2 * (p - stage - 1) + (chunks - 1) * p,
      i => interleaved(i, p, chunks, true), i => interleaved(i, p, chunks, false))),
  },
  'zero-bubble': {
    words: 'zero bubble (ZB-H1)',
    fits: () => true,
    orders: (p, m) => zeroBubble(p, m),
  },
};

/** How long a pass takes, in forward passes of a whole stage; a backward pass has two parts of the same length. */
const lengthOf = (each, name, chunks) =>
  (each.kind === 'B' && name !== 'zero-bubble' ? 2 : 1) / (name === 'interleaved' ? chunks : 1);

/**
 * ZB-H1: 1F1B whose stage s computes the gradients of weights s microbatches later, so that no backward pass waits for
 * them. Each stage holds at most p activations. Source: P. Qi et al., Zero Bubble Pipeline Parallelism (2023), section 2.
 */
const zeroBubble = (p, m) => count(p, stage => {
  const order = inTurn(m, p - stage - 1, i => pass('F', i), i => pass('B', i)), late = [];
  const delayed = order.flatMap(each => {
    if (each.kind === 'B') late.push(pass('W', each.microbatch));
    return each.kind === 'B' && late.length > stage ? [each, late.shift()] : [each];
  });
  return [...delayed, ...late];
});

/** When each pass begins and ends, if a pass waits for the pass before it in the chain of chunks; messages take no time. */
function simulate(name, p, m, chunks) {
  const orders = SCHEDULES[name].orders(p, m, chunks), parts = name === 'interleaved' ? chunks : 1, last = p * parts - 1;
  const ends = new Map(), next = orders.map(() => 0), free = orders.map(() => 0), passes = [];
  const key = (kind, place, microbatch) => `${kind} ${place} ${microbatch}`;
  for (let moves = true; moves;) {
    moves = false;
    orders.forEach((order, stage) => {
      for (; next[stage] < order.length; next[stage]++) {
        const each = order[next[stage]], place = each.chunk * p + stage;
        const needs = [];
        if (each.kind === 'F' && place > 0) needs.push(key('F', place - 1, each.microbatch));
        if (each.kind === 'B') needs.push(place < last ? key('B', place + 1, each.microbatch) : key('F', place, each.microbatch));
        if (!needs.every(need => ends.has(need))) return;
        const begin = Math.max(free[stage], ...needs.map(need => ends.get(need)));
        free[stage] = begin + lengthOf(each, name, chunks);
        ends.set(key(each.kind, place, each.microbatch), free[stage]);
        passes.push({ ...each, stage, begin, end: free[stage] });
        moves = true;
      }
    });
  }
  return { orders, passes, isStuck: orders.some((order, stage) => next[stage] < order.length) };
}

/** The time, the share of it in which stages wait, and the most activations that a stage holds (in whole stages). */
function figuresOf(name, p, m, chunks) {
  const { orders, passes } = simulate(name, p, m, chunks);
  const time = Math.max(...passes.map(each => each.end)), busy = passes.reduce((sum, each) => sum + each.end - each.begin, 0);
  const held = Math.max(...orders.map(order => {
    let now = 0, most = 0;
    for (const each of order) {
      if (each.kind === 'F') most = Math.max(most, ++now);
      if (each.kind === (name === 'zero-bubble' ? 'W' : 'B')) now--;
    }
    return most;
  }));
  return { time, waits: 1 - busy / (p * time), held: held / (name === 'interleaved' ? chunks : 1) };
}

// ----------------------------------------------------------------------------
// The page

const settings = new Settings(name => update(name));
let playing = null;

settings.choice('schedule', 'schedule', Object.entries(SCHEDULES).map(([name, each]) => [name, each.words]), '1f1b');
settings.range('p', 'stages', 2, 8, 4, p => `${p}`);
settings.range('m', 'microbatches', 1, 16, 8, m => `${m}`);
settings.range('chunks', 'chunks of a stage', 1, 4, 2, chunks => `${chunks}`);
settings.range('time', 'time', 0, 400, 400, time => `${time / 4}`);
const play = element('button', { type: 'button', id: 'play' }, 'Play');
byId('controls').append(play);
play.addEventListener('click', () => (playing ? pause() : start()));

function state() {
  const { schedule, p, m, chunks } = settings.values;
  const fitting = Object.keys(SCHEDULES).filter(name => SCHEDULES[name].fits(p, m, chunks));
  const name = fitting.includes(schedule) ? schedule : '1f1b';
  return { name, p, m, chunks, fitting };
}

/** Quarters of a unit of time, the steps of the slider. */
const quarters = time => Math.ceil(time * 4 - 1e-9);

function update(name) {
  const now = state();
  if (name !== 'time') {
    pause();
    const time = quarters(figuresOf(now.name, now.p, now.m, now.chunks).time);
    settings.limit('time', time);
    settings.set('time', time);
    for (const option of settings.inputs.schedule.input.options) option.disabled = !now.fitting.includes(option.value);
    if (settings.values.schedule !== now.name) settings.set('schedule', now.name);
    tabulate(now);
    draw(now);
  }
  show(settings.values.time / 4);
  tell(now);
}

function draw(now) {
  const { passes } = simulate(now.name, now.p, now.m, now.chunks), time = Math.max(...passes.map(each => each.end));
  const left = 62, height = 34, unit = (900 - left - 6) / time;
  const svg = drawn('svg', { viewBox: `0 0 900 ${now.p * height + 30}`, role: 'img', 'aria-labelledby': 'status' });
  for (let stage = 0; stage < now.p; stage++) {
    svg.append(drawn('text', { x: 30, y: stage * height + 17 }, `stage ${stage}`));
    svg.append(drawn('rect', { class: 'idle', x: left, y: stage * height + 2, width: time * unit, height: height - 6 }));
  }
  for (const each of passes) {
    const group = drawn('g', { class: `pass ${each.kind} ${each.chunk % 2 ? 'odd' : ''}` });
    const width = (each.end - each.begin) * unit;
    group.append(drawn('rect', { x: left + each.begin * unit, y: each.stage * height + 2, width: Math.max(width - 1, 0.5), height: height - 6, rx: 2 }));
    if (width > 13) group.append(drawn('text', { x: left + (each.begin + each.end) / 2 * unit, y: each.stage * height + 17 }, `${each.microbatch + 1}`));
    const what = { F: 'forward', B: 'backward', W: 'gradient of weights' }[each.kind];
    group.append(drawn('title', {}, `stage ${each.stage}: ${what}, microbatch ${each.microbatch + 1}, chunk ${each.chunk + 1}, from ${Number(each.begin.toFixed(2))} to ${Number(each.end.toFixed(2))}`));
    group.begin = each.begin;
    svg.append(group);
  }
  svg.cursor = drawn('line', { class: 'cursor', y1: 0, y2: now.p * height });
  svg.append(svg.cursor);
  const words = now.name === 'zero-bubble' ? 'numbers are microbatches; light green: gradients of weights' : 'blue: forward; green: backward; numbers are microbatches';
  svg.append(drawn('text', { class: 'dim', x: 450, y: now.p * height + 14 }, words + '; grey: the stage waits'));
  svg.place = at => left + at * unit;
  byId('stage').replaceChildren(svg);
}

/** Show the passes that have begun at a time. */
function show(time) {
  const svg = byId('stage').firstElementChild;
  const at = svg.place(time);
  svg.cursor.setAttribute('x1', at);
  svg.cursor.setAttribute('x2', at);
  for (const group of svg.querySelectorAll('.pass')) group.classList.toggle('later', group.begin >= time - 1e-9);
}

function tell(now) {
  const figures = figuresOf(now.name, now.p, now.m, now.chunks), share = Number((figures.waits * 100).toFixed(1));
  const waited = figures.time * now.p * figures.waits;
  byId('status').textContent = `${now.m} microbatches on ${now.p} stages take ${Number(figures.time.toFixed(2))} forward passes of a stage. ` +
    `Stages wait ${share} % of the time (${Number(waited.toFixed(2))} passes in all). ` +
    `A stage holds the activations of at most ${Number(figures.held.toFixed(2))} microbatches.`;
}

function tabulate(now) {
  const rows = now.fitting.map(name => [name, figuresOf(name, now.p, now.m, now.chunks)]);
  const best = Math.min(...rows.map(([, figures]) => figures.time));
  const head = element('tr', {}, ...['schedule', 'activations', 'waits', 'time'].map(words => element('th', { scope: 'col' }, words)));
  const body = rows.map(([name, figures]) => {
    const cells = [SCHEDULES[name].words, Number(figures.held.toFixed(2)), `${Number((figures.waits * 100).toFixed(1))} %`, Number(figures.time.toFixed(2))];
    const row = element('tr', {}, ...cells.map(words => element('td', {}, `${words}`)));
    row.className = `${name === now.name ? 'chosen' : ''} ${figures.time === best ? 'best' : ''}`;
    row.dataset.name = name;
    return row;
  });
  const left = Object.keys(SCHEDULES).filter(name => !now.fitting.includes(name)).length
    ? ' The interleaved schedule needs two chunks or more, and microbatches in multiples of the stages.' : '';
  byId('figures').replaceChildren(
    element('table', {}, element('thead', {}, head), element('tbody', {}, ...body)),
    element('p', {}, 'The unit of time is a forward pass of a stage; a backward pass takes two, and messages take none. "Activations" is the most ' +
      'microbatches whose activations a stage holds at once.' + left));
}

const UNITS_A_SECOND = 4;

function start() {
  const end = Number(settings.inputs.time.input.max);
  if (settings.values.time >= end) settings.set('time', 0);
  play.textContent = 'Pause';
  const began = { time: null, at: settings.values.time / 4 };
  playing = {};
  const tick = time => {
    if (!playing) return;
    began.time ??= time;
    const now = began.at + (time - began.time) / 1000 * UNITS_A_SECOND;
    if (now * 4 >= end) {
      settings.set('time', end);
      show(end / 4);
      pause();
      return;
    }
    settings.inputs.time.input.value = Math.floor(now * 4);
    settings.inputs.time.show();
    show(now);
    playing.frame = requestAnimationFrame(tick);
  };
  playing.frame = requestAnimationFrame(tick);
}

function pause() {
  if (!playing) return;
  cancelAnimationFrame(playing.frame);
  playing = null;
  settings.keep();
  play.textContent = 'Play';
}

update('schedule');
