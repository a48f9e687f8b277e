// A roofline: what a device can do at most, and where a layer is on it.

const TYPES = { bf16: 2, f32: 4 };

/** The cuts of x[B,D] @ w[D,F] over devices: the shapes on a device, and the bytes that its link carries. */
const CUTS = {
  data: { words: 'x by rows: each device has a part of the batch', shapes: ({ B, D, F, n }) => [B / n, D, F], sums: false },
  columns: { words: 'w by columns: each device computes some columns', shapes: ({ B, D, F, n }) => [B, D, F / n], sums: false },
  rows: { words: 'x by columns, w by rows: each device has a part of each sum', shapes: ({ B, D, F, n }) => [B, D / n, F], sums: true },
};

/** FLOPs, bytes of memory and bytes on a link of one device, and the seconds of each on its own. */
function figuresOf(cut, sizes, type, machine) {
  const [b, d, f] = CUTS[cut].shapes(sizes), size = TYPES[type];
  const flops = 2 * b * d * f, product = size * (b * d + d * f + b * f);
  const summed = CUTS[cut].sums && sizes.n > 1;
  const payload = size * b * f, link = summed ? Math.ceil(2 * (sizes.n - 1) * payload / sizes.n) : 0;
  // The sum reads and writes the array once more.
  const bytes = product + (summed ? 2 * payload : 0);
  const seconds = { compute: flops / machine.flops[type], memory: product / machine.memory, link: link / machine.link };
  const slowest = Object.keys(seconds).reduce((a, b) => (seconds[b] > seconds[a] ? b : a));
  return { shapes: [b, d, f], flops, bytes, product, link, seconds, slowest, intensity: flops / product };
}

// ----------------------------------------------------------------------------
// The page

const settings = new Settings(() => update());
const power = (name, label, least, most, start) => settings.range(name, label, least, most, start, exponent => `${2 ** exponent}`);
settings.choice('machine', 'device', Object.keys(DATA.devices).map(name => [name, name.toUpperCase()]), 'h100');
settings.choice('type', 'element type', Object.keys(TYPES).map(name => [name, name]), 'bf16');
settings.choice('cut', 'cut', Object.entries(CUTS).map(([name, each]) => [name, each.words.split(':')[0]]), 'columns');
power('B', 'batch B', 0, 16, 5);
power('D', 'rows of w, D', 6, 15, 13);
power('F', 'columns of w, F', 6, 16, 14);
power('n', 'devices', 0, 6, 3);

function state() {
  const { B, D, F, n, machine, type, cut } = settings.values;
  const sizes = { B: 2 ** B, D: 2 ** D, F: 2 ** F, n: 2 ** n };
  return { sizes, type, cut, machine: DATA.devices[machine], name: machine.toUpperCase() };
}

const LEFT = 70, BOTTOM = 330, WIDTH = 560, HEIGHT = 300, X = [-1, 5], Y = [9, 16.5];
const across = value => LEFT + (Math.log10(value) - X[0]) / (X[1] - X[0]) * WIDTH;
const up = value => BOTTOM - (Math.log10(value) - Y[0]) / (Y[1] - Y[0]) * HEIGHT;
const WORDS = { compute: 'its arithmetic', memory: 'its memory', link: 'its link' };

