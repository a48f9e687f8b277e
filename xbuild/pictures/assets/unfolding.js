// The state of the page: which frames are folded, which boxes are unfolded, and the address that encodes both.
const picture = svg.querySelector("path.frame")?.parentNode || svg.querySelector("g g") || svg;
const legend = picture.nextElementSibling, legendWidth = legend ? legend.getBBox().width : 0, ground = svg.querySelector(".ground");
const drawnSize = [...whole], above = picture.transform.baseVal.length ? picture.transform.baseVal[0].matrix.f : 0;
data.unfolds = new Set();
const root = new Sheet(picture, data, null, ""), sheetOf = new Map([...root.shapes.keys()].map(id => [id, root]));
// `folds` has the sheet that each folded box unfolds to, `around` the folded box that contains each inner box, by id.
const folds = new Map(), around = new Map();
// `linked` has, by the id of a box, its neighbours in the program to which no sheet draws a line.
const linked = new Map();

async function unpack() {
  const packed = document.getElementById("inside").textContent;
  if (!packed || !("DecompressionStream" in window)) return;
  const bytes = Uint8Array.from(atob(packed), letter => letter.charCodeAt(0));
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
  const { sheets, links } = await new Response(stream).json(), unfolds = new Set(sheets.map(each => each.of));
  for (const each of sheets) {
    folds.set(each.of, Object.assign(each, { unfolds }));
    for (const id of Object.keys(each.boxes)) { around.set(id, each.of); boxes.set(id, each.boxes[id]); }
  }
  const order = [...boxes.keys()];
  for (const [tail, head] of links) for (const [id, role, other] of [[head, "before", tail], [tail, "after", head]]) {
    if (!linked.has(order[id])) linked.set(order[id], []);
    linked.get(order[id]).push([role, order[other]]);
  }
  data.unfolds = unfolds;
  for (const [id, shape] of root.shapes) if (unfolds.has(id)) mark(root, id, shape);
  if (search.value) search.dispatchEvent(new Event("input"));
}

// Adds the unfold button to a box; a box that stands for several instructions unfolds wherever the box is clicked.
function mark(sheet, id, shape) {
  const [x, y, w, h] = sheet.given.places[id], sign = document.createElementNS(svg.namespaceURI, "g");
  sign.innerHTML = `<circle cx="${x + w}" cy="${y + h / 2}" r="8.5"/><path d="M${x + w - 2.5} ${y + h / 2 - 4.5}l5.5 4.5l-5.5 4.5z"/>`;
  for (const [name, value] of [["class", "unfold"], ["role", "button"], ["tabindex", "0"], ["aria-expanded", "false"], ["aria-label", `unfold ${boxes.get(id).name}`]]) sign.setAttribute(name, value);
  shape.append(sign);
  shape.addEventListener("click", event => {
    if (!dragged && (shape.classList.contains("kFolded") || event.target.closest(".unfold"))) unfold(id);
  });
  onKey(sign, () => { unfold(id); sheetOf.get(id).opened.get(id).titles[0].focus(); });
}
const made = new Map();
function sheetIn(id) {
  if (made.has(id)) return made.get(id);
  const given = folds.get(id), group = document.createElementNS(svg.namespaceURI, "g");
  group.innerHTML = given.svg;
  const found = new Sheet(group, given, sheetOf.get(id), id);
  for (const [each, shape] of found.shapes) {
    sheetOf.set(each, found);
    const words = document.createElementNS(svg.namespaceURI, "title");
    words.textContent = given.boxes[each].words;
    shape.prepend(words);
  }
  made.set(id, found);
  found.arrange();
  return found;
}
const isOpen = id => Boolean(sheetOf.get(id)?.opened.has(id));

