// An all-reduce as messages: each algorithm is a list of steps, each step a list of messages, and all figures follow from them.

/** A message: device `from` sends chunks to device `to`, which adds them to its own or replaces its own. */
const message = (from, to, chunks, adds) => ({ from, to, chunks, adds });
const count = (number, make) => Array.from({ length: number }, (_, index) => make(index));
const modulo = (number, size) => ((number % size) + size) % size;

/** A ring over `members`: the first phase leaves the sum of part p on member p - 1, the second passes the sums on. */
function ringPhase(members, parts, adds) {
  const size = members.length;
  return count(size - 1, step => members.map((from, place) =>
    message(from, members[modulo(place + 1, size)], parts[modulo(place - step + (adds ? 0 : 1), size)], adds)));
}

/** Steps of several groups at the same time. */
const together = groups => groups[0].map((_, step) => groups.flatMap(steps => steps[step]));

const ALGORITHMS = {
  ring: {
    words: 'ring',
    fits: () => true,
    chunks: n => n,
    steps(n) {
      const members = count(n, i => i), parts = members.map(i => [i]);
      return [...ringPhase(members, parts, true), ...ringPhase(members, parts, false)];
    },
  },
  'halving-doubling': {
    words: 'halving and doubling',
    fits: n => (n & (n - 1)) === 0,
    chunks: n => n,
    steps(n) {
      const halving = [];
      for (let far = n / 2; far >= 1; far /= 2) {
        // A device keeps the chunks whose numbers agree with its own in the bits that were halved.
        halving.push(count(n, from => {
          const to = from ^ far;
          const sent = count(n, chunk => chunk).filter(chunk =>
            Math.floor(chunk / far / 2) === Math.floor(from / far / 2) && ((chunk & far) === (to & far)));
          return message(from, to, sent, true);
        }));
      }
      const doubling = halving.slice().reverse().map(step => step.map(each => message(each.to, each.from, each.chunks, false)));
      return [...halving, ...doubling];
    },
  },
  tree: {
    words: 'binomial tree',
    fits: () => true,
    chunks: () => 1,
    steps(n) {
      const up = [];
      for (let far = 1; far < n; far *= 2) {
        up.push(count(n, i => i).filter(i => i % (2 * far) === far).map(i => message(i, i - far, [0], true)));
      }
      return [...up, ...up.slice().reverse().map(step => step.map(each => message(each.to, each.from, each.chunks, false)))];
    },
  },
  hierarchical: {
    words: 'hierarchical',
    fits: (n, node) => node > 1 && node < n,
    chunks: n => n,
    steps(n, node) {
      const nodes = n / node;
      const inside = count(nodes, each => count(node, i => each * node + i));
      const shares = count(node, share => count(nodes, part => share * nodes + part));
      const across = count(node, i => count(nodes, each => each * node + i));
      // After the ring inside its node, member i holds share i + 1, in as many parts as there are nodes.
      const held = across.map((_, i) => shares[modulo(i + 1, node)].map(part => [part]));
      return [
        ...together(inside.map(members => ringPhase(members, shares, true))),
        ...together(across.map((members, i) => [...ringPhase(members, held[i], true), ...ringPhase(members, held[i], false)])),
        ...together(inside.map(members => ringPhase(members, shares, false))),
      ];
    },
  },
};

/** Whether a step crosses between nodes. */
const crosses = (step, node) => step.some(each => Math.floor(each.from / node) !== Math.floor(each.to / node));

/** The link that carries all steps of a flat algorithm: between nodes, all ports of a node work in parallel. */
function flatLink(machine, n, node) {
  if (node >= n) return machine.inside;
  return { alpha: machine.network.alpha, bandwidth: Math.min(machine.network.bandwidth * node, machine.inside.bandwidth) };
}

/** Steps, bytes on the longest path, bytes of all messages, and seconds of an algorithm. */
function figuresOf(name, n, node, bytes, machine) {
  const algorithm = ALGORITHMS[name], steps = algorithm.steps(n, node), chunk = bytes / algorithm.chunks(n);
  let path = 0, total = 0, seconds = 0;
  for (const step of steps) {
    const sent = Math.max(...step.map(each => each.chunks.length)) * chunk;
    const link = name !== 'hierarchical' ? flatLink(machine, n, node) : crosses(step, node) ? machine.network : machine.inside;
    path += sent;
    total += step.reduce((sum, each) => sum + each.chunks.length, 0) * chunk;
    seconds += link.alpha + sent / link.bandwidth;
  }
  return { steps: steps.length, path, total, seconds };
}

/** The devices whose arrays each chunk of each device contains after some steps, as bits. */
function contents(steps, n, chunks, done) {
  const held = count(n, device => count(chunks, () => 1 << device));
  for (const step of steps.slice(0, done)) {
    const sent = step.map(each => each.chunks.map(chunk => held[each.from][chunk]));
    step.forEach((each, index) => each.chunks.forEach((chunk, place) => {
      held[each.to][chunk] = each.adds ? held[each.to][chunk] | sent[index][place] : sent[index][place];
    }));
  }
  return held;
}

