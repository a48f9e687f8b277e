// Display of values: numbers of small arrays, colours of all elements, summaries of large arrays.
const decoded = new Map();

// The elements of a value that the page holds in full; null for other values.
function elementsOf(value) {
  if (!value || !value.f) return null;
  if (!decoded.has(value)) {
    const raw = value.raw, found = [], single = value.f === "c8" || value.f === "f4";
    if (value.f[0] === "c") for (let i = 0; i < raw.length; i += 2)
      found.push({text: `${number(raw[i], single)}${raw[i + 1] < 0 ? "" : "+"}${number(raw[i + 1], single)}i`, size: Math.hypot(raw[i], raw[i + 1])});
    else for (const each of raw) found.push({text: value.t === "pred" ? (each ? "true" : "false") : typeof each === "bigint" ? String(each) : number(each, single), size: Number(each)});
    decoded.set(value, found);
  }
  return decoded.get(value);
}

// Whether two values have the same bits; null where the page has not all of them.
function same(one, other) {
  if (one === other) return true;
  if (Array.isArray(one)) { const each = one.map((part, n) => same(part, other[n])); return each.includes(false) ? false : each.includes(null) ? null : true; }
  if (!one || !other || !one.f || !other.f) return null;
  const a = new Uint8Array(one.raw.buffer), b = new Uint8Array(other.raw.buffer);
  return a.every((each, n) => each === b[n]);
}

// The shortest text that reads back as the same number.
function number(value, single) {
  if (!Number.isFinite(value)) return Number.isNaN(value) ? "NaN" : value > 0 ? "inf" : "-inf";
  if (Object.is(value, -0)) return "-0";
  if (!single || Number.isInteger(value)) return shorter(String(value));
  for (let digits = 1; digits <= 9; digits++) {
    const text = value.toPrecision(digits);
    if (Math.fround(Number(text)) === value) return shorter(String(Number(text)));
  }
  return String(value);
}

const shorter = text => text.replace("e+", "e");

// A number as text of about seven letters at most.
function brief(text) {
  const value = Number(text), size = Math.abs(value);
  if (text.length <= 4 || !Number.isFinite(size) || (text.length <= 6 && Number.isInteger(value))) return text;
  if (size && (size >= 1e5 || size < 1e-3)) return shorter(value.toExponential(1));
  return String(Number(value.toPrecision(size >= 1000 ? 4 : size < .1 ? 2 : 3)));
}

// The colour of a number among others: blue above zero, brown below.
function tint(size, most) {
  if (!Number.isFinite(size) || !most) return "transparent";
  const share = Math.round(8 + 46 * Math.min(1, Math.abs(size) / most));
  return `color-mix(in srgb, var(--${size < 0 ? "low" : "high"}) ${size === 0 ? 3 : share}%, transparent)`;
}

// The width for values that stand side by side, in pixels.
const room = () => Math.max(150, (Sizes.side || 480) - 38);

// Whether a value is a vector that is displayed in several rows.
const isFolded = value => !!value && !!value.f && value.d.filter(extent => extent !== 1).length === 1 && product(value.d) > 8 && product(value.d) <= 128;

// The number of elements in a displayed row: the last extent above 1, or eight for a folded vector.
const columnsOf = value => isFolded(value) ? 8 : value && value.d ? value.d.filter(extent => extent !== 1).pop() || 1 : 1;

// The arrays of a value, which may be a tuple.
const partsOf = value => Array.isArray(value) ? value.flatMap(partsOf) : [value];

// Whether a value takes a whole row of the panel.
const isWide = value => partsOf(value).some(each => each && each.f && (columnsOf(each) > 8 || isFolded(each)));

const shapeOf = value => Array.isArray(value) ? `tuple of ${value.length}` : value ? `${value.t}[${value.d.join(",")}]` : "";

function indexOf(flat, dims) {
  const found = [];
  for (let axis = dims.length - 1; axis >= 0; axis--) { found.unshift(flat % dims[axis]); flat = Math.floor(flat / dims[axis]); }
  return `[${found.join(",")}]`;
}

// Of more than MANY elements of a tuple, or operands, FEW are shown at a time.
const MANY = 12, FEW = 3;

// The number of the first element of a tuple that is shown.
const firstOf = value => value.length > MANY ? Math.min(Side.first, value.length - FEW) : 0;

function moreOf(value, first) {
  const box = html("input", {type: "number", min: 0, max: value.length - FEW, value: first, "aria-label": "first element shown"});
  box.addEventListener("change", () => { if (box.value !== "") { Side.first = Math.max(0, Math.round(Number(box.value)) || 0); Side.draw(); } });
  return html("p", {class: "more"}, `${FEW} of ${value.length} elements, from element `, box);
}

