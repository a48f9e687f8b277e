"use strict";
// Frames folded and unfolded: what a folded frame leaves empty is pressed together, and all else stays in its order.
const frames = data.frames.map(([id, up, at, boxes]) => ({ id, up, at, boxes, folded: false }));
const home = new Map(frames.flatMap((frame, number) => frame.boxes.map(id => [id, number])));
const GAP = 28, TITLE = 24, LETTER = 7.6;

// The parts of the picture as they were drawn: outlines and titles of frames, lines, the words at their ends, boxes.
const drawn = frames.map(({ id }) => document.getElementById(`cluster_${id}`));
const picture = drawn.length ? drawn[0].parentNode : svg;
const titles = drawn.map(each => each.nextElementSibling), names = titles.map(each => each.textContent);
const ways = lines.map(each => {
  const path = each.querySelector("path"), way = path.getAttribute("d");
  return [each, path, way, [...way.matchAll(/([A-Z])([^A-Z]*)/g)].map(([, letter, rest]) => [letter, rest.split(/[ ,]+/).filter(Boolean).map(Number)])];
});
const heads = lines.map(each => each.querySelector("title")?.textContent || "");
const shapes = new Map(ids.map(id => [id, document.getElementById(id)]));
const ends = [];
let word = shapes.size ? [...picture.querySelectorAll(":scope > .shapes")].pop().nextElementSibling : null;
data.lines.forEach((_, number) => [1, 2].forEach(end => {
  if (!(data.ends[number] & end)) return;
  ends.push({ number, end, word, x: Number(word.getAttribute("x")), y: Number(word.getAttribute("y")) });
  word = word.nextElementSibling;
}));
const legend = picture.nextElementSibling, legendWidth = legend.getBBox().width, ground = svg.querySelector(".ground"), drawnSize = [...whole], all = data.size;

const inside = frames.map(() => 0);
for (const frame of frames.keys()) for (let each = frame; each >= 0; each = frames[each].up) inside[each] += frames[frame].boxes.length;
// The outermost folded frame around a frame, or itself; -1 where there is none.
function cover(number) {
  let found = -1;
  for (let each = number; each >= 0; each = frames[each].up) if (frames[each].folded) found = each;
  return found;
}
// All of a program that is one frame cannot be folded away.
const alone = frames.filter(each => each.up < 0).length === 1, foldable = number => !alone || frames[number].up >= 0;
const told = number => foldable(number) ? `${frames[number].folded ? "▸" : "▾"} ${names[number]}` : names[number];
const counts = frames.map((_, number) => {
  const words = titles[number].cloneNode();
  words.setAttribute("class", "dim");
  words.setAttribute("display", "none");
  words.textContent = `${inside[number].toLocaleString("en")} box${inside[number] === 1 ? "" : "es"} folded`;
  titles[number].after(words);
  return words;
});
// Where a folded frame stands in the places of all that is drawn: as wide as its words, at the top of where it was.
function shrunk(number) {
  const [x, y, wide] = frames[number].at, width = Math.min(wide, Math.max(names[number].length + 2, counts[number].textContent.length + 2) * LETTER + 24);
  return [x + (wide - width) / 2, y, width, 46];
}

// A map of places along one axis: what is taken (pairs of ends) keeps its size, what has become empty is pressed.
function pressed(taken, freed, end) {
  const cuts = [];
  let at = 0;
  for (const [low, high] of [...taken.sort((a, b) => a[0] - b[0]), [end, end]]) {
    const empty = low - at;
    if (empty > GAP && freed.some(([a, b]) => a < low && b > at)) cuts.push([at, low, GAP / empty]);
    at = Math.max(at, high);
  }
  return place => {
    let less = 0;
    for (const [low, high, share] of cuts) {
      if (place <= low) break;
      less += (Math.min(place, high) - low) * (1 - share);
    }
    return place - less;
  };
}

