"use strict";
// The data of the page as columns: one lane for each device.
const D = JSON.parse(document.getElementById("data").textContent);

const FORMATS = {i1: Int8Array, i2: Int16Array, i4: Int32Array, u1: Uint8Array, u4: Uint32Array, f4: Float32Array, f8: Float64Array,
  i8: BigInt64Array, u8: BigUint64Array, c8: Float32Array, c16: Float64Array};

function bytesOf(text) {
  const letters = atob(text), bytes = new Uint8Array(letters.length);
  for (let i = 0; i < letters.length; i++) bytes[i] = letters.charCodeAt(i);
  return bytes;
}

const columnOf = packed => new FORMATS[packed.f](bytesOf(packed.b).buffer);
const product = extents => extents.reduce((a, b) => a * b, 1);

// The values, by number: an array has its elements in `raw`; a summary has `low`, `high`, `mean`, counts, and `cells` as
// 127ths of the largest; a tuple is a list.
const Values = {
  kind: columnOf(D.values.kind), bytes: bytesOf(D.values.bytes), made: new Map(),
  sizes: D.values.kinds.map(kind => kind.of != null ? 4 * kind.of : kind.c ? 40 + product(kind.c)
    : product(kind.d) * FORMATS[kind.f].BYTES_PER_ELEMENT * (kind.f[0] === "c" ? 2 : 1)),
  start() {
    D.values.bytes = null;
    this.at = new Float64Array(this.kind.length);
    for (let n = 0, at = 0; n < this.kind.length; n++) { this.at[n] = at; at += this.sizes[this.kind[n]]; }
    return this;
  },
  get(n) {
    if (n < 0) return null;
    if (!this.made.has(n)) this.made.set(n, this.make(D.values.kinds[this.kind[n]], this.at[n], this.sizes[this.kind[n]]));
    return this.made.get(n);
  },
  make(kind, at, size) {
    const buffer = this.bytes.slice(at, at + size).buffer;
    if (kind.of != null) return [...new Int32Array(buffer)].map(each => this.get(each));
    if (!kind.c) return {t: kind.t, d: kind.d, f: kind.f, raw: new FORMATS[kind.f](buffer)};
    const [low, high, mean, nans, infs] = new Float64Array(buffer, 0, 5);
    return {t: kind.t, d: kind.d, low, high, mean, nans, infs, columns: kind.c[1], cells: new Int8Array(buffer, 40)};
  },
}.start();

// The events of a device in order: at which spot, when, how long it had waited, with which value.
class Lane {
  constructor(data, device) {
    this.device = device;
    this.spots = columnOf(data.spots);
    this.values = columnOf(data.values);
    this.tables = columnOf(data.tables);
    this.waited = new Map(data.waits);
    this.state = D.stop ? D.stop.devices.find(each => each.device === device) || null : null;
    this.stuck = this.state && this.state.spot >= 0 ? this.spots.length : -1;
    if (this.stuck >= 0) this.stand();
    this.times = new Int32Array(this.spots.length);
    let time = 0;
    for (let i = 0; i < this.times.length; i++) this.times[i] = time += 1 + (this.waited.get(i) || 0);
    this.places = null;
  }
  // Adds the instruction at which the device stands, without a value, after the executed ones.
  stand() {
    for (const [name, last] of [["spots", this.state.spot], ["values", -1], ["tables", -1]]) {
      const grown = new Int32Array(this.stuck + 1);
      grown.set(this[name]);
      grown[this.stuck] = last;
      this[name] = grown;
    }
  }
  get length() { return this.times.length; }
  get end() { return this.length ? this.times[this.length - 1] : 0; }
  spot(i) { return D.spots[this.spots[i]]; }
  value(i) { return i >= 0 ? Values.get(this.values[i]) : null; }
  origins(i) { return this.tables[i] >= 0 ? D.tables[this.tables[i]] : null; }
  since(i) { return this.times[i] - (this.waited.get(i) || 0); }
  // The last event at or before a time; -1 where there is none.
  at(time) { return lastAtMost(this.times, time); }
  // The events at a spot, in order.
  of(spot) {
    if (!this.places) {
      this.places = new Map();
      this.spots.forEach((each, i) => { (this.places.get(each) || this.places.set(each, []).get(each)).push(i); });
    }
    return this.places.get(spot) || [];
  }
  // The event of a spot that comes last before another event.
  before(spot, i) {
    const places = this.of(spot), n = lastAtMost(places, i - 1);
    return n < 0 ? -1 : places[n];
  }
  // How often the device had been at the spot of an event before.
  turn(i) { return lastAtMost(this.of(this.spots[i]), i); }
  // The loops around an event, outermost first, each with its trip: a trip begins where the condition does.
  trips(i) {
    return this.spot(i).l.map(([name, condition, itself]) => {
      const began = this.of(condition), ended = this.of(itself), last = lastAtMost(ended, i - 1);
      return [name, Math.max(1, lastAtMost(began, i) - (last < 0 ? -1 : lastAtMost(began, ended[last] - 1)))];
    });
  }
  // The event of a spot that is nearest to a time.
  nearest(spot, time) {
    const places = this.of(spot);
    let best = -1;
    for (const i of places) if (best < 0 || Math.abs(this.times[i] - time) < Math.abs(this.times[best] - time)) best = i;
    return best;
  }
}

