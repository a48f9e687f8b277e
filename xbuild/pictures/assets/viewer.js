"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const stage = document.getElementById("stage"), svg = stage.querySelector("svg");
const side = document.getElementById("side"), search = document.getElementById("search");
const count = document.getElementById("count");
const boxes = new Map(Object.entries(data.boxes));
const whole = svg.getAttribute("viewBox").split(" ").map(Number);
let view = [...whole], hits = [], place = -1, chosen = null;
const marked = [];

// Draws the part of the picture that `view` states.
function show() {
  svg.setAttribute("viewBox", view.join(" "));
  cull(stale);
  stale = false;
}
// The stage is measured when it changes: asking for its size again would lay all out at once.
let room = [stage.clientWidth, stage.clientHeight];
new ResizeObserver(([{ contentRect: { width, height } }]) => { room = [width, height]; show(); }).observe(stage);
function scale() { return Math.max(view[2] / room[0], view[3] / room[1]); }
function zoom(factor, x, y) {
  const wide = Math.min(Math.max(view[2] * factor, 80), whole[2] * 4), real = wide / view[2];
  view = [x - (x - view[0]) * real, y - (y - view[1]) * real, wide, view[3] * real];
  show();
}
function at(event) {
  const place = stage.getBoundingClientRect(), unit = scale();
  return [view[0] + view[2] / 2 + (event.clientX - place.left - place.width / 2) * unit,
    view[1] + view[3] / 2 + (event.clientY - place.top - place.height / 2) * unit];
}
function fit() { view = [...whole]; show(); }
// Shows the picture in its original size, around what is in the middle of the view.
function original() {
  view = [view[0] + (view[2] - room[0]) / 2, Math.max(whole[1], view[1] + (view[3] - room[1]) / 2), ...room];
  show();
}

stage.addEventListener("wheel", event => {
  event.preventDefault();
  const unit = scale();
  if (event.ctrlKey || event.metaKey) zoom(Math.exp(event.deltaY * 0.004), ...at(event));
  else { view[0] += event.deltaX * unit; view[1] += event.deltaY * unit; show(); }
}, { passive: false });
let held = null, dragged = false;
stage.addEventListener("pointerdown", event => { held = [event.clientX, event.clientY, false]; dragged = false; });
addEventListener("pointermove", event => {
  if (!held) return;
  const dx = event.clientX - held[0], dy = event.clientY - held[1], unit = scale();
  if (!held[2] && Math.hypot(dx, dy) < 4) return;
  held = [event.clientX, event.clientY, true];
  dragged = true;
  view[0] -= dx * unit; view[1] -= dy * unit; show();
});
addEventListener("pointerup", event => {
  const moved = held && held[2];
  held = null;
  if (moved || !stage.contains(event.target)) return;
  const box = event.target.closest("g.shapes[id]");
  choose(box ? box.id : null);
});

// Chooses a box: the panel shows its text, its predecessors and its successors.
function choose(id) {
  for (const each of marked.splice(0)) each.classList.remove("chosen", "before", "after");
  side.replaceChildren();
  side.hidden = !id;
  chosen = id;
  if (!id) return;
  const sheet = sheetOf.get(id), { words, lacking } = boxes.get(id), told = document.createElement("pre");
  const point = (node, role) => { node.classList.add(role); marked.push(node); };
  point(isOpen(id) ? sheet.opened.get(id).drawn[0] : sheet.shapes.get(id), "chosen");
  told.textContent = words;
  if (folds.has(id)) side.append(button(isOpen(id) ? "▾ fold" : "▸ unfold", () => isOpen(id) ? shut(id) : unfold(id)));
  side.append(told);
  if (lacking) side.append(Object.assign(document.createElement("pre"), { className: "lacking", textContent: lacking }));
  const ends = { before: [], after: [] };
  sheet.given.lines.forEach(([tail, head], number) => {
    const role = head === id ? "before" : tail === id ? "after" : "";
    if (!role) return;
    point(sheet.lines[number], role);
    ends[role].push(role === "before" ? tail : head);
  });
  for (const [role, other] of linked.get(id) || []) {
    ends[role].push(other);
    for (const line of standIns(id, role, other)) point(line, role);
  }
  for (const role of ["before", "after"]) list(role, [...new Set(ends[role])]);
}
function list(role, found) {
  if (!found.length) return;
  const title = document.createElement("h2");
  title.className = role;
  title.textContent = `${found.length} ${role === "before" ? "predecessor" : "successor"}${found.length === 1 ? "" : "s"}`;
  side.append(title, ...found.map(id => button(`${boxes.get(id).name}  ${boxes.get(id).shape}`, () => go(id))));
}
function button(words, act) {
  const found = Object.assign(document.createElement("button"), { type: "button", textContent: words });
  found.addEventListener("click", act);
  return found;
}
function go(id) {
  open(id);
  choose(id);
  const sheet = sheetOf.get(id), [left, top, w, h] = sheet.now.get(id), unit = Math.min(scale(), 1.2);
  const [x, y] = placeOf(sheet, [left + w / 2 + origin[0], top + (isOpen(id) ? 0 : h / 2) + origin[1]]);
  const wide = room[0] * unit, high = room[1] * unit;
  view = [x - wide / 2, y - high / 2, wide, high];
  show();
}

// Search in names, ops, attributes, shapes, sources.
search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  place = -1;
  hits = wanted ? [...boxes.keys()].filter(id => boxes.get(id).found.includes(wanted)) : [];
  svg.classList.toggle("searching", Boolean(wanted));
  light();
  count.textContent = wanted ? `${hits.length} found` : "";
});
// Highlights each box that matches the search, or the visible box that contains it.
function light() {
  const lit = new Set(hits.map(seenAs));
  for (const [id, sheet] of sheetOf) sheet.shapes.get(id).classList.toggle("hit", lit.has(id));
}
// Updates the highlights and the panel after a box or a frame has folded or unfolded.
function again() {
  light();
  if (chosen) choose(seenAs(chosen));
}
search.addEventListener("keydown", event => {
  if (event.key === "Enter" && hits.length) {
    place = (place + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
    go(hits[place]);
    count.textContent = `${place + 1} of ${hits.length}`;
  }
});
document.getElementById("fit").addEventListener("click", fit);
document.getElementById("original").addEventListener("click", original);
addEventListener("keydown", event => {
  if (event.key === "Escape") {
    search.value = ""; search.dispatchEvent(new Event("input")); search.blur(); choose(null);
  } else if (document.activeElement === search || event.ctrlKey || event.metaKey || event.altKey) return;
  else if (event.key === "/") { event.preventDefault(); search.focus(); }
  else if (event.key === "f") fit();
  else if (event.key === "1") original();
  else if (event.key === "+" || event.key === "-") {
    zoom(event.key === "+" ? 0.8 : 1.25, view[0] + view[2] / 2, view[1] + view[3] / 2);
  }
});
svg.removeAttribute("width");
svg.removeAttribute("height");
svg.setAttribute("role", "group");
side.hidden = true;
