"use strict";
// The page of a difference: rows of both programs, folded where they are equal; a selected instruction and its partner.
const DATA = JSON.parse(document.getElementById("data").textContent);
const {kinds: KINDS, sides: SIDES, sections: SECTIONS} = DATA;
const SIGNS = {added: "+", removed: "-", changed: "~", fused: ">", moved: ">", renamed: "~", layout: "~", same: ""};
const SAME = KINDS.indexOf("same"), CONTEXT = 2, CHUNK = 64, MOST_BUTTONS = 16, LONGEST = 80;
const byId = id => document.getElementById(id);

// An element with a class, attributes and children; every text of a program becomes a text node.
function element(tag, name, attributes = {}, ...children) {
  const made = document.createElement(tag);
  if (name) made.className = name;
  for (const key in attributes) made.setAttribute(key, attributes[key]);
  made.append(...children);
  return made;
}

// Rows: [before, after, kind, changes] with numbers of instructions, or -1; the partner, the row and the place of each instruction.
// A text of the new program is left out if it is that of the partner.
const partner = SIDES.map(side => new Int32Array(side.texts.length).fill(-1));
const home = SIDES.map(side => new Array(side.texts.length));
const kindOf = row => KINDS[row[2] ?? SAME];
const places = [0, 1].map(side => SECTIONS.flatMap(section => Array.from({length: section.sizes[side]}, (_, place) => place + 1)));
SECTIONS.forEach((section, number) => section.rows.forEach((row, at) => {
  const isPair = row[0] >= 0 && row[1] >= 0;
  if (isPair) [partner[0][row[0]], partner[1][row[1]]] = [row[1], row[0]];
  if (isPair) SIDES[1].texts[row[1]] ||= SIDES[0].texts[row[0]];
  for (const side of [0, 1]) if (row[side] >= 0 && (isPair || !home[side][row[side]])) home[side][row[side]] = [number, at];
}));
const nameOf = (side, one) => SIDES[side].texts[one].split(" = ", 1)[0];
const sourceOf = (side, one) => SIDES[side].lines[SIDES[side].sources[one]];
const sectionName = section => section.names[1] ?? section.names[0];

// What is shown: only differences, of some kinds, in open sections, with rows that the reader unfolded.
let only = !DATA.isSmall, users = null, selected = null;
const shownKinds = new Set(KINDS.slice(0, SAME));
const opened = new Map(), unfolded = SECTIONS.map(section => new Uint8Array(section.rows.length)), bodies = new Map(), drawn = new Map();
const differs = row => shownKinds.has(kindOf(row));
const isDifferent = section => section.changes.length > 0 || section.rows.some(differs);
const isOpen = number => opened.get(number) ?? (!only || isDifferent(SECTIONS[number]));

// Draw: sections with differences, then the others together.
function draw() {
  const here = byId("programs"), equal = [];
  bodies.clear();
  drawn.clear();
  here.replaceChildren();
  SECTIONS.forEach((section, number) => {
    if (only && !isDifferent(section)) equal.push(number);
    else here.append(drawSection(number));
  });
  if (equal.length) {
    const text = `${equal.length.toLocaleString("en")} computation${equal.length > 1 ? "s" : ""} without a difference`;
    const group = element("details", "equal", {}, element("summary", "", {}, text));
    group.addEventListener("toggle", () => { if (group.childElementCount === 1) group.append(...equal.map(drawSection)); });
    here.append(group);
  }
  byId("only").setAttribute("aria-pressed", only);
  paint();
}

function drawSection(number) {
  const section = SECTIONS[number], counts = new Map();
  for (const row of section.rows) counts.set(kindOf(row), (counts.get(kindOf(row)) ?? 0) + 1);
  const told = KINDS.filter(kind => counts.has(kind)).map(kind => `${counts.get(kind).toLocaleString("en")} ${kind === "same" ? "equal" : kind}`);
  const [before, after] = section.names;
  const entire = before === null ? "added computation: " : after === null ? "removed computation: " : "";
  const button = element("button", "", {type: "button", "aria-expanded": isOpen(number), id: `s${number}`}, sectionName(section),
    element("small", "", {}, entire + told.join(", ")));
  const made = element("section", "section", {"aria-labelledby": `s${number}`}, element("h2", "", {}, button));
  if (section.changes.length) made.append(element("ul", "notes", {}, ...section.changes.map(each => element("li", "", {}, each))));
  const body = element("div", "", {role: "grid", "aria-label": `instructions of ${sectionName(section)}`});
  made.append(body);
  bodies.set(number, {body, button});
  button.addEventListener("click", () => open(number, !isOpen(number)));
  drawBody(number);
  return made;
}

