'use strict';
// Controls that pictures share: labelled inputs whose state is in the address, and units for figures.

const DATA = JSON.parse(document.getElementById('data').textContent);
const byId = id => document.getElementById(id);

/** An element with attributes and children. */
function element(name, attributes = {}, ...children) {
  const made = document.createElement(name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.append(...children);
  return made;
}

/** An element of a drawing. */
function drawn(name, attributes = {}, text = '') {
  const made = document.createElementNS('http://www.w3.org/2000/svg', name);
  for (const [key, value] of Object.entries(attributes)) made.setAttribute(key, value);
  made.textContent = text;
  return made;
}

/** A number with a decimal prefix, in three digits: `1.5 MB`. */
function short(number, unit) {
  const prefixes = ['', 'k', 'M', 'G', 'T'];
  let place = 0;
  while (number >= 999.5 && place < prefixes.length - 1) { number /= 1000; place++; }
  return `${Number(number.toPrecision(3))} ${prefixes[place]}${unit}`;
}

/** A time: `12.3 µs`. */
function duration(seconds) {
  const [factor, unit] = seconds < 1e-3 ? [1e6, 'µs'] : seconds < 1 ? [1e3, 'ms'] : [1, 's'];
  return `${Number((seconds * factor).toPrecision(3))} ${unit}`;
}

/** The values of the controls by name. `changed(name)` is called after each change, and once at the start. */
class Settings {
  constructor(changed) {
    this.values = {};
    this.inputs = {};
    this.changed = changed;
    this.given = new URLSearchParams(location.hash.slice(1));
  }

  /** A slider over positions; `shown` turns a position into words. */
  range(name, label, least, most, start, shown) {
    const input = element('input', { type: 'range', min: least, max: most, step: 1, id: name });
    const output = element('output', { for: name });
    input.value = this.read(name, start);
    const row = element('label', { class: 'control' }, element('span', {}, `${label}: `, output), input);
    this.inputs[name] = { input, row, show: () => {
      this.values[name] = Number(input.value);
      output.textContent = shown(this.values[name]);
      input.setAttribute('aria-valuetext', output.textContent);
    } };
    this.enter(name, 'input');
  }

  /** A list to choose from: pairs of a value and its words. */
  choice(name, label, options, start) {
    const input = element('select', { id: name }, ...options.map(([value, words]) => element('option', { value }, words)));
    const given = this.read(name, start);
    input.value = options.some(([value]) => value === given) ? given : start;
    const row = element('label', { class: 'control' }, element('span', {}, label), input);
    this.inputs[name] = { input, row, show: () => { this.values[name] = input.value; } };
    this.enter(name, 'change');
  }

  read(name, start) {
    return this.given.has(name) ? this.given.get(name) : String(start);
  }

  enter(name, event) {
    const { input, row, show } = this.inputs[name];
    byId('controls').append(row);
    show();
    input.addEventListener(event, () => { show(); this.keep(); this.changed(name); });
  }

  /** Set a value as a reader would, without a call of `changed`. */
  set(name, value) {
    const { input, show } = this.inputs[name];
    input.value = value;
    show();
    this.keep();
  }

  /** Change the largest position of a slider. */
  limit(name, most) {
    this.inputs[name].input.max = most;
    this.inputs[name].show();
  }

  keep() {
    try {
      history.replaceState(null, '', '#' + new URLSearchParams(this.values));
    } catch { /* a page in a frame without an address of its own keeps nothing */ }
  }
}
