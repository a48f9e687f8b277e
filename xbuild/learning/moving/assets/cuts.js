// A product C = A B over devices: how each array is cut, and which collectives follow for each way to split the work.

const SIZE = 4; // bytes of an f32
const LAYOUTS = { whole: 'whole on each device', rows: 'by rows', columns: 'by columns' };

/** The ways to split the work: the cut of A and B that each needs, and that of C which it leaves; `sum`: a part of each sum. */
const WAYS = {
  M: { words: 'the rows of C', A: 'rows', B: 'whole', C: 'rows' },
  N: { words: 'the columns of C', A: 'whole', B: 'columns', C: 'columns' },
  K: { words: 'the terms of each sum', A: 'columns', B: 'rows', C: 'sum' },
  none: { words: 'nothing', A: 'whole', B: 'whole', C: 'whole' },
};

/** The collective that takes an array of some bytes from one layout to another, and the bytes on the link of a device. */
function moveOf(from, to, bytes, n) {
  const part = (n - 1) * bytes / n;
  if (from === to || n === 1) return { name: '', link: 0 };
  if (from === 'sum') return to === 'whole' ? { name: 'all-reduce', link: Math.ceil(2 * part) } : { name: 'reduce-scatter', link: Math.ceil(part) };
  if (from === 'whole') return { name: '', link: 0 }; // each device keeps its part
  return to === 'whole' ? { name: 'all-gather', link: Math.ceil(part) } : { name: 'all-to-all', link: Math.ceil(part / n) };
}

/** Whether an array has the cut by which the work is split: the partitioner considers no others. */
const isHad = (way, cuts) => ['A', 'B', 'C'].some(array => cuts[array] !== 'whole' && WAYS[way][array] === cuts[array]);

/** For each way that an array suggests: the collectives, the bytes on a link, and the FLOPs of a device. */
function waysOf(cuts, sizes) {
  const { M, K, N, n } = sizes, bytes = { A: SIZE * M * K, B: SIZE * K * N, C: SIZE * M * N };
  return Object.entries(WAYS).filter(([way]) => way === 'none' || isHad(way, cuts)).map(([way, each]) => {
    const moves = {
      A: moveOf(cuts.A, each.A, bytes.A, n), B: moveOf(cuts.B, each.B, bytes.B, n), C: moveOf(each.C, cuts.C, bytes.C, n),
    };
    const link = moves.A.link + moves.B.link + moves.C.link;
    return { way, moves, link, flops: 2 * M * K * N / (way === 'none' ? 1 : n) };
  });
}

/** The way with the fewest bytes; of several, the one with the fewest FLOPs. */
const bestOf = ways => ways.reduce((a, b) => (b.link < a.link || (b.link === a.link && b.flops < a.flops) ? b : a));

// ----------------------------------------------------------------------------
// The page

const settings = new Settings(() => update());
for (const array of ['A', 'B', 'C']) settings.choice(array, `cut of ${array}`, Object.entries(LAYOUTS), { A: 'rows', B: 'columns', C: 'rows' }[array]);
const power = (name, label, least, most, start) => settings.range(name, label, least, most, start, exponent => `${2 ** exponent}`);
power('M', 'rows of A, M', 4, 14, 9);
power('K', 'columns of A, K', 4, 14, 11);
power('N', 'columns of B, N', 4, 14, 11);
power('n', 'devices', 1, 4, 2);
settings.choice('machine', 'links of', Object.keys(DATA.devices).map(name => [name, name.toUpperCase()]), 'v5e');

function state() {
  const { A, B, C, M, K, N, n, machine } = settings.values;
  return { cuts: { A, B, C }, sizes: { M: 2 ** M, K: 2 ** K, N: 2 ** N, n: 2 ** n }, machine: DATA.devices[machine] };
}