function open(number, is) {
  opened.set(number, is);
  bodies.get(number)?.button.setAttribute("aria-expanded", is);
  drawBody(number);
  paint();
}

// The rows of a section in chunks, of which the browser lays out only those in sight; equal rows far from a difference are folded.
function drawBody(number) {
  const place = bodies.get(number);
  if (!place) return;
  place.body.replaceChildren();
  place.body.hidden = !isOpen(number);
  if (!isOpen(number)) return;
  const {rows} = SECTIONS[number], near = new Uint8Array(unfolded[number]);
  rows.forEach((row, at) => { if (!only || differs(row)) near.fill(1, only ? Math.max(0, at - CONTEXT) : at, at + (only ? CONTEXT : 0) + 1); });
  const headers = [DATA.names[0], "kind", DATA.names[1], "changes"].map(each => element("span", "", {role: "columnheader"}, each));
  place.body.append(element("div", "unseen", {role: "row"}, ...headers));
  let chunk = null, count = CHUNK;
  const add = made => {
    if (count++ >= CHUNK) {
      place.body.append(chunk = element("div", "group", {role: "rowgroup"}));
      count = 1;
    }
    chunk.append(made);
  };
  for (let at = 0; at < rows.length; at++) {
    if (near[at]) { add(drawRow(number, at)); continue; }
    const begin = at;
    while (at + 1 < rows.length && !near[at + 1]) at++;
    add(drawFold(number, begin, at + 1));
  }
  const first = place.body.querySelector("[tabindex]");
  if (first) first.tabIndex = 0;
}

function drawFold(number, begin, end) {
  const text = `${(end - begin).toLocaleString("en")} equal instruction${end - begin > 1 ? "s" : ""}`;
  const button = element("button", "", {type: "button", tabindex: -1}, `show ${text}`);
  button.addEventListener("click", () => {
    unfolded[number].fill(1, begin, end);
    drawBody(number);
    paint();
    focusOn(bodies.get(number).body.querySelector(`[data-row="${number}:${begin}"] .cell[tabindex]`), false);
  });
  return element("div", "fold", {role: "row"}, element("div", "", {role: "gridcell"}, button));
}

function drawRow(number, at) {
  const row = SECTIONS[number].rows[at], kind = kindOf(row), [texts, isTwin] = textsOf(row);
  const place = row[0] < 0 ? " right" : row[1] < 0 ? " left" : "";
  const made = element("div", `row ${kind}${place}`, {role: "row", "data-row": `${number}:${at}`});
  const sign = element("div", "sign", {role: "gridcell"}, element("span", "", {"aria-hidden": "true"}, SIGNS[kind]),
    element("span", "unseen", {}, kind === "same" ? "equal" : kind));
  made.append(drawCell(row, 0, texts[0], false), sign, drawCell(row, 1, texts[1], isTwin));
  const isNamed = kind === "renamed" || kind === "same";
  const why = (isNamed ? [] : row[3] ?? []).map(([what, before, after]) =>
    element("span", "", {}, element("b", "", {}, what), `: ${before || "none"} \u2192 ${after || "none"}`));
  if (!isNamed) {
    const sources = [...new Set([0, 1].filter(side => row[side] >= 0).map(side => sourceOf(side, row[side])))].filter(Boolean);
    if (sources.length) why.push(element("span", "source", {}, sources.join(" \u2192 ")));
  }
  if (why.length) made.append(element("div", "why", {role: "gridcell"}, ...why));
  return made;
}

