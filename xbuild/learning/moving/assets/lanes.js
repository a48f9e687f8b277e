// Devices as lanes of meetings: a sum or a transfer ends when all its devices have reached it, so orders decide who waits.

const sum = (name, ...devices) => ({ name, kind: 'sum', devices });
const transfer = (name, from, to) => ({ name, kind: 'transfer', devices: [from, to] });

/** Small programs: their meetings, and for each device the order at the start, as numbers of meetings. */
const PROGRAMS = {
  sums: { words: 'two sums', meetings: [sum('loss', 0, 1), sum('norm', 0, 1)], orders: [[0, 1], [1, 0]] },
  swap: { words: 'two devices swap values', meetings: [transfer('x', 0, 1), transfer('y', 1, 0)], orders: [[0, 1], [1, 0]] },
  ring: { words: 'a ring of three', meetings: [transfer('a', 0, 1), transfer('b', 1, 2), transfer('c', 2, 0)], orders: [[0, 2], [1, 0], [2, 1]] },
  groups: { words: 'groups that overlap', meetings: [sum('left', 0, 1), sum('right', 1, 2), sum('ends', 0, 2)], orders: [[0, 2], [1, 0], [2, 1]] },
  pipeline: {
    words: 'a pipeline of two stages, two microbatches',
    meetings: [transfer('forward 1', 0, 1), transfer('forward 2', 0, 1), transfer('backward 1', 1, 0), transfer('backward 2', 1, 0)],
    orders: [[0, 1, 2, 3], [0, 2, 1, 3]],
  },
};

/** How a program runs: the meetings in the order in which they end, the places at which devices stop, and a cycle of waits. */
function run(meetings, orders) {
  const next = orders.map(() => 0), ended = [];
  const at = device => orders[device][next[device]];
  for (let moves = true; moves;) {
    moves = false;
    meetings.forEach((meeting, number) => {
      if (ended.includes(number) || !meeting.devices.every(device => at(device) === number)) return;
      meeting.devices.forEach(device => next[device]++);
      ended.push(number);
      moves = true;
    });
  }
  const stuck = orders.map((order, device) => next[device] < order.length);
  const waitsFor = device => meetings[at(device)].devices.find(other => stuck[other] && at(other) !== at(device));
  const cycle = [];
  let device = stuck.indexOf(true);
  if (device >= 0) {
    const seen = [];
    while (!seen.includes(device)) { seen.push(device); device = waitsFor(device); }
    cycle.push(...seen.slice(seen.indexOf(device)));
  }
  return { ended, next, stuck, cycle };
}

// ----------------------------------------------------------------------------
// The page

const settings = new Settings(name => { if (name === 'program') begin(); update(); });
settings.choice('program', 'program', Object.entries(PROGRAMS).map(([name, each]) => [name, each.words]), 'sums');
const again = element('button', { type: 'button' }, 'Start again');
byId('controls').append(again);
again.addEventListener('click', () => { begin(); update(); });

let orders = [];
function begin() { orders = PROGRAMS[settings.values.program].orders.map(order => [...order]); }

const WIDTH = 900, TOP = 40, HEIGHT = 46, GAP = 14;
const cardWidth = () => Math.min(210, (WIDTH - 20) / orders.length - 60);
const laneAt = device => 10 + (device + 0.5) * (WIDTH - 20) / orders.length;
const rowAt = place => TOP + place * (HEIGHT + GAP);

function labelOf(meeting, device) {
  if (meeting.kind === 'sum') return `sum ${meeting.name} over ${meeting.devices.join(', ')}`;
  const [from, to] = meeting.devices;
  return device === from ? `send ${meeting.name} to ${to}` : `recv ${meeting.name} from ${from}`;
}