function update() {
  const { cuts, sizes, machine } = state(), ways = waysOf(cuts, sizes), best = bestOf(ways);
  draw(cuts, sizes, best);
  const said = Object.entries(best.moves).filter(([, move]) => move.name).map(([array, move]) => `${move.name} of ${array} (${short(move.link, 'B')})`);
  byId('status').textContent = `The fewest bytes move if the devices split ${WAYS[best.way].words}${best.way === 'none' ? ' and each computes all of C' : ''}: ` +
    (said.length ? `${said.join(', then ')}. Each device sends ${short(best.link, 'B')}, which takes ${duration(best.link / machine.link)}.` : 'no collective.');
  const head = element('tr', {}, ...['the devices split', 'A', 'B', 'C', 'sent', 'FLOP'].map(words => element('th', { scope: 'col' }, words)));
  const body = ways.map(each => {
    const cells = [WAYS[each.way].words, ...['A', 'B', 'C'].map(array => each.moves[array].name || '-'), each.link ? short(each.link, 'B') : '0', short(each.flops, '')];
    const row = element('tr', {}, ...cells.map(words => element('td', {}, words)));
    row.className = each === best ? 'chosen' : '';
    row.dataset.name = each.way;
    return row;
  });
  byId('figures').replaceChildren(
    element('table', {}, element('thead', {}, head), element('tbody', {}, ...body)),
    element('p', {}, '"Sent" is what each device sends, and "FLOP" what it computes. A device that has a whole array takes a part of it for free. ' +
      'As in xb.shard, the devices split the work by a cut that one of the arrays has, or not at all. Latency is left out.'));
}

/** A matrix with its cut lines; the part of device 0 is filled. A click changes its cut. */
function matrix(svg, name, layout, rows, columns, x, y, width, height, n) {
  const group = drawn('g', { class: 'matrix', tabindex: -1 });
  group.append(drawn('rect', { class: 'cell', x, y, width, height }));
  const own = layout === 'rows' ? [width, height / n] : layout === 'columns' ? [width / n, height] : [width, height];
  group.append(drawn('rect', { class: 'own', x, y, width: own[0], height: own[1] }));
  for (let part = 1; part < n && layout !== 'whole'; part++) {
    const at = layout === 'rows' ? y + height * part / n : x + width * part / n;
    group.append(drawn('line', layout === 'rows' ? { class: 'cut', x1: x, x2: x + width, y1: at, y2: at } : { class: 'cut', x1: at, x2: at, y1: y, y2: y + height }));
  }
  group.append(drawn('text', { x: x + width / 2, y: y - 12 }, `${name}  f32[${rows},${columns}]`));
  group.append(drawn('title', {}, `${name} is ${LAYOUTS[layout]}: click to cut it in another way`));
  const turn = () => {
    const names = Object.keys(LAYOUTS);
    settings.set(name, names[(names.indexOf(settings.values[name]) + 1) % names.length]);
    update();
  };
  group.addEventListener('click', turn);
  svg.append(group);
}

function draw(cuts, { M, K, N, n }, best) {
  const svg = drawn('svg', { viewBox: '0 0 640 340', role: 'img', 'aria-labelledby': 'status' });
  const length = extent => 60 + 13 * Math.log2(extent / 16) * 0.9;
  const [m, k, l] = [length(M), length(K), length(N)], gap = 40;
  const scale = Math.min(1, 560 / (k + 2 * l + 2 * gap), 260 / Math.max(m, k));
  const [mm, kk, ll] = [m * scale, k * scale, l * scale];
  let x = (640 - kk - 2 * ll - 2 * gap) / 2;
  const top = height => 170 - height / 2;
  matrix(svg, 'A', cuts.A, M, K, x, top(mm), kk, mm, n);
  svg.append(drawn('text', { x: x + kk + gap / 2, y: 170 }, '×'));
  x += kk + gap;
  matrix(svg, 'B', cuts.B, K, N, x, top(kk), ll, kk, n);
  svg.append(drawn('text', { x: x + ll + gap / 2, y: 170 }, '='));
  x += ll + gap;
  matrix(svg, 'C', cuts.C, M, N, x, top(mm), ll, mm, n);
  svg.append(drawn('text', { class: 'dim', x: 320, y: 330 }, 'filled: the part of device 0. Click a matrix to cut it in another way.'));
  byId('stage').replaceChildren(svg);
}

update();
