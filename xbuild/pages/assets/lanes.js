// The lanes: a window of logical time around the current step, all of it in the strip below.
const ZOOMS = [64, 44, 16, 7, 3, 1.2];
const ABOVE = 24;
const Lanes = {
  zoom: 0, zooms: ZOOMS, first: 1, top: 0, bottom: 1e9, boxes: [], sent: [], met: [],
  row: lanes.length <= 6 ? 50 : lanes.length <= 16 ? 34 : lanes.length <= 48 ? 22 : 13,

  start() {
    this.host = byId("lanes");
    this.height = ABOVE + this.row * lanes.length + 24;
    this.svg = element(this.host, "svg", {height: this.height, role: "img", "aria-label": "lanes of the devices over logical time"});
    element(this.svg, "defs", {}).innerHTML = '<pattern id="hatch" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line y2="6" stroke="var(--wait)" stroke-width="2"/></pattern>'
      + '<pattern id="hatch-dim" width="6" height="6" patternUnits="userSpaceOnUse" patternTransform="rotate(45)"><line y2="6" stroke="var(--dim)" stroke-width="1.2"/></pattern>'
      + '<marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="var(--coll)"/></marker>';
    this.ground = element(this.svg, "g", {});
    Sizes.measure();
    this.measure();
    this.zoom = Math.min(this.row < 20 ? 2 : ZOOMS[0] * D.end > 2 * this.width ? 1 : 0, this.zooms.length - 1);
    Blocks.start();
    let asked = 0;
    this.host.addEventListener("scroll", () => { cancelAnimationFrame(asked); asked = requestAnimationFrame(() => { this.top = this.host.scrollTop; this.draw(); }); });
    byId("in").onclick = () => this.scale(-1);
    byId("out").onclick = () => this.scale(1);
    byId("all").onclick = () => this.scale(ZOOMS.length);
    this.host.addEventListener("wheel", event => {
      const sideways = Math.abs(event.deltaX) > Math.abs(event.deltaY) ? event.deltaX : event.shiftKey ? event.deltaY : 0;
      if (!sideways) return;
      event.preventDefault();
      this.first += Math.sign(sideways) * Math.max(1, Math.round(this.shown / 12));
      this.draw();
    }, {passive: false});
  },
  // The first step in view, within bounds; a stopped run has room behind its end for the texts of its waits.
  bounded(first) { return Math.max(1, Math.min(first, D.end + (D.stop ? Math.max(2, this.shown >> 1) : 2) - this.shown)); },
  // Names of devices take no more than a third of a narrow page.
  measure() {
    this.width = Sizes.lanes[0] || 800;
    this.label = Math.min(Math.max(...D.labels.slice(0, 300).map(each => each.length)) * 7.7 + 16, this.width / 3);
    // The last zoom shows the whole run.
    const fit = Math.min(ZOOMS[0], (this.width - this.label - 14) / (D.end + (D.stop ? 4 : 1)));
    this.zooms = [...ZOOMS.filter(px => px > 1.15 * fit), fit];
    this.zoom = Math.min(this.zoom, this.zooms.length - 1);
  },
  get px() { return this.zooms[this.zoom]; },
  get shown() { return Math.max(4, Math.floor((this.width - this.label - 14) / this.px)); },
  x(time) { return this.label + (time - this.first + 0.5) * this.px; },
  y(device) { return ABOVE + (device + 0.5) * this.row; },
  scale(change) {
    this.zoom = Math.min(this.zooms.length - 1, Math.max(0, this.zoom + change));
    this.first = state.time - Math.floor(this.shown / 2);
    this.draw();
  },
  // Keeps the current time in view and, where the device has changed, its lane.
  follow(toLane) {
    const y = this.y(state.device), high = Sizes.lanes[1];
    if (toLane && (y - this.row < this.top || y + this.row > this.top + high - 22)) this.scrollTo(y - high / 2);
    this.measure();
    const margin = Math.min(3, this.shown >> 2);
    if (state.time < this.first + margin || state.time > this.first + this.shown - 1 - margin)
      this.first = state.time - Math.floor(this.shown / 3);
    this.first = this.bounded(this.first);
  },
  scrollTo(top) {
    this.host.scrollTop = top;
    this.top = this.host.scrollTop;
  },
  // Draws all events in view where the view has changed, else only the parts that depend on the step.
  draw() {
    this.first = this.bounded(this.first);
    this.bottom = Sizes.lanes[1] ? this.top + Sizes.lanes[1] : 1e9;
    const view = [this.first, this.zoom, this.width, this.top, this.bottom].join();
    if (view !== this.view) this.drawAll();
    this.view = view;
    this.mark();
    Strip.draw();
  },
  drawAll() {
    const svg = document.createElementNS(SVG, "g"), low = Math.min(this.height, Math.max(this.bottom, 60));
    this.svg.setAttribute("viewBox", `0 0 ${this.width} ${this.height}`);
    this.boxes = []; this.sent = [];
    this.axis(svg, this.height);
    this.line = element(svg, "line", {y1: ABOVE - 12, y2: low - 20, stroke: "var(--now)", "stroke-width": 2, "pointer-events": "none"});
    this.meetings(svg);
    this.labels = new Map();
    lanes.forEach(lane => { if (this.sees(lane.device)) this.lane(svg, lane); });
    this.arrows(svg);
    this.named = element(svg, "g", {});
    this.times(svg, low);
    this.ground.replaceWith(svg);
    this.ground = svg;
    this.now = [];
    this.chosen = null;
  },
  // Marks the current step, device and box, the transfers sent before, and the names of collectives.
  mark() {
    const x = this.x(state.time), {device, time} = state;
    this.line.setAttribute("x1", x);
    this.line.setAttribute("x2", x);
    for (const box of this.now) this.stroke(box, false);
    this.now = this.boxes.filter(box => box.device === device && box.from <= time && box.to >= time);
    for (const box of this.now) this.stroke(box, true);
    for (const {line, sent} of this.sent) line.setAttribute("opacity", sent <= time ? 1 : .4);
    if (this.chosen !== device) for (const [each, label] of this.labels) {
      label.setAttribute("class", each === device ? "" : "d");
      label.setAttribute("font-weight", each === device ? 700 : 400);
    }
    this.chosen = device;
    this.names();
  },
  stroke({rect, look}, isNow) {
    const [colour, wide, dashes] = isNow ? ["now", 2.4, ""] : look;
    rect.setAttribute("stroke", `var(--${colour})`);
    rect.setAttribute("stroke-width", wide);
    rect.setAttribute("stroke-dasharray", dashes);
  },
  // Whether a part of a lane, or of the lanes between two devices, is in view.
  sees(device, other = device) {
    return this.y(Math.max(device, other)) + this.row > this.top && this.y(Math.min(device, other)) - this.row < this.bottom;
  },
  ticks() {
    const every = [1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000, 5000].find(n => n * this.px >= 42) || 10000, found = [];
    for (let time = Math.ceil(this.first / every) * every; time < this.first + this.shown && time <= D.end + 1; time += every) found.push(time);
    return found;
  },
  axis(svg, height) {
    for (const time of this.ticks()) element(svg, "line", {x1: this.x(time), x2: this.x(time), y1: ABOVE - 10, y2: height - 22, stroke: "var(--grid)"});
  },
  times(svg, bottom) {
    element(svg, "rect", {x: 0, y: bottom - 21, width: this.width, height: 22, fill: "var(--bg)"});
    for (const time of this.ticks()) element(svg, "text", {x: this.x(time), y: bottom - 7, "text-anchor": "middle", class: "d", style: "font-size:11px"}, time);
  },
  lane(svg, lane) {
    const y = this.y(lane.device);
    const most = Math.floor(this.label / 7.6), name = D.labels[lane.device];
    const label = element(svg, "text", {x: 0, y: y + 4, style: `cursor:pointer;font-size:${Math.min(12.5, this.row - 1)}px`}, name.length > most ? `${name.slice(0, most - 1)}…` : name);
    label.addEventListener("click", () => go({device: lane.device}));
    this.labels.set(lane.device, label);
    element(svg, "line", {x1: this.label - 6, x2: this.width - 6, y1: y, y2: y, stroke: "var(--line)"});
    Blocks.draw(svg, lane);
    let i = Math.max(0, lane.at(this.first - 1)), drawn = -1;
    const last = this.first + this.shown;
    for (; i < lane.length && lane.since(i) <= last; i++) {
      if (lane.waited.has(i)) this.wait(svg, lane, i);
      // Of several events in one pixel, the first is drawn.
      if (lane.times[i] < this.first || lane.times[i] > last || (this.px < .8 && (lane.times[i] - drawn) * this.px < .8)) continue;
      drawn = lane.times[i];
      i = this.event(svg, lane, i, last);
    }
    Blocks.name(svg, lane);
    if (D.stop && lane.state) this.standing(svg, lane);
  },
  // Draws one event or, where steps are narrow, a run of local events; returns the last event drawn.
  event(svg, lane, i, last) {
    const spot = lane.spot(i), px = this.px, tall = Math.min(26, this.row - 5), y = this.y(lane.device);
    let end = i;
    if (px < 12 && !COMMUNICATES.has(spot.k))
      while (end + 1 < lane.length && end + 1 !== lane.stuck && lane.times[end + 1] === lane.times[end] + 1 && lane.times[end] < last
        && (px < 5 ? !COMMUNICATES.has(lane.spot(end + 1).k) : lane.spot(end + 1).k === spot.k)) end++;
    const group = element(svg, "g", {class: "ev"});
    const left = this.x(lane.times[i]) - px * 0.45, wide = Math.max(1.2, this.x(lane.times[end]) - this.x(lane.times[i]) + px * 0.9);
    const kind = px < 5 && end > i ? "K" : spot.k, stuck = i === lane.stuck ? (lane.state.cause ? "wait" : "dim") : null;
    const rect = element(group, "rect", {x: left, y: y - tall / 2, width: wide, height: tall, rx: Math.min(4, px / 4), fill: `var(--${kind})`});
    const box = {rect, device: lane.device, from: lane.times[i], to: lane.times[end], look: [stuck || `${kind}b`, stuck ? 1.8 : px < 5 ? 0 : 1, stuck ? "4 3" : ""]};
    this.stroke(box, false);
    this.boxes.push(box);
    this.odd(group, lane, i, end, y - tall / 2);
    if (px >= 30 && tall > 11) {
      const most = Math.floor((px * 0.9 - 3) / 6.4), text = short(spot, most);
      element(group, "text", {x: this.x(lane.times[i]), y: y + 4, "text-anchor": "middle", style: `font-size:10.5px${"DF".includes(spot.k) ? ";fill:#fff" : ""}`}, text);
    }
    element(group, "title", {}, end > i ? `${end - i + 1} instructions from ${spot.n}` : `${spot.n}  ${spot.s}${spot.p.length ? `\nin ${spot.p.join(" / ")}` : ""}`);
    group.addEventListener("click", event => {
      const whole = this.svg.getBoundingClientRect(), offset = Math.round((event.clientX - whole.left) * this.width / whole.width / px - (this.label / px) + this.first - 0.5);
      go({device: lane.device, time: end > i ? Math.min(lane.times[end], Math.max(lane.times[i], offset)) : lane.times[i], index: null});
    });
    return end;
  },
  // Draws the mark of a NaN or an infinity that is born at an event, or of a finding of a strict run.
  odd(group, lane, i, end, top) {
    const found = (D.marks[lane.device] || []).filter(([event]) => event >= i && event <= end);
    if (!found.length) return;
    const x = this.x(lane.times[found[0][0]]), mark = element(group, "path", {d: `M${x - 5} ${top - 7}h10l-5 7z`, fill: "var(--wait)", class: "mark"});
    element(mark, "title", {}, found.slice(0, 6).map(each => each[1]).join("\n"));
  },
  wait(svg, lane, i) {
    const from = Math.max(this.first - 0.5, lane.since(i) - 0.45), to = Math.min(this.first + this.shown, lane.times[i] - 0.55);
    if (to <= from) return;
    const y = this.y(lane.device), partner = partners.get(`${lane.device}:${i}`);
    const group = element(svg, "g", {});
    element(group, "rect", {x: this.x(from), y: this.row < 44 ? y - 9 : y - 6, width: (to - from) * this.px, height: 12, fill: "url(#hatch)", opacity: .38});
    const words = partner ? `waits for ${partner.text}` : "waits";
    element(group, "title", {}, words);
    this.words(group, words, this.x(from) + 2, y, (to - from) * this.px, "dim");
  },
  // Writes text below a lane, cut to the room.
  words(group, text, x, y, width, colour) {
    const most = Math.floor(width / 6.4);
    if (width > 90 && this.row >= 34) element(group, "text", {x, y: y + this.row / 2 - 3, style: `font-size:10.5px;fill:var(--${colour})`}, text.length > most ? `${text.slice(0, most - 1)}…` : text);
  },
  meetings(svg) {
    this.met = D.meets.filter(meet => meet.t >= this.first && meet.t <= this.first + this.shown && meet.e.length > 1);
    for (const meet of this.met) {
      if (!this.sees(meet.e[0][0], meet.e[meet.e.length - 1][0]) && !meet.e.some(each => this.sees(each[0]))) continue;
      const x = this.x(meet.t), devices = meet.e.map(each => each[0]), top = this.y(Math.min(...devices)), bottom = this.y(Math.max(...devices));
      const wide = Math.max(3, this.px * .98), tall = Math.min(20, this.row * .48), group = element(svg, "g", {"pointer-events": "none"});
      element(group, "rect", {x: x - wide / 2, y: top - tall, width: wide, height: bottom - top + 2 * tall, rx: Math.min(9, wide / 2), fill: "var(--coll-bg)", stroke: "var(--coll)", "stroke-width": 1.3, class: "meeting"});
      const inside = new Set(devices);
      for (const lane of lanes) if (this.sees(lane.device) && !inside.has(lane.device) && this.y(lane.device) > top && this.y(lane.device) < bottom)
        element(group, "rect", {x: x - wide / 2, y: this.y(lane.device) - this.row / 2, width: wide, height: this.row, fill: "var(--bg)", opacity: .75});
    }
  },
  arrows(svg) {
    const last = this.first + this.shown;
    for (const [source, send, target, done] of D.sends) {
      const from = lanes[source].times[send], to = lanes[target].times[done];
      if (to < this.first || from > last || !this.sees(source, target)) continue;
      // The curve goes from below (or above) the send to above (or below) the recv-done, so that it crosses no box.
      const way = Math.sign(target - source), tall = Math.min(26, this.row - 5) / 2 * way, gap = Math.max(6, (this.row - 2 * Math.abs(tall)) * .9) * way;
      const x1 = this.x(from) + this.px * .18, x2 = this.x(to) - this.px * .18, y1 = this.y(source) + tall, y2 = this.y(target) - tall;
      const line = element(svg, "path", {class: "transfer", d: `M${x1} ${y1}C${x1} ${y1 + gap},${x2} ${y2 - gap},${x2} ${y2}`, fill: "none", stroke: "var(--coll)", "stroke-width": this.px < 12 ? .8 : 1.5,
        "marker-end": this.px < 7 ? "" : "url(#tip)", "pointer-events": "none"});
      this.sent.push({line, sent: from});
    }
  },
  // Names of collectives above their bars, that of the current step first, others where there is room.
  names() {
    if (this.px < 16 || this.top > 4) return;
    const taken = [], seen = this.met.sort((a, b) => (b.t === state.time) - (a.t === state.time) || a.t - b.t);
    this.named.replaceChildren();
    for (const meet of seen) {
      const half = meet.n.length * 3.3 + 4, x = Math.max(this.label + half, Math.min(this.width - half, this.x(meet.t)));
      if (taken.some(other => Math.abs(other[0] - x) < other[1] + half)) continue;
      taken.push([x, half]);
      const top = this.y(Math.min(...meet.e.map(each => each[0])));
      element(this.named, "text", {x, y: top - Math.min(20, this.row * .48) - 4, "text-anchor": "middle", class: "halo name", style: "font-size:11px;fill:var(--coll)", "pointer-events": "none"}, meet.n);
    }
  },
  // Draws the halt of a device in a stopped run: hatched from its last event on, with the text of its wait.
  standing(svg, lane) {
    const {state: each} = lane, from = lane.end + .55, y = this.y(lane.device), colour = each.cause ? "wait" : "dim";
    if (from > this.first + this.shown) return;
    const x = this.x(Math.max(from, this.first - .5)), wide = Math.max(this.width - 8 - x, 4);
    if (each.ended) { element(svg, "text", {x: x + 3, y: y + 4, style: `font-size:11px;fill:var(--${colour})`}, "■ has ended"); return; }
    const group = element(svg, "g", {class: "blocked"}), words = each.waits_for ? `waits for ${named(each.waits_for)}` : each.stands_at ? "stopped here" : "has not started";
    element(group, "rect", {x, y: this.row < 44 ? y - 10 : y - 8, width: wide, height: this.row < 44 ? 12 : 16, fill: each.cause ? "url(#hatch)" : "url(#hatch-dim)", opacity: .6});
    element(group, "title", {}, words);
    this.words(group, words, x + 3, y, wide, colour);
  },
};