let stale = false;
// Lays out the sheets around a sheet, and the page, after the sheet has changed.
function settle(sheet) {
  for (let each = sheet; each; each = each.up) each.arrange();
  stale = true;
  const [wide, high] = root.size, less = [data.size[0] - wide, data.size[1] - high];
  legend?.setAttribute("transform", `translate(0 ${round(above + high)})`);
  // The picture stays at least as wide as its legend.
  whole.splice(2, 2, Math.max(drawnSize[2] - less[0], Math.min(drawnSize[2], legendWidth + 40)), drawnSize[3] - less[1]);
  set(ground, "width", String(whole[2]));
  set(ground, "height", String(whole[3]));
}
// The coordinates of a point of a sheet in the whole picture.
function placeOf(sheet, [x, y]) {
  for (let each = sheet; each.up; each = each.up) { x += each.at[0]; y += each.at[1]; }
  return [x, y];
}
// Changes a sheet while one point of it stays at the same place of the screen.
function change(sheet, act, before, after) {
  const from = before();
  act();
  settle(sheet);
  const to = after();
  view[0] += to[0] - from[0];
  view[1] += to[1] - from[1];
  show();
  tell();
}
function fold(sheet, number, folded = !sheet.frames[number].folded) {
  if (sheet.up && !number) return shut(sheet.of);
  const where = () => placeOf(sheet, ["x", "y"].map(name => Number(sheet.titles[number].getAttribute(name))));
  change(sheet, () => { sheet.frames[number].folded = folded; }, where, where);
}
const corner = id => placeOf(sheetOf.get(id), sheetOf.get(id).now.get(id));
function unfold(id) {
  const sheet = sheetOf.get(id);
  if (!sheet || isOpen(id) || !folds.has(id)) return;
  const inner = sheetIn(id);
  change(sheet, () => { sheet.group.append(inner.group); sheet.opened.set(id, inner); }, () => corner(id), () => placeOf(inner, [0, 0]));
  again();
}
function shut(id) {
  const sheet = sheetOf.get(id), inner = made.get(id), focus = inner.group.contains(document.activeElement);
  change(sheet, () => { inner.group.remove(); sheet.opened.delete(id); }, () => placeOf(inner, [0, 0]), () => corner(id));
  if (focus) sheet.shapes.get(id).querySelector(".unfold").focus();
  again();
}
// Unfolds the boxes and frames that contain a box, the outermost first.
function open(id) {
  const outer = around.get(id);
  if (outer !== undefined) { open(outer); unfold(outer); }
  const sheet = sheetOf.get(id);
  for (let each = sheet ? sheet.home.get(id) : -1; each >= 0; each = sheet.frames[each].up) if (sheet.frames[each].folded) fold(sheet, each, false);
}
// The box that is visible for a box: itself, or the outermost box that it is folded into.
function seenAs(id) {
  let found = id;
  for (let each = around.get(id); each !== undefined; each = around.get(each)) if (!isOpen(each)) found = each;
  return found;
}

// The drawn lines that stand for a line between boxes of two sheets: those between the boxes that contain its two ends.
const holders = id => around.has(id) ? [id, ...holders(around.get(id))] : [id];
function standIns(id, role, other) {
  for (const a of holders(id)) for (const b of holders(other)) {
    const sheet = sheetOf.get(a), [tail, head] = role === "before" ? [b, a] : [a, b];
    if (a !== b && sheet && sheet === sheetOf.get(b)) return sheet.lines.filter((_, n) => sheet.given.lines[n][0] === tail && sheet.given.lines[n][1] === head);
  }
  return [];
}

// The address: frames that are folded, boxes that are unfolded, outer ones first.
const openSheets = (sheet = root) => [...sheet.opened].flatMap(([id, inner]) => [[id, inner], ...openSheets(inner)]);
function tell() {
  const opened = openSheets(), all = [root, ...opened.map(([, sheet]) => sheet)];
  const folded = all.flatMap(sheet => sheet.frames.filter(each => each.folded)).map(each => encodeURIComponent(each.id));
  const said = [["fold", folded], ["unfold", opened.map(([id]) => encodeURIComponent(id))]].filter(([, each]) => each.length);
  const hash = said.map(([name, each]) => `${name}=${each.join(",")}`).join("&");
  try { history.replaceState(null, "", hash ? `#${hash}` : location.pathname + location.search); } catch { /* a frame of a notebook has no address */ }
}
function asked(name) {
  const words = location.hash.slice(1).split("&").find(each => each.startsWith(`${name}=`)) || "";
  return words.slice(name.length + 1).split(",").filter(Boolean).map(each => { try { return decodeURIComponent(each); } catch { return each; } });
}
function readAddress() {
  const opened = asked("unfold"), folded = new Set(asked("fold")), wanted = new Set(opened);
  for (const [id] of openSheets().reverse()) if (!wanted.has(id)) { sheetOf.get(id).opened.delete(id); made.get(id).group.remove(); }
  for (const id of opened) {
    const sheet = sheetOf.get(id);
    if (!sheet || isOpen(id) || !folds.has(id)) continue;
    sheet.group.append(sheetIn(id).group);
    sheet.opened.set(id, sheetIn(id));
  }
  const all = openSheets().map(([, sheet]) => sheet).reverse();
  for (const sheet of [...all, root]) for (const frame of sheet.frames) frame.folded = folded.has(frame.id);
  for (const sheet of all) sheet.arrange();
  settle(root);
  again();
}
addEventListener("hashchange", () => { readAddress(); show(); });
