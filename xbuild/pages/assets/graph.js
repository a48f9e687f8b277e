// The picture of the program: drag, wheel, and the box of the current instruction marked.
const Graph = {
  scale: 1, x: 0, y: 0, marked: [], mode: "whole",

  start() {
    this.host = byId("graph");
    this.whole = this.svg = this.host.querySelector("svg");
    this.spotsOf = new Map();
    D.boxes.forEach((ids, spot) => ids.forEach(id => (this.spotsOf.get(id) || this.spotsOf.set(id, []).get(id)).push(spot)));
    this.full = this.size = {width: this.svg.viewBox.baseVal.width, height: this.svg.viewBox.baseVal.height};
    this.culled = new Culled(this.whole);
    Around.start(this.host);
    this.markStuck();
    this.host.addEventListener("wheel", event => { event.preventDefault(); this.zoomAt(event.offsetX, event.offsetY, Math.exp(-event.deltaY / 500), event); }, {passive: false});
    this.host.addEventListener("pointerdown", event => this.press(event));
    this.whole.addEventListener("click", event => this.click(event));
    byId("fit").onclick = () => this.fit();
    byId("here").onclick = () => this.find();
    byId("whole").onclick = () => this.show("whole");
    byId("around").onclick = () => this.show("around");
    this.show(D.cut ? "around" : "whole", true);
  },
  // Shows the whole program, or the neighbourhood of the current instruction.
  show(mode, first = false) {
    this.mode = mode;
    for (const name of ["whole", "around"]) byId(name).setAttribute("aria-pressed", String(name === mode));
    this.svg = mode === "whole" ? this.whole : Around.svg;
    this.whole.style.display = mode === "whole" ? "" : "none";
    Around.svg.style.display = mode === "whole" ? "none" : "";
    this.culled.above.style.display = this.whole.style.display;
    this.size = this.full;
    if (mode === "whole") this.fit();
    // Where the whole picture would be too small to read, the current instruction is shown.
    const tiny = mode === "whole" && this.scale < (first ? .6 : .25);
    if (tiny) this.scale = .8;
    this.mark();
    if (tiny || mode === "around") this.find();
  },
  // Sets the view box, and draws only the boxes in view.
  place() {
    const [width, height] = Sizes.graph, view = [-this.x / this.scale, -this.y / this.scale, width / this.scale, height / this.scale];
    if (!width || !height) return;
    if (this.mode === "whole") this.culled.look(...view, this.scale);
    // Sizes are in pixels, since with relative sizes each change of the page would also lay out the picture.
    for (const each of [this.svg, this.culled.above]) for (const [name, value] of [["viewBox", view.join(" ")], ["width", width], ["height", height]])
      if (each.getAttribute(name) !== String(value)) each.setAttribute(name, value);
  },
  resized() { if (this.mode === "around") this.fit(); else this.place(); },
  fit() {
    if (this.mode === "around" && this.drawn == null) return;
    const [width, height] = Sizes.graph;
    this.scale = Math.min(1.25, width / this.size.width, height / this.size.height);
    if (this.mode === "around") { this.middle(width, height); return; }
    this.x = Math.max(0, (width - this.size.width * this.scale) / 2);
    this.y = 0;
    this.place();
  },
  // Shows the neighbourhood at a readable scale; where it does not fit, the current instruction is in the middle.
  middle(width, height) {
    this.scale = Math.min(1.1, Math.max(this.scale, .72));
    const room = this.size.width * this.scale <= width, high = this.size.height * this.scale <= height;
    this.x = room ? (width - this.size.width * this.scale) / 2 : width / 2 - (Around.at[0] - Around.size.x) * this.scale;
    this.y = high ? (height - this.size.height * this.scale) / 2 : height / 2 - (Around.at[1] - Around.size.y) * this.scale;
    this.place();
  },
  zoomAt(_x, _y, factor, event) {
    const box = this.host.getBoundingClientRect(), x = event.clientX - box.left, y = event.clientY - box.top, scale = Math.min(4, Math.max(.04, this.scale * factor));
    this.x = x - (x - this.x) * scale / this.scale;
    this.y = y - (y - this.y) * scale / this.scale;
    this.scale = scale;
    this.place();
  },
  press(event) {
    const start = {x: event.clientX - this.x, y: event.clientY - this.y, at: [event.clientX, event.clientY]};
    this.moved = false;
    const move = next => {
      if (Math.hypot(next.clientX - start.at[0], next.clientY - start.at[1]) > 4) { this.moved = true; this.host.classList.add("drag"); }
      if (this.moved) { this.x = next.clientX - start.x; this.y = next.clientY - start.y; this.place(); }
    };
    const stop = () => { window.removeEventListener("pointermove", move); this.host.classList.remove("drag"); };
    window.addEventListener("pointermove", move);
    window.addEventListener("pointerup", stop, {once: true});
  },
  click(event) {
    const box = event.target.closest(".shapes");
    if (!box || this.moved) return;
    const spots = this.spotsOf.get(box.id) || [];
    for (const device of [state.device, ...lanes.keys()]) for (const spot of spots) {
      const found = lanes[device].nearest(spot, state.time);
      if (found >= 0) { go({device, time: lanes[device].times[found], index: null}); return; }
    }
  },
  boxesOf(spot, device) {
    const ids = D.boxes[spot] || [], own = ids.filter(id => id.startsWith(`d${device}/`));
    return (own.length ? own : ids).map(id => this.culled.boxes.get(id)).filter(Boolean);
  },
  // The boxes of an operand; of a tuple element that is folded into the box of its user, the boxes of the tuple.
  givers(operand, now) {
    if (operand < 0) return [];
    const found = this.boxesOf(operand, state.device).filter(box => !now.includes(box));
    return found.length || D.spots[operand].o !== "get-tuple-element" ? found : this.givers(D.spots[operand].in[0], now);
  },
  // Marks the boxes at which devices stand, at every step; causes are red.
  markStuck() {
    for (const lane of lanes) if (lane.stuck >= 0) for (const box of this.boxesOf(lane.spots[lane.stuck], lane.device)) box.classList.add(lane.state.cause ? "stuck" : "victim");
  },
  mark() {
    for (const box of this.marked) box.classList.remove("now", "input");
    const i = currentEvent(), lane = lanes[state.device];
    this.marked = [];
    if (this.mode === "around") { this.markAround(lane, i); return; }
    if (i < 0) { this.culled.mark([]); return; }
    const now = this.boxesOf(lane.spots[i], state.device);
    this.marked = [...new Set(lane.spot(i).in.flatMap(operand => this.givers(operand, now))), ...now];
    for (const box of this.marked) box.classList.add(now.includes(box) ? "now" : "input");
    this.culled.mark(this.marked.map(box => ({box, role: now.includes(box) ? "now" : "input"})));
    this.keepInView();
  },
  markAround(lane, i) {
    if (i < 0) { Around.clear(); this.drawn = null; return; }
    const spot = lane.spots[i];
    if (this.drawn !== spot) { Around.draw(spot); this.drawn = spot; this.size = Around.size; this.fit(); }
    this.size = Around.size;
    for (const operand of lane.spot(i).in) if (Around.boxes.has(operand)) { const box = Around.boxes.get(operand); box.classList.add("input"); this.marked.push(box); }
    const box = Around.boxes.get(spot);
    box.classList.add("now");
    this.marked.push(box);
  },
  keepInView() {
    const box = this.marked[this.marked.length - 1];
    if (!box) return;
    const [x, y, wide, high] = this.culled.extent(box), left = this.x + x * this.scale, top = this.y + y * this.scale, [width, height] = Sizes.graph;
    if (left < 0 || left + wide * this.scale > width || top < 0 || top + high * this.scale > height) this.find();
  },
  find() {
    const box = this.marked[this.marked.length - 1];
    if (!box || this.mode === "around") { this.fit(); return; }
    const [x, y, wide, high] = this.culled.extent(box), [width, height] = Sizes.graph;
    if (this.scale < .6) this.scale = .8;
    this.x = this.within(width / 2 - (x + wide / 2) * this.scale, width, this.size.width * this.scale, .5);
    this.y = this.within(height / 2 - (y + high / 2) * this.scale, height, this.size.height * this.scale, 0);
    this.place();
  },
  // A position at which the picture fills the room; a smaller picture has this share of the free room before it.
  within(at, room, size, share) { return size <= room ? (room - size) * share : Math.max(room - size, Math.min(0, at)); },
};