// Abbreviations of HLO opcodes in at most five letters and in at most eight, for narrow boxes.
const SHORT = Object.fromEntries(`parameter param param,constant const constant,convert cvt convert,after-all token token,replica-id rid replica,partition-id pid partitn,remainder rem rem,
dynamic-slice slice dslice,dynamic-update-slice updt dus,get-tuple-element gte gte,multiply mul multiply,subtract sub subtract,divide div divide,negate neg negate,broadcast bcast bcast,
transpose trans transp,reshape shape reshape,concatenate cat concat,exponential exp exp,maximum max max,minimum min min,compare cmp compare,select sel select,reduce red reduce,
reduce-window window window,convolution conv conv,conditional cond cond,all-reduce a-red all-red,all-gather a-gat all-gath,all-to-all a2a a-to-a,reduce-scatter r-sc red-scat,
collective-permute cperm c-perm,collective-broadcast cbc c-bcast,send-done sent sdone,recv-done done rdone,custom-call call custom,scatter scat scatter,gather gath gather,bitcast bitc bitcast,infeed inf infeed,outfeed outf outfeed`
  .split(/,\s*/).map(line => { const [word, five, eight] = line.split(" "); return [word, [eight, five]]; }));

// The name of a spot in at most `most` letters.
function short(spot, most) {
  const word = spot.n.replace(/\.\d+$/, ""), isOwn = COMMUNICATES.has(spot.k) || spot.k === "P" || !word.includes("_");
  const known = SHORT[word] || (isOwn || word.length <= most ? [] : [spot.o, ...(SHORT[spot.o] || [])]);
  return [spot.n, word, ...known].find(text => text.length <= most) || `${word.slice(0, Math.max(1, most - 1))}…`;
}