// The whole picture in the state in which the frames are.
function arrange() {
  const covers = frames.map((_, number) => cover(number)), hidden = number => covers[number] >= 0 && covers[number] !== number;
  const closed = [...frames.keys()].filter(number => covers[number] === number), small = new Map(closed.map(number => [number, shrunk(number)]));
  const taken = [...small.values()];
  for (const [id, place] of Object.entries(data.places)) if (covers[home.get(id)] < 0) taken.push(place);
  frames.forEach(({ at: [x, y, w, h] }, number) => {
    if (covers[number] < 0) taken.push([x, y, Math.min(w, told(number).length * LETTER + 24), TITLE + 10], [x + w - 14, y + h - 14, 14, 14]);
  });
  const axis = side => pressed(taken.map(each => [each[side], each[side] + each[side + 2]]), closed.map(number => [frames[number].at[side], frames[number].at[side] + frames[number].at[side + 2]]), all[side]);
  const fx = axis(0), fy = axis(1), moved = ([x, y, w, h]) => { const left = fx(x), top = fy(y); return [left, top, fx(x + w) - left, fy(y + h) - top]; };
  frames.forEach((frame, number) => drawFrame(number, hidden(number), moved(small.get(number) || frame.at)));
  const rects = new Map(closed.map(number => [number, moved(small.get(number))]));
  for (const [id, group] of shapes) {
    const away = covers[home.get(id)] >= 0, [x, y] = data.places[id], move = `translate(${round(fx(x) - x)} ${round(fy(y) - y)})`;
    set(group, "display", away ? "none" : null);
    set(group, "transform", away || move === "translate(0 0)" ? null : move);
  }
  drawLines(covers, rects, fx, fy, moved);
  const less = [all[0] - fx(all[0]), all[1] - fy(all[1])];
  const [, above] = picture.transform.baseVal.length ? [0, picture.transform.baseVal[0].matrix.f] : [0, 0];
  legend.setAttribute("transform", `translate(0 ${round(above + all[1] - less[1])})`);
  // A legend that is wider than what is left of the picture keeps its room.
  whole.splice(2, 2, Math.max(drawnSize[2] - less[0], Math.min(drawnSize[2], legendWidth + 40)), drawnSize[3] - less[1]);
  ground.setAttribute("width", whole[2]);
  ground.setAttribute("height", whole[3]);
}
const round = number => Math.round(number * 10) / 10 || 0;
function set(node, name, value) {
  if (node.getAttribute(name) === value) return;
  if (value === null) node.removeAttribute(name); else node.setAttribute(name, value);
}

function drawFrame(number, away, [x, y, w, h]) {
  const [frame, title] = [drawn[number], titles[number]], { folded } = frames[number], r = 8;
  for (const each of [frame, title]) set(each, "display", away ? "none" : null);
  set(counts[number], "display", away || !folded ? "none" : null);
  counts[number].setAttribute("x", round(x + 12 + 2 * LETTER));
  counts[number].setAttribute("y", round(y + 35));
  set(frame, "d", `M${round(x + r)} ${round(y)}h${round(w - 2 * r)}q${r} 0 ${r} ${r}v${round(h - 2 * r)}q0 ${r} ${-r} ${r}h${round(2 * r - w)}q${-r} 0 ${-r} ${-r}v${round(2 * r - h)}q0 ${-r} ${r} ${-r}z`);
  frame.classList.toggle("folded", folded);
  title.textContent = told(number);
  title.setAttribute("x", round(x + 12));
  title.setAttribute("y", round(y + 19));
  title.setAttribute("aria-expanded", String(!folded));
}