function lastAtMost(sorted, wanted) {
  let low = 0, high = sorted.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (sorted[middle] <= wanted) low = middle + 1; else high = middle;
  }
  return low - 1;
}

const lanes = D.lanes.map((lane, device) => new Lane(lane, device));
if (D.stop) D.end = Math.max(D.end, ...lanes.map(lane => lane.end));
const COMMUNICATES = new Set(["C", "S"]);

// `partners` has what an event waited for, `brought` the events of its operands, by device; a key is device:event.
const partners = new Map(), brought = new Map();
for (const [source, send, target, done, channel] of D.sends) {
  partners.set(`${target}:${done}`, {device: source, event: send, text: `${lanes[source].spot(send).n} of ${D.labels[source]}`});
  brought.set(`${target}:${done}`, new Map([[source, send]]));
  partners.set(`${source}:${send}`, {device: target, event: done, text: `the recv of channel ${channel} of ${D.labels[target]}`});
}
for (const meet of D.meets) {
  const came = meet.e.map(([device, i]) => [device, i ? lanes[device].times[i - 1] : 0]);
  const bringers = new Map(meet.e.map(([device, i], n) => [device, meet.b ? meet.b[n] : i]));
  for (const [device, i] of meet.e) brought.set(`${device}:${i}`, bringers);
  const last = came.reduce((a, b) => b[1] > a[1] ? b : a, came[0]);
  for (const [device, i] of meet.e) if (device !== last[0]) partners.set(`${device}:${i}`, {device: last[0], event: -1, text: `${D.labels[last[0]]} to reach ${meet.n}`});
}

const SVG = "http://www.w3.org/2000/svg";
function element(parent, name, attributes, text) {
  const made = document.createElementNS(SVG, name);
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  if (text != null) made.textContent = text;
  parent.append(made);
  return made;
}

function html(name, attributes, ...children) {
  const made = document.createElement(name);
  for (const key in attributes) {
    if (attributes[key] == null) continue;
    if (key === "on") made.addEventListener("click", attributes.on);
    else if (key === "style") made.style.cssText = attributes.style;
    else made.setAttribute(key, attributes[key]);
  }
  made.append(...children.filter(each => each != null));
  return made;
}

// The text of a report, in which devices are called replicas where each device is a replica.
const named = text => D.labels[0] === "replica 0" ? text.replace(/\bdevice(?=s? \d)/g, "replica") : text;

const byId = id => document.getElementById(id);