function update() {
  const { meetings } = PROGRAMS[settings.values.program], found = run(meetings, orders);
  const rows = Math.max(...orders.map(order => order.length)), width = cardWidth();
  const svg = drawn('svg', { viewBox: `0 0 ${WIDTH} ${rowAt(rows) + 6}`, role: 'group', 'aria-label': 'the devices' });
  orders.forEach((order, device) => {
    svg.append(drawn('text', { x: laneAt(device), y: 18 }, `device ${device}`));
    order.forEach((number, place) => svg.append(card(meetings[number], device, place, found, width)));
  });
  found.cycle.forEach((device, index) => {
    const other = found.cycle[(index + 1) % found.cycle.length], number = orders[device][found.next[device]];
    svg.append(wait(device, found.next[device], other, orders[other].indexOf(number), width));
  });
  const focused = document.activeElement && document.activeElement.dataset && document.activeElement.dataset.card;
  byId('stage').replaceChildren(svg);
  if (focused) svg.querySelector(`[data-card="${focused}"]`)?.focus();
  tell(meetings, found);
}

function card(meeting, device, place, found, width) {
  const state = place < found.next[device] ? 'done' : place === found.next[device] ? (found.stuck[device] ? 'waits' : 'done') : 'later';
  const group = drawn('g', {
    class: `lane-card ${state}`, tabindex: 0, role: 'button', 'data-card': `${device} ${meeting.name}`,
    'aria-label': `device ${device}, place ${place + 1}: ${labelOf(meeting, device)}, ${{ done: 'ends', waits: 'waits', later: 'is never reached' }[state]}. Arrow keys move it.`,
  });
  const x = laneAt(device) - width / 2, y = rowAt(place);
  group.append(drawn('rect', { x, y, width, height: HEIGHT, rx: 7 }));
  group.append(drawn('text', { x: laneAt(device), y: y + HEIGHT / 2 }, labelOf(meeting, device)));
  group.addEventListener('keydown', event => {
    const way = { ArrowUp: -1, ArrowDown: 1 }[event.key];
    if (!way) return;
    event.preventDefault();
    moveCard(device, place, place + way);
  });
  group.addEventListener('pointerdown', event => drag(event, group, device, place));
  return group;
}

function moveCard(device, from, to) {
  const order = orders[device];
  if (to < 0 || to >= order.length || to === from) return update();
  order.splice(to, 0, order.splice(from, 1)[0]);
  update();
}

function drag(event, group, device, place) {
  event.preventDefault();
  group.focus();
  const svg = group.ownerSVGElement, scale = WIDTH / svg.getBoundingClientRect().width, began = event.clientY;
  let moved = 0;
  const follow = next => {
    moved = (next.clientY - began) * scale;
    group.setAttribute('transform', `translate(0,${moved})`);
  };
  const drop = () => {
    removeEventListener('pointermove', follow);
    removeEventListener('pointerup', drop);
    removeEventListener('pointercancel', drop);
    const last = orders[device].length - 1;
    moveCard(device, place, Math.max(0, Math.min(last, place + Math.round(moved / (HEIGHT + GAP)))));
  };
  addEventListener('pointermove', follow);
  addEventListener('pointerup', drop);
  addEventListener('pointercancel', drop);
}

/** An arrow from a card that waits to the card of the same meeting on another device. */
function wait(from, place, to, toPlace, width) {
  const side = to > from ? 1 : -1, x1 = laneAt(from) + side * width / 2, x2 = laneAt(to) - side * (width / 2 + 4);
  const y1 = rowAt(place) + HEIGHT / 2, y2 = rowAt(toPlace) + HEIGHT / 2;
  const group = drawn('g', { class: 'wait' });
  group.append(drawn('line', { x1, y1, x2, y2 }));
  const turn = Math.atan2(y2 - y1, x2 - x1) * 180 / Math.PI;
  group.append(drawn('path', { d: 'M0 0L-11 -5L-11 5Z', transform: `translate(${x2},${y2}) rotate(${turn})` }));
  return group;
}

function tell(meetings, found) {
  if (!found.stuck.includes(true)) {
    byId('status').textContent = `The program runs to its end: ${found.ended.map(number => meetings[number].name).join(', then ')}.`;
    return;
  }
  const waits = found.cycle.map((device, index) => {
    const other = found.cycle[(index + 1) % found.cycle.length], at = device_ => meetings[orders[device_][found.next[device_]]].name;
    return `device ${device} stops at ${at(device)} and waits for device ${other}, which stops at ${at(other)}`;
  });
  byId('status').textContent = `Deadlock: ${waits.join('; ')}.`;
}

begin();
update();