// ----------------------------------------------------------------------------
// The page

const divisors = n => count(n, i => i + 1).filter(i => n % i === 0);
const bits = mask => { let found = 0; for (; mask; mask &= mask - 1) found++; return found; };
const settings = new Settings(name => update(name));
let playing = null, svg = null, moved = [];

function state() {
  const { n, machine, algorithm } = settings.values;
  const node = divisors(n)[Math.min(settings.values.node, divisors(n).length - 1)];
  const bytes = Math.round(2 ** settings.values.size) * 4;
  const fitting = Object.keys(ALGORITHMS).filter(name => ALGORITHMS[name].fits(n, node));
  const name = fitting.includes(algorithm) ? algorithm : 'ring';
  const steps = ALGORITHMS[name].steps(n, node);
  return { n, node, bytes, fitting, name, steps, machine: DATA.machines[machine], chunks: ALGORITHMS[name].chunks(n) };
}

settings.choice('algorithm', 'algorithm', Object.entries(ALGORITHMS).map(([name, each]) => [name, each.words]), 'ring');
settings.range('n', 'devices', 2, 16, 8, n => `${n}`);
settings.range('node', 'devices in a node', 0, 4, 3, place => {
  const found = divisors(settings.values.n);
  return `${found[Math.min(place, found.length - 1)]}`;
});
settings.range('size', 'array', 0, 30, 20, power => short(Math.round(2 ** power) * 4, 'B'));
settings.choice('machine', 'links of', Object.keys(DATA.machines).map(name => [name, name.toUpperCase()]), 'h100');
settings.range('step', 'step', 0, 14, 0, step => `${step}`);
const play = element('button', { type: 'button', id: 'play' }, 'Play');
byId('controls').append(play);
play.addEventListener('click', () => (playing ? pause() : start()));

function update(name) {
  if (name !== 'step') pause();
  const now = state();
  settings.limit('node', divisors(now.n).length - 1);
  settings.limit('step', now.steps.length);
  if (name !== 'step' && name !== 'size' && name !== 'machine') settings.set('step', 0);
  for (const option of settings.inputs.algorithm.input.options) option.disabled = !now.fitting.includes(option.value);
  if (settings.values.algorithm !== now.name) settings.set('algorithm', now.name);
  draw(now, settings.values.step);
  tell(now, settings.values.step);
  tabulate(now);
}

/** The place of a device on the circle; devices of one node stand together. */
function place(now, device) {
  const nodes = now.n / now.node, gap = nodes > 1 && now.node > 1 ? 0.35 : 0;
  const slots = now.n + gap * nodes;
  const turn = ((device + gap * Math.floor(device / now.node)) / slots) * 2 * Math.PI - Math.PI / 2;
  return { x: 320 + 235 * Math.cos(turn), y: 300 + 235 * Math.sin(turn), turn };
}

function draw(now, done) {
  svg = drawn('svg', { viewBox: '0 0 640 600', role: 'img', 'aria-labelledby': 'status' });
  const held = contents(now.steps, now.n, now.chunks, done), step = now.steps[done] || [];
  if (now.node > 1 && now.node < now.n) {
    for (let node = 0; node < now.n / now.node; node++) {
      const from = place(now, node * now.node).turn - 0.17, to = place(now, (node + 1) * now.node - 1).turn + 0.17;
      const at = (radius, turn) => `${320 + radius * Math.cos(turn)} ${300 + radius * Math.sin(turn)}`;
      const large = to - from > Math.PI ? 1 : 0;
      svg.append(drawn('path', { class: 'node', d: `M${at(292, from)}A292 292 0 ${large} 1 ${at(292, to)}L${at(178, to)}A178 178 0 ${large} 0 ${at(178, from)}Z` }));
    }
  }
  moved = step.map(each => {
    const from = place(now, each.from), to = place(now, each.to);
    const near = spot => ({ x: 320 + (spot.x - 320) * 0.8, y: 300 + (spot.y - 300) * 0.8 });
    const [a, b] = [near(from), near(to)];
    svg.append(drawn('line', { class: 'arrow', x1: a.x, y1: a.y, x2: b.x, y2: b.y }));
    const dot = drawn('circle', { class: 'moved', r: 3 + 6 * Math.sqrt(each.chunks.length / now.chunks) });
    return { a, b, dot };
  });
  const cell = Math.min(24, (now.n > 10 ? 76 : 100) / now.chunks), width = cell * now.chunks;
  for (let device = 0; device < now.n; device++) {
    const at = place(now, device);
    svg.append(drawn('text', { x: at.x, y: at.y - 14 }, `${device}`));
    held[device].forEach((mask, chunk) => {
      const share = bits(mask) / now.n;
      const box = drawn('rect', {
        class: share === 1 ? 'cell whole' : 'cell part', 'fill-opacity': share === 1 ? 1 : share,
        x: at.x - width / 2 + chunk * cell, y: at.y - 5, width: cell, height: 24,
      });
      box.append(drawn('title', {}, `device ${device}, chunk ${chunk}: the sum of ${bits(mask)} of ${now.n} arrays`));
      svg.append(box);
    });
  }
  moved.forEach(({ dot }) => svg.append(dot));
  svg.append(drawn('text', { class: 'dim', x: 320, y: 292 }, `${done} of ${now.steps.length} steps`));
  svg.append(drawn('text', { class: 'dim', x: 320, y: 310 }, 'blue: a sum of some arrays; green: of all'));
  move(0);
  byId('stage').replaceChildren(svg);
}