// A value as an element of the page; `lit` are numbers of elements to mark, `chosen` is one by part and index,
// `choose` is called with the index of one that is clicked, and of a tuple with its part; `padding` says of an element
// whether it is padding, and `within` is the width in pixels that there is.
function showValue(value, {lit = null, chosen = null, choose = null, padding = null, within = room()} = {}) {
  if (value == null) return html("p", {class: "more"}, "not stored");
  if (Array.isArray(value)) {
    const first = firstOf(value), parts = value.slice(first, value.length > MANY ? first + FEW : MANY).map((each, place) => { const n = first + place; return each ? html("div", {}, html("p", {class: "more"}, `element ${n}: ${shapeOf(each)}`), showValue(each, {chosen: chosen && chosen.part === n ? {part: null, index: chosen.index} : null, choose: choose && (index => choose(index, n))})) : null; });
    return parts.some(Boolean) ? html("div", {}, ...parts.filter(Boolean), value.length > MANY ? moreOf(value, first) : null) : html("p", {class: "more"}, "no numbers: a token, or a value in transit");
  }
  const elements = elementsOf(value);
  return elements ? grid(value, elements, lit, chosen && chosen.part == null ? chosen.index : null, choose, padding, within) : summarised(value);
}

function grid(value, elements, lit, chosen, choose, padding, within) {
  const dims = value.d, wide = dims.filter(extent => extent !== 1), columns = columnsOf(value);
  if (!elements.length) return html("p", {class: "more"}, "no elements");
  const finite = elements.map(each => Math.abs(each.size)).filter(Number.isFinite), most = Math.max(0, ...finite), tiny = columns * 44 > within + 8 || elements.length > 160;
  const host = html("div", {class: "grid m", style: `grid-template-columns:repeat(${columns},minmax(0,1fr))`});
  const fold = wide.length > 2 ? columns * wide[wide.length - 2] : 0;
  elements.forEach((each, flat) => {
    const empty = padding && padding(flat), cell = html("div", {class: `cell${empty ? " padding" : ""}${tiny ? " tiny" : ""}${lit && lit.has(flat) ? " lit" : ""}${flat === chosen ? " chosen" : ""}${Number.isFinite(each.size) || each.text === "true" || empty ? "" : " odd"}`,
      style: `background:${tint(each.size, most)}${fold && flat >= fold && flat % fold < columns ? ";margin-top:7px" : ""}`, title: `${indexOf(flat, dims)} = ${each.text}${empty ? ", padding" : ""}`},
      tiny ? "" : brief(each.text));
    host.append(cell);
  });
  if (choose) {
    host.setAttribute("tabindex", "0");
    host.setAttribute("role", "group");
    host.setAttribute("aria-label", `${shapeOf(value)}: use the arrow keys to choose an element`);
    const cells = [...host.children];
    host.addEventListener("click", event => { const flat = cells.indexOf(event.target); if (flat >= 0) { choose(flat); Side.focusOnGrid(); } });
    host.addEventListener("keydown", event => stepIn(event, chosen, elements.length, columns, choose));
  }
  return host;
}

// Arrows in a grid of values go from element to element.
function stepIn(event, chosen, count, columns, choose) {
  const way = {ArrowRight: 1, ArrowLeft: -1, ArrowDown: columns, ArrowUp: -columns}[event.key];
  if (!way || event.ctrlKey || event.metaKey || event.altKey) return;
  event.preventDefault();
  event.stopPropagation();
  const next = chosen == null ? 0 : chosen + way;
  if (next >= 0 && next < count) { choose(next); Side.focusOnGrid(); }
}

// Red, green and blue of `#1f5fa8`.
const parts = colour => [1, 3, 5].map(at => parseInt(colour.slice(at, at + 2), 16));

function summarised(value) {
  const cells = value.cells, columns = value.columns, rows = columns ? cells.length / columns : 0, most = Math.max(...cells.map(Math.abs), 0);
  const odd = [[value.nans, "NaN"], [value.infs, "inf"]].filter(each => each[0]).map(each => `${each[0]} ${each[1]}`).join(", ");
  const range = Number.isNaN(value.mean) ? "no finite elements" : product(value.d) === 1 ? brief(number(value.low)) : `${brief(number(value.low))} … ${brief(number(value.high))}, mean ${brief(number(value.mean))}`;
  const host = html("div", {}, html("p", {class: "more"}, range, odd ? html("b", {class: "bad"}, `  ${odd}`) : null));
  if (!cells.length) return host;
  const canvas = html("canvas", {class: "heat", width: columns, height: rows, style: `--ratio:${columns}/${Math.min(1.25 * columns, Math.max(rows, columns / 8))}`, title: `the mean of each block of ${shapeOf(value)}`});
  const pen = canvas.getContext("2d"), image = pen.createImageData(columns, rows);
  cells.forEach((each, i) => image.data.set([...parts(Sizes.colour(each < 0 ? "--low" : "--high")), 255 * (most ? .06 + .8 * Math.abs(each) / most : .06)], 4 * i));
  pen.putImageData(image, 0, 0);
  host.append(canvas);
  return host;
}