function drawCell(row, side, text, isTwin) {
  const one = row[side], far = one < 0 ? partner[1 - side][row[1 - side]] : one;
  if (far < 0) return element("div", "cell absent", {role: "gridcell"}, element("span", "unseen", {}, "absent"));
  const content = one < 0 ? [`${nameOf(side, far)} in ${sectionName(SECTIONS[home[side][far][0]])}`]
    : [element("i", "", {"aria-hidden": "true", "data-side": side ? "after" : "before"}, places[side][one]), element("code", "", {}, ...text)];
  const name = one < 0 ? "cell absent elsewhere" : isTwin ? "cell twin" : "cell", key = `${side}:${far}`;
  const cell = element("div", name, {role: "gridcell", tabindex: -1, "data-one": key}, ...content);
  if (!drawn.has(key)) drawn.set(key, []);
  drawn.get(key).push(cell);
  return cell;
}

// The texts of a row, with marks where they differ: tokens of which one is not in the other text, and operands that changed.
function textsOf(row) {
  const texts = [0, 1].map(side => row[side] < 0 ? "" : SIDES[side].texts[row[side]]), changes = row[3];
  if (!changes) return [texts.map(each => [each]), texts[0] === texts[1]];
  const numbers = [0, 1].map(side => new Map(SIDES[side].operands[row[side]].map(one => [nameOf(side, one), one])));
  const hasNewList = changes.some(([what]) => what === "operands");
  const isAlike = (a, b) => {
    const one = numbers[0].get(a), other = numbers[1].get(b);
    if (one === undefined || other === undefined) return a === b;
    if (hasNewList) return partner[0][one] === other;
    return !changes.some(([what, before, after]) => what.startsWith("operand") && before === a && after === b);
  };
  const tokens = texts.map(each => each.match(/\{[^{}\s]*\}|[\w.-]+(?:\[[\d,<=]*\])?|\s+|[^\w\s]/gu) ?? []);
  const kept = common(tokens[0], tokens[1], isAlike);
  return [tokens.map((some, side) => marked(some, kept[side])), false];
}

// The tokens of a longest common subsequence, after a common beginning and end; of long middles none.
function common(one, other, isAlike) {
  const kept = [new Uint8Array(one.length), new Uint8Array(other.length)];
  const keep = (a, b) => { kept[0][a] = kept[1][b] = 1; };
  let begin = 0, [m, n] = [one.length, other.length];
  while (begin < m && begin < n && isAlike(one[begin], other[begin])) {
    keep(begin, begin);
    begin++;
  }
  while (m > begin && n > begin && isAlike(one[m - 1], other[n - 1])) keep(--m, --n);
  if (m - begin > LONGEST || n - begin > LONGEST) return kept;
  const lengths = Array.from({length: m - begin + 1}, () => new Uint8Array(n - begin + 1));
  for (let a = m - 1; a >= begin; a--) for (let b = n - 1; b >= begin; b--)
    lengths[a - begin][b - begin] = isAlike(one[a], other[b]) ? lengths[a - begin + 1][b - begin + 1] + 1
      : Math.max(lengths[a - begin + 1][b - begin], lengths[a - begin][b - begin + 1]);
  for (let a = begin, b = begin; a < m && b < n;) {
    if (isAlike(one[a], other[b])) keep(a++, b++);
    else if (lengths[a - begin + 1][b - begin] >= lengths[a - begin][b - begin + 1]) a++;
    else b++;
  }
  return kept;
}

function marked(tokens, kept) {
  const pieces = [];
  for (let at = 0; at < tokens.length;) {
    const begin = at;
    while (at < tokens.length && kept[at] === kept[begin]) at++;
    const text = tokens.slice(begin, at).join("");
    pieces.push(kept[begin] || !text.trim() ? text : element("mark", "", {}, text));
  }
  return pieces;
}

