// The picture of the program: drag, wheel, and the box of the current instruction marked.
const Graph = {
  scale: 1, x: 0, y: 0, marked: [], mode: "whole",

  start() {
    this.host = byId("graph");
    this.whole = this.svg = this.host.querySelector("svg");
    this.spotsOf = new Map();
    D.boxes.forEach((ids, spot) => ids.forEach(id => (this.spotsOf.get(id) || this.spotsOf.set(id, []).get(id)).push(spot)));
    this.full = this.size = {width: this.svg.viewBox.baseVal.width, height: this.svg.viewBox.baseVal.height};
    Around.start(this.host);
    this.host.addEventListener("wheel", event => { event.preventDefault(); this.zoomAt(event.offsetX, event.offsetY, Math.exp(-event.deltaY / 500), event); }, {passive: false});
    this.host.addEventListener("pointerdown", event => this.press(event));
    this.whole.addEventListener("click", event => this.click(event));
    byId("fit").onclick = () => this.fit();
    byId("here").onclick = () => this.find();
    byId("whole").onclick = () => this.show("whole");
    byId("around").onclick = () => this.show("around");
    this.show(D.cut ? "around" : "whole");
    setTimeout(() => this.host.classList.add("live"), 300);
  },
  // The whole program, or what is around the current instruction.
  show(mode) {
    this.mode = mode;
    for (const name of ["whole", "around"]) byId(name).setAttribute("aria-pressed", String(name === mode));
    this.svg = mode === "whole" ? this.whole : Around.svg;
    this.whole.style.display = mode === "whole" ? "" : "none";
    Around.svg.style.display = mode === "whole" ? "none" : "";
    this.size = this.full;
    this.mark();
    if (mode === "whole") { this.fit(); this.keepInView(); }
  },
  place() { this.svg.style.transform = `translate(${this.x}px,${this.y}px) scale(${this.scale})`; },
  fit() {
    const {clientWidth: width, clientHeight: height} = this.host;
    this.scale = Math.min(1.25, width / this.size.width, height / this.size.height);
    if (this.mode === "around") { this.middle(width, height); return; }
    if (this.scale < .45) this.scale = Math.max(this.scale, Math.min(.45, width / Math.min(this.size.width, 1400)));
    this.x = Math.max(0, (width - this.size.width * this.scale) / 2);
    this.y = Math.max(0, (height - this.size.height * this.scale) / 2);
    this.place();
  },
  // The neighbourhood, so large that it can be read; the current instruction in the middle where not all has room.
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
    return (own.length ? own : ids).map(id => document.getElementById(id)).filter(Boolean);
  },
  mark() {
    for (const box of this.marked) box.classList.remove("now", "input");
    const i = currentEvent(), lane = lanes[state.device];
    this.marked = [];
    if (this.mode === "around") { this.markAround(lane, i); return; }
    if (i < 0) return;
    for (const operand of lane.spot(i).in) if (operand >= 0) for (const box of this.boxesOf(operand, state.device)) { box.classList.add("input"); this.marked.push(box); }
    for (const box of this.boxesOf(lane.spots[i], state.device)) { box.classList.add("now"); this.marked.push(box); }
    this.keepInView();
  },
  markAround(lane, i) {
    if (i < 0) { Around.svg.replaceChildren(); this.drawn = null; return; }
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
    const inner = box.getBoundingClientRect(), outer = this.host.getBoundingClientRect();
    if (inner.left < outer.left || inner.right > outer.right || inner.top < outer.top || inner.bottom > outer.bottom) this.find();
  },
  find() {
    const box = this.marked[this.marked.length - 1];
    if (!box || this.mode === "around") { this.fit(); return; }
    const at = box.getBBox(), {clientWidth: width, clientHeight: height} = this.host;
    const middle = [at.x + at.width / 2, at.y + at.height / 2], group = this.offset(box);
    if (this.scale < .5) this.scale = .8;
    this.x = width / 2 - (middle[0] + group[0]) * this.scale;
    this.y = height / 2 - (middle[1] + group[1]) * this.scale;
    this.place();
  },
  // How far the groups around a box have moved it.
  offset(box) {
    let x = 0, y = 0;
    for (let each = box.parentNode; each && each !== this.svg; each = each.parentNode)
      for (const change of each.transform.baseVal) { x += change.matrix.e; y += change.matrix.f; }
    return [x, y];
  },
};