function update() {
  const now = state(), { sizes } = now;
  const cut = CUTS[now.cut].shapes(sizes).every(Number.isInteger) ? now.cut : 'columns';
  const figures = figuresOf(cut, sizes, now.type, now.machine);
  draw(now, figures, cut);
  const [b, d, f] = figures.shapes;
  const ridge = now.machine.flops[now.type] / now.machine.memory;
  byId('status').textContent = `Each of ${sizes.n} devices multiplies ${now.type}[${b},${d}] by ${now.type}[${d},${f}]: ` +
    `${short(figures.flops, 'FLOP')} for ${short(figures.product, 'B')}, ${Number(figures.intensity.toPrecision(3))} FLOP a byte. ` +
    `The ${now.name} needs ${Number(ridge.toPrecision(3))} to be busy, so the layer is bound by ${WORDS[figures.slowest]}.`;
  const cuts = Object.keys(CUTS).filter(each => CUTS[each].shapes(sizes).every(Number.isInteger));
  const rows = cuts.map(each => [each, figuresOf(each, sizes, now.type, now.machine)]);
  const time = each => Math.max(each.seconds.compute, each.seconds.memory) + each.seconds.link;
  const best = Math.min(...rows.map(([, each]) => time(each)));
  const head = element('tr', {}, ...['cut', 'compute', 'memory', 'link', 'time'].map(words => element('th', { scope: 'col' }, words)));
  const body = rows.map(([each, found]) => {
    const cells = [CUTS[each].words.split(':')[0], ...['compute', 'memory', 'link'].map(part => found.seconds[part] ? duration(found.seconds[part]) : '-'), duration(time(found))];
    const row = element('tr', {}, ...cells.map(words => element('td', {}, words)));
    row.className = `${each === cut ? 'chosen' : ''} ${time(found) === best ? 'best' : ''}`;
    row.dataset.name = each;
    return row;
  });
  byId('figures').replaceChildren(
    element('table', {}, element('thead', {}, head), element('tbody', {}, ...body)),
    element('p', {}, `${CUTS[cut].words}${figures.link ? ', so an all-reduce adds them up' : ''}. Arithmetic and memory overlap, so the longer counts; ` +
      'then comes the all-reduce, if there is one. The latency of its steps is left out.'));
}

function draw(now, figures, cut) {
  const svg = drawn('svg', { viewBox: '0 0 640 380', role: 'img', 'aria-labelledby': 'status' });
  for (let x = X[0]; x <= X[1]; x++) {
    svg.append(drawn('line', { class: 'grid', x1: across(10 ** x), x2: across(10 ** x), y1: BOTTOM, y2: BOTTOM - HEIGHT }));
    svg.append(drawn('text', { class: 'dim', x: across(10 ** x), y: BOTTOM + 14 }, `${x < 0 ? 0.1 : x === 5 ? '100 k' : 10 ** x}`));
  }
  for (let y = 9; y <= 16; y++) {
    svg.append(drawn('line', { class: 'grid', x1: LEFT, x2: LEFT + WIDTH, y1: up(10 ** y), y2: up(10 ** y) }));
    if (y % 3 === 0) svg.append(drawn('text', { class: 'dim', x: LEFT - 32, y: up(10 ** y) }, `${{ 9: '1 G', 12: '1 T', 15: '1 P' }[y]}FLOP/s`));
  }
  svg.append(drawn('text', { class: 'dim', x: LEFT + WIDTH / 2, y: BOTTOM + 34 }, 'FLOP for each byte of memory'));
  const peak = now.machine.flops[now.type], ridge = peak / now.machine.memory, least = 10 ** X[0];
  svg.append(drawn('polyline', { class: 'roof', points: [[least, least * now.machine.memory], [ridge, peak], [10 ** X[1], peak]].map(([x, y]) => `${across(x)},${up(y)}`).join(' ') }));
  svg.append(drawn('text', { class: 'dim', x: across(Math.sqrt(ridge * 10 ** X[1])), y: up(peak) - 11 }, `peak: ${short(peak, 'FLOP/s')}`));
  const slope = drawn('text', { class: 'dim', x: 0, y: 0 }, `memory: ${short(now.machine.memory, 'B/s')}`);
  const middle = Math.sqrt(least * ridge), angle = Math.atan2(HEIGHT / (Y[1] - Y[0]), WIDTH / (X[1] - X[0])) * 180 / Math.PI;
  slope.setAttribute('transform', `translate(${across(middle) - 7},${up(middle * now.machine.memory) - 9}) rotate(${-angle})`);
  svg.append(slope);
  const x = Math.min(figures.intensity, 10 ** X[1]), reached = Math.min(figures.intensity * now.machine.memory, peak);
  if (figures.link) {
    const slowed = figures.flops / (Math.max(figures.seconds.compute, figures.seconds.memory) + figures.seconds.link);
    svg.append(drawn('line', { class: 'fall', x1: across(x), x2: across(x), y1: up(reached), y2: up(slowed) }));
    svg.append(drawn('circle', { class: 'slowed', cx: across(x), cy: up(slowed), r: 6 }));
    svg.append(drawn('text', { class: 'dim', x: across(x), y: up(slowed) + 16 }, 'with its all-reduce'));
  }
  svg.append(drawn('circle', { class: 'moved', cx: across(x), cy: up(reached), r: 7 }));
  byId('stage').replaceChildren(svg);
}

update();