// The selection: an instruction, its partner, and the operands of both, marked wherever they are drawn.
function paint() {
  for (const each of document.querySelectorAll(".selected,.partner,.operand")) each.classList.remove("selected", "partner", "operand");
  if (!selected) return;
  const [side, one] = selected, other = partner[side][one];
  const add = (side, one, name) => {
    for (const each of drawn.get(`${side}:${one}`) ?? []) each.classList.add(name);
  };
  add(side, one, "selected");
  for (const operand of new Set(SIDES[side].operands[one])) add(side, operand, "operand");
  if (other < 0) return;
  add(1 - side, other, "partner");
  for (const operand of new Set(SIDES[1 - side].operands[other])) add(1 - side, operand, "operand");
}

function select(side, one) {
  selected = [side, one];
  paint();
  drawDetails();
}

function clear() {
  selected = null;
  byId("details").hidden = true;
  paint();
}

// Open what hides an instruction, select it, and move the focus to it.
function reveal(side, one) {
  const [number, at] = home[side][one], {rows} = SECTIONS[number];
  if (!bodies.has(number)) {
    const group = document.querySelector("details.equal");
    group.open = true;
    if (group.childElementCount === 1) group.dispatchEvent(new Event("toggle"));
  }
  const hidden = !document.querySelector(`[data-row="${number}:${at}"]`);
  if (hidden) {
    unfolded[number].fill(1, Math.max(0, at - CONTEXT), Math.min(rows.length, at + CONTEXT + 1));
    open(number, true);
  }
  select(side, one);
  focusOn(document.querySelector(`[data-row="${number}:${at}"] [data-one="${side}:${one}"]`));
}

function focusOn(cell, scrolls = true) {
  if (!cell) return;
  const grid = cell.closest("[role=grid]");
  for (const each of grid.querySelectorAll("[tabindex='0']")) each.tabIndex = -1;
  cell.tabIndex = 0;
  cell.focus({preventScroll: true});
  if (scrolls) cell.scrollIntoView({block: "center"});
}

function usersOf(side, one) {
  users ??= SIDES.map(each => {
    const found = each.texts.map(() => []);
    each.operands.forEach((operands, user) => new Set(operands).forEach(operand => found[operand].push(user)));
    return found;
  });
  return users[side][one];
}

function drawDetails() {
  const [side, one] = selected, other = partner[side][one], [number, at] = home[side][one];
  const row = SECTIONS[number].rows[at], kind = kindOf(row), word = kind === "same" ? "equal" : kind;
  const close = element("button", "", {type: "button", title: "clear the selection (Esc)"}, "close");
  close.addEventListener("click", clear);
  const list = element("dl");
  const add = (term, ...given) => list.append(element("dt", "", {}, term), element("dd", "", {}, ...given));
  const buttons = (side, some) => [
    ...some.slice(0, MOST_BUTTONS).map(each => {
      const button = element("button", "", {type: "button"}, nameOf(side, each));
      button.addEventListener("click", () => reveal(side, each));
      return button;
    }), ...(some.length > MOST_BUTTONS ? [`and ${(some.length - MOST_BUTTONS).toLocaleString("en")} more`] : [])];
  for (const [what, before, after] of row[3] ?? []) add(what, `${before || "none"} \u2192 ${after || "none"}`);
  const where = `on the side ${DATA.names[1 - side]}`;
  if (other >= 0) add("partner", ...buttons(1 - side, [other]), where);
  for (const [term, some] of [["operands", [...new Set(SIDES[side].operands[one])]], ["users", usersOf(side, one)]])
    if (some.length) add(term, ...buttons(side, some));
  const lines = [[side, one], [1 - side, other]].filter(each => each[1] >= 0).map(each => sourceOf(...each)).filter(Boolean);
  if (lines.length) add(lines.length > 1 && lines[0] !== lines[1] ? "lines" : "line", [...new Set(lines)].join(" \u2192 "));
  byId("details").replaceChildren(element("h3", kind, {}, element("code", "", {}, nameOf(side, one)), element("small", "", {}, word), close), list);
  byId("details").hidden = false;
  const changes = (row[3] ?? []).map(([what, before, after]) => `${what} ${before || "none"} to ${after || "none"}`).join(", ");
  byId("said").textContent = `${nameOf(side, one)}: ${word}${changes && `, ${changes}`}${other >= 0 ? `; partner ${nameOf(1 - side, other)}` : ""}`;
}

