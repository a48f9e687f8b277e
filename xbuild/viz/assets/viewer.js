"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const stage = document.getElementById("stage"), svg = stage.querySelector("svg");
const side = document.getElementById("side"), search = document.getElementById("search");
const count = document.getElementById("count");
const lines = [...svg.querySelectorAll("g.line")].slice(0, data.lines.length);
const ids = Object.keys(data.boxes);
const whole = svg.getAttribute("viewBox").split(" ").map(Number);
let view = [...whole], hits = [], place = -1;

// Where the picture is looked at.
function show() { svg.setAttribute("viewBox", view.join(" ")); }
function scale() { return Math.max(view[2] / stage.clientWidth, view[3] / stage.clientHeight); }
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
function readable() {
  // As large as it was drawn, from the top, where all of it would be too small to read.
  if (scale() < 1.6) return;
  view = [whole[0] + (whole[2] - stage.clientWidth) / 2, whole[1], stage.clientWidth, stage.clientHeight];
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

// One box: what it says, what comes before it and after it.
function choose(id) {
  for (const each of svg.querySelectorAll(".chosen, .before, .after")) each.classList.remove("chosen", "before", "after");
  side.replaceChildren();
  side.hidden = !id;
  if (!id) return;
  document.getElementById(id).classList.add("chosen");
  const words = document.createElement("pre");
  words.textContent = data.boxes[id].words;
  side.append(words);
  const ends = { before: [], after: [] };
  data.lines.forEach(([tail, head], number) => {
    const role = head === id ? "before" : tail === id ? "after" : "";
    if (!role) return;
    lines[number].classList.add(role);
    ends[role].push(role === "before" ? tail : head);
  });
  for (const role of ["before", "after"]) list(role, [...new Set(ends[role])]);
}
function list(role, found) {
  if (!found.length) return;
  const title = document.createElement("h2");
  title.className = role;
  title.textContent = `${found.length} ${role} it`;
  side.append(title, ...found.map(id => {
    const button = document.createElement("button");
    button.type = "button";
    button.textContent = `${data.boxes[id].name}  ${data.boxes[id].shape}`;
    button.addEventListener("click", () => go(id));
    return button;
  }));
}
function go(id) {
  open(id);
  choose(id);
  const box = document.getElementById(id).getBBox(), at = document.getElementById(id).getCTM();
  const root = svg.getCTM().inverse().multiply(at), unit = Math.min(scale(), 1.2);
  const x = root.a * (box.x + box.width / 2) + root.e, y = root.d * (box.y + box.height / 2) + root.f;
  const wide = stage.clientWidth * unit, high = stage.clientHeight * unit;
  view = [x - wide / 2, y - high / 2, wide, high];
  show();
}

// Search in names, ops, attributes, shapes, sources.
search.addEventListener("input", () => {
  const wanted = search.value.trim().toLowerCase();
  place = -1;
  hits = wanted ? ids.filter(id => data.boxes[id].found.includes(wanted)) : [];
  svg.classList.toggle("searching", Boolean(wanted));
  for (const id of ids) document.getElementById(id).classList.toggle("hit", hits.includes(id));
  count.textContent = wanted ? `${hits.length} found` : "";
});
search.addEventListener("keydown", event => {
  if (event.key === "Enter" && hits.length) {
    place = (place + (event.shiftKey ? hits.length - 1 : 1)) % hits.length;
    go(hits[place]);
    count.textContent = `${place + 1} of ${hits.length}`;
  }
});
document.getElementById("fit").addEventListener("click", fit);
addEventListener("keydown", event => {
  if (event.key === "Escape") {
    search.value = ""; search.dispatchEvent(new Event("input")); search.blur(); choose(null);
  } else if (document.activeElement === search || event.ctrlKey || event.metaKey || event.altKey) return;
  else if (event.key === "/") { event.preventDefault(); search.focus(); }
  else if (event.key === "f") fit();
  else if (event.key === "+" || event.key === "-") {
    zoom(event.key === "+" ? 0.8 : 1.25, view[0] + view[2] / 2, view[1] + view[3] / 2);
  }
});
svg.removeAttribute("width");
svg.removeAttribute("height");
choose(null);