/** Put the moving chunks at a share of their way. */
function move(share) {
  for (const { a, b, dot } of moved) {
    dot.setAttribute('cx', a.x + (b.x - a.x) * share);
    dot.setAttribute('cy', a.y + (b.y - a.y) * share);
  }
}

function tell(now, done) {
  const step = now.steps[done];
  if (!step) {
    byId('status').textContent = `After ${now.steps.length} steps, every device has the sum of all ${now.n} arrays.`;
    return;
  }
  const first = step[0], sent = first.chunks.length * now.bytes / now.chunks;
  const which = now.chunks === 1 ? 'the whole array' : first.chunks.length === 1 ? `chunk ${first.chunks[0]}` : `${first.chunks.length} chunks`;
  const where = now.node < now.n && crosses(step, now.node) ? ' Some messages go between nodes.' : '';
  byId('status').textContent = `Step ${done + 1} of ${now.steps.length}: ${step.length === 1 ? 'one device sends' : `${step.length} devices send at the same time`}. ` +
    `Device ${first.from} sends ${which} (${short(sent, 'B')}) to device ${first.to}, which ${first.adds ? 'adds it to its own' : 'keeps it instead of its own'}.${where}`;
}

function tabulate(now) {
  const rows = now.fitting.map(name => [name, figuresOf(name, now.n, now.node, now.bytes, now.machine)]);
  const best = Math.min(...rows.map(([, figures]) => figures.seconds));
  const head = element('tr', {}, ...['algorithm', 'steps', 'longest path', 'all', 'time'].map(words => element('th', { scope: 'col' }, words)));
  const body = rows.map(([name, figures]) => {
    const cells = [ALGORITHMS[name].words, figures.steps, short(figures.path, 'B'), short(figures.total, 'B'), duration(figures.seconds)];
    const row = element('tr', {}, ...cells.map(words => element('td', {}, `${words}`)));
    row.className = `${name === now.name ? 'chosen' : ''} ${figures.seconds === best ? 'best' : ''}`;
    row.dataset.name = name;
    return row;
  });
  const link = now.machine, fast = `${duration(link.inside.alpha)} a step, ${short(link.inside.bandwidth, 'B/s')}`;
  const slow = `${duration(link.network.alpha)} a step, ${short(link.network.bandwidth, 'B/s')} for each device`;
  byId('figures').replaceChildren(
    element('table', {}, element('thead', {}, head), element('tbody', {}, ...body)),
    element('p', {}, 'The longest path is the bytes that are sent one after another; "all" counts every message. The time is the latency of each step, ' +
      `and the bytes of the longest path over a link. Inside a node: ${fast}.` + (now.node < now.n ? ` Between nodes: ${slow}.` : '') +
      (now.name === 'hierarchical' ? ' Hierarchical: each node reduces and scatters, devices of equal place reduce between nodes, and each node gathers.' : '')));
}

const MILLISECONDS = 900;

function start() {
  if (settings.values.step >= state().steps.length) { settings.set('step', 0); update('step'); }
  play.textContent = 'Pause';
  if (matchMedia('(prefers-reduced-motion: reduce)').matches) {
    playing = { timer: setInterval(forward, MILLISECONDS) };
    return;
  }
  playing = { began: null };
  const tick = time => {
    if (!playing) return;
    playing.began ??= time;
    const share = (time - playing.began) / MILLISECONDS;
    if (share >= 1) { playing.began = time; forward(); } else move(share);
    if (playing) playing.frame = requestAnimationFrame(tick);
  };
  playing.frame = requestAnimationFrame(tick);
}

function forward() {
  settings.set('step', settings.values.step + 1);
  update('step');
  if (settings.values.step >= state().steps.length) pause();
}

function pause() {
  if (!playing) return;
  clearInterval(playing.timer);
  cancelAnimationFrame(playing.frame);
  playing = null;
  play.textContent = 'Play';
}

update('step');