// Steps from difference to difference, in the order of the page; a pair of two computations counts once.
function step(by) {
  const isHome = (number, at) => ([0, 1].some(side => {
    const place = home[side][SECTIONS[number].rows[at][side]];
    return place && place[0] === number && place[1] === at;
  }));
  const all = SECTIONS.flatMap((section, number) => section.rows.map((row, at) => [number, at]).filter(([, at]) => differs(section.rows[at]) && isHome(number, at)));
  if (!all.length) return;
  const here = selected ? home[selected[0]][selected[1]] : [by > 0 ? -1 : SECTIONS.length, 0];
  const isPast = ([number, at]) => by * (number - here[0] || at - here[1]) > 0;
  const [number, at] = (by > 0 ? all.find(isPast) : all.findLast(isPast)) ?? all.at(by > 0 ? 0 : -1);
  const row = SECTIONS[number].rows[at], side = row[1] >= 0 ? 1 : 0;
  reveal(side, row[side]);
}

// Keys: arrows move between cells, Enter selects.
function move(cell, key) {
  if (key === "ArrowLeft" || key === "ArrowRight") {
    const cells = [...cell.closest("[role=row]").querySelectorAll(".cell[tabindex]")];
    return cells.find(each => each !== cell);
  }
  const shown = "main > .section, main > details[open]";
  const all = [...document.querySelectorAll(`:is(${shown}) :is(.cell[tabindex], .fold button)`)];
  const row = cell.closest("[role=row]"), side = cell.dataset.one?.[0] ?? "1", by = key === "ArrowDown" ? 1 : -1;
  let at = all.indexOf(cell);
  while (all[at] && all[at].closest("[role=row]") === row) at += by;
  if (!all[at]) return null;
  const next = [...all[at].closest("[role=row]").querySelectorAll(".cell[tabindex],button")];
  return next.find(each => each.dataset.one?.[0] === side) ?? next[0];
}

const KEYS = {n: () => step(1), p: () => step(-1), d: () => toggle(), Escape: clear};

document.addEventListener("keydown", event => {
  if (event.ctrlKey || event.metaKey || event.altKey) return;
  const cell = event.target.closest?.(".cell[tabindex],.fold button");
  if (cell && event.key.startsWith("Arrow")) {
    const next = move(cell, event.key);
    if (next) focusOn(next);
  } else if (cell?.dataset.one && (event.key === "Enter" || event.key === " ")) choose(cell);
  else if (KEYS[event.key]) KEYS[event.key]();
  else return;
  event.preventDefault();
});

byId("programs").addEventListener("click", event => {
  const cell = event.target.closest("[data-one]");
  if (cell && getSelection().isCollapsed) choose(cell);
});

function choose(cell) {
  const [side, one] = cell.dataset.one.split(":").map(Number);
  if (cell.classList.contains("elsewhere")) reveal(side, one);
  else {
    select(side, one);
    focusOn(cell, false);
  }
}

function toggle() {
  only = !only;
  opened.clear();
  unfolded.forEach(each => each.fill(0));
  draw();
}

// The bar: a button for each kind that occurs.
const counts = new Map();
for (const section of SECTIONS) for (const row of section.rows) {
  const isFar = (row[0] < 0 || row[1] < 0) && !["added", "removed"].includes(kindOf(row));
  if (!isFar) counts.set(kindOf(row), (counts.get(kindOf(row)) ?? 0) + 1);
}
for (const kind of KINDS) if (kind !== "same" && counts.has(kind)) {
  const button = element("button", kind, {type: "button", "aria-pressed": "true"}, `${kind} ${counts.get(kind).toLocaleString("en")}`);
  button.addEventListener("click", () => {
    shownKinds[shownKinds.has(kind) ? "delete" : "add"](kind);
    button.setAttribute("aria-pressed", shownKinds.has(kind));
    draw();
  });
  byId("kinds").append(button);
}
byId("only").addEventListener("click", toggle);
byId("previous").addEventListener("click", () => step(-1));
byId("next").addEventListener("click", () => step(1));
byId("bar").hidden = byId("titles").hidden = false;
draw();