// Lines to what is folded go to its box; several between the same two are one.
function drawLines(covers, rects, fx, fy, moved) {
  const first = new Map(), axes = { V: [fy], H: [fx] }, both = [fx, fy];
  const bent = ways.map(([group, path, way, parts], number) => {
    const [tail, head] = data.lines[number], from = covers[home.get(tail)], to = covers[home.get(head)];
    const same = from >= 0 && from === to, key = from < 0 && to < 0 ? number : [from < 0 ? tail : from, to < 0 ? head : to, group.classList[1]].join("\n");
    const known = first.get(key);
    if (known) known.count++; else if (!same) first.set(key, { number, count: 1 });
    set(group, "display", same || known ? "none" : null);
    if (same || known) return true;
    const mapped = parts.map(([letter, numbers]) => letter + numbers.map((each, n) => round((axes[letter] || both)[n % 2](each))).join(" ")).join("");
    const below = from >= 0 && to < 0 && leavesBelow(from, way);
    if (below) set(path, "d", `M${round(rects.get(from)[0] + rects.get(from)[2] / 2)} ${round(rects.get(from)[1] + rects.get(from)[3])}L${mapped.slice(1)}`);
    else set(path, "d", from < 0 && to < 0 ? mapped : between(from < 0 ? moved(data.places[tail]) : rects.get(from), to < 0 ? moved(data.places[head]) : rects.get(to)));
    return from >= 0 || to >= 0;
  });
  for (const { number, count } of first.values()) {
    const title = lines[number].querySelector("title");
    if (title) title.textContent = count > 1 ? `${count} lines; the first: ${heads[number]}` : heads[number];
  }
  for (const { number, word, x, y } of ends) {
    set(word, "display", bent[number] ? "none" : null);
    word.setAttribute("x", round(fx(x)));
    word.setAttribute("y", round(fy(y)));
  }
}
// Whether a line begins at the lower edge of a frame: then it goes there first, past what stands beside the frame.
function leavesBelow(number, way) {
  const [, , y] = way.match(/^M([-.0-9]+) ([-.0-9]+)/), [, top, , high] = frames[number].at;
  return Math.abs(Number(y) - top - high) < 1;
}
// A line from box to box: down where there is room, else from side to side.
function between([ax, ay, aw, ah], [bx, by, bw, bh]) {
  if (by >= ay + ah) {
    const [x, y, to, end] = [ax + aw / 2, ay + ah, bx + bw / 2, by].map(round), middle = round((y + end) / 2);
    return `M${x} ${y}C${x} ${middle} ${to} ${middle} ${to} ${end}`;
  }
  const right = bx >= ax + aw ? 1 : bx + bw <= ax ? -1 : 0, start = right < 0 ? ax : ax + aw, end = right > 0 ? bx : bx + bw;
  const bow = Math.max(46, Math.abs(end - start) * .45), y = ay + ah / 2, to = by + bh / 2;
  return `M${round(start)} ${round(y)}C${round(start + (right < 0 ? -bow : bow))} ${round(y)} ${round(end + (right > 0 ? -bow : bow))} ${round(to)} ${round(end)} ${round(to)}`;
}

// Folds or unfolds, with the title where it was on the screen.
function fold(number, folded = !frames[number].folded) {
  const where = () => ["x", "y"].map(name => Number(titles[number].getAttribute(name))), before = where();
  frames[number].folded = folded;
  arrange();
  where().forEach((each, side) => { view[side] += each - before[side]; });
  show();
  const kept = frames.filter(each => each.folded).map(each => encodeURIComponent(each.id));
  try { history.replaceState(null, "", kept.length ? `#fold=${kept.join(",")}` : location.pathname + location.search); } catch { /* a frame of a notebook has no address */ }
}
// Unfolds what is around a box.
function open(id) {
  for (let each = home.get(id); each >= 0; each = frames[each].up) if (frames[each].folded) fold(each, false);
}
function readAddress() {
  const asked = new Set((new URLSearchParams(location.hash.slice(1)).get("fold") || "").split(",").map(each => { try { return decodeURIComponent(each); } catch { return each; } }));
  const changed = frames.filter(frame => frame.folded !== asked.has(frame.id));
  for (const frame of changed) frame.folded = !frame.folded;
  if (changed.length) arrange();
}

titles.forEach((title, number) => {
  if (!foldable(number)) return;
  for (const [name, value] of [["role", "button"], ["tabindex", "0"], ["aria-expanded", "true"], ["aria-label", names[number]]]) title.setAttribute(name, value);
  title.classList.add("fold");
  title.textContent = told(number);
  drawn[number].addEventListener("click", () => { if (frames[number].folded && !dragged) fold(number); });
  title.addEventListener("click", () => { if (!dragged) fold(number); });
  title.addEventListener("keydown", event => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    fold(number);
  });
});
addEventListener("hashchange", () => { readAddress(); show(); });
readAddress();
