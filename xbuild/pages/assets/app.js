// The state of the page: a step, a device, perhaps an element; all views show this state, and the address encodes it.
const state = {time: 1, device: 0, index: null, part: null};

// The pending redraw: of the steps that a held key requests within one frame, only the last is drawn.
const pending = {toLane: false, isHeld: false, frame: 0};

const currentEvent = () => lanes[state.device].at(state.time);

function go(changes) {
  const before = {...state};
  if ("device" in changes || "time" in changes || "index" in changes) state.index = state.part = null;
  Object.assign(state, changes);
  state.time = Math.max(1, Math.min(D.end || 1, Math.round(state.time) || 1));
  state.device = Math.max(0, Math.min(lanes.length - 1, Math.round(state.device) || 0));
  pending.toLane ||= before.device !== state.device;
  if (pending.isHeld) pending.frame ||= requestAnimationFrame(show);
  else show();
  clearTimeout(go.asked);
  go.asked = setTimeout(keepAddress, 120);
}

function show() {
  cancelAnimationFrame(pending.frame);
  const {toLane} = pending;
  Object.assign(pending, {toLane: false, frame: 0});
  draw(toLane);
}

// Writes the state to the address, after a pause, since each change of the address costs as much as a step.
function keepAddress() {
  const address = ["step", "device", "part", "index"].map(name => [name, state[name === "step" ? "time" : name]]).filter(each => each[1] != null);
  try { history.replaceState(null, "", `#${address.map(each => each.join("=")).join("&")}`); } catch { /* in a frame of a notebook there is no address to keep it */ }
}

function draw(toLane = true) {
  Lanes.follow(toLane);
  Lanes.draw();
  Graph.mark();
  Side.draw();
  byId("slider").value = state.time;
  byId("clock").textContent = `step ${state.time} / ${D.end}`;
  const i = currentEvent();
  byId("slider").setAttribute("aria-valuetext", byId("said").textContent = `step ${state.time}, ${D.labels[state.device]}: ${i < 0 ? "has not started" : lanes[state.device].spot(i).n}`);
}

function readAddress() {
  const asked = new URLSearchParams(location.hash.slice(1)), found = {};
  for (const [name, key] of [["step", "time"], ["device", "device"], ["part", "part"], ["index", "index"]]) if (asked.has(name)) found[key] = Number(asked.get(name));
  for (const key in found) if (!Number.isFinite(found[key])) delete found[key];
  const name = asked.get("at"), spot = name ? D.spots.findIndex(each => each.n === name) : -1;
  if (spot >= 0) { const device = found.device ?? 0, event = lanes[device].nearest(spot, found.time ?? 1); if (event >= 0) found.time = lanes[device].times[event]; }
  return found;
}

function chip() {
  const kind = D.stop ? "stopped" : D.verdict ? D.verdict.kind : "", bad = D.stop || (D.verdict && D.verdict.refused);
  if (!kind) return;
  const refused = D.verdict && D.verdict.refused;
  const words = named(D.stop && !refused ? `stopped: ${D.stop.cause || D.stop.message}` : D.verdict.text.split("\n")[0].replace(/ \[\w+\]$/, ""));
  byId("verdict").append(html("span", {class: `chip ${bad ? "bad" : kind === "ok" ? "ok" : "warn"}`, title: words}, words));
}

function marks() {
  const host = byId("marks"), at = new Map();
  for (const [device, found] of Object.entries(D.marks)) for (const [event, text] of found) {
    const time = lanes[device].times[event], place = Math.floor(time * 200 / (D.end + 1));
    (at.get(place) || at.set(place, []).get(place)).push({device: Number(device), time, words: `step ${time}, ${D.labels[device]}: ${named(text)}`});
  }
  for (const found of at.values()) {
    const {device, time} = found.reduce((a, b) => b.time < a.time ? b : a), more = found.length > 6 ? [`and ${found.length - 6} more`] : [], words = [...found.slice(0, 6).map(each => each.words), ...more].join("\n");
    host.append(html("button", {type: "button", tabindex: -1, title: words, "aria-label": words, on: () => go({device, time}), style: `left:${100 * (time - 1) / Math.max(1, D.end - 1)}%`}));
  }
}

const Search = {
  start() {
    this.box = byId("search"); this.list = byId("found"); this.chosen = 0;
    this.box.addEventListener("input", () => this.look());
    this.box.addEventListener("keydown", event => this.key(event));
    this.box.addEventListener("blur", () => setTimeout(() => this.open(false), 150));
  },
  look() {
    const words = this.box.value.toLowerCase().split(/\s+/).filter(Boolean);
    const found = words.length ? D.spots.map((spot, n) => [n, `${spot.n} ${spot.o} ${spot.s} ${spot.p.join(" ")} ${spot.w ? spot.w[0] : ""}`.toLowerCase()]).filter(([, text]) => words.every(word => text.includes(word))).slice(0, 40) : [];
    this.found = found.map(each => each[0]);
    this.chosen = 0;
    this.list.replaceChildren(...this.found.map((n, place) => html("li", {role: "option", "aria-selected": String(!place), on: () => this.take(n)}, html("span", {class: "m"}, D.spots[n].n), html("span", {class: "more"}, `  ${D.spots[n].s} ${D.spots[n].p.join(" / ")}`))));
    this.open(this.found.length > 0);
  },
  open(is) {
    this.list.style.display = is ? "block" : "none";
    this.box.setAttribute("aria-expanded", String(is));
  },
  key(event) {
    if (event.key === "Escape") { this.box.value = ""; this.look(); this.box.blur(); }
    else if (event.key === "Enter" && this.found && this.found.length) { this.take(this.found[this.chosen]); this.box.blur(); }
    else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      this.chosen = Math.max(0, Math.min((this.found || []).length - 1, this.chosen + (event.key === "ArrowDown" ? 1 : -1)));
      [...this.list.children].forEach((each, n) => each.setAttribute("aria-selected", String(n === this.chosen)));
    }
  },
  take(spot) {
    this.open(false);
    for (const device of [state.device, ...lanes.keys()]) {
      const event = lanes[device].nearest(spot, state.time);
      if (event >= 0) { go({device, time: lanes[device].times[event]}); return; }
    }
  },
};

function setTheme(name) {
  document.documentElement.dataset.theme = name;
  try { localStorage.setItem("xbuild-theme", name); } catch { /* a page from a file may have no storage */ }
}

const KEYS = {
  j: () => go({time: state.time + 1}), k: () => go({time: state.time - 1}), ArrowRight: () => go({time: state.time + 1}), ArrowLeft: () => go({time: state.time - 1}),
  ArrowDown: () => go({device: state.device + 1}), ArrowUp: () => go({device: state.device - 1}), Home: () => go({time: 1}), End: () => go({time: D.end}),
  m: () => nextMark(), "?": () => byId("keys").showModal(), n: () => nextOf(1), p: () => nextOf(-1), "/": () => byId("search").focus(), "+": () => Lanes.scale(-1), "-": () => Lanes.scale(1), 0: () => Lanes.scale(ZOOMS.length), f: () => Graph.fit(), c: () => Graph.find(), v: () => Graph.show(Graph.mode === "whole" ? "around" : "whole"),
  t: () => { setTheme(document.documentElement.dataset.theme === "dark" ? "light" : "dark"); draw(); },
};

// Goes to the next communicating instruction of the device.
function nextOf(way) {
  const lane = lanes[state.device];
  for (let i = currentEvent() + way; i >= 0 && i < lane.length; i += way) if (COMMUNICATES.has(lane.spot(i).k)) { go({time: lane.times[i]}); return; }
}

// Goes to the next mark on the time axis; after the last mark, to the first.
function nextMark() {
  const all = Object.entries(D.marks).flatMap(([device, found]) => found.map(([event]) => ({device: Number(device), time: lanes[device].times[event]}))).sort((a, b) => a.time - b.time || a.device - b.device);
  const next = all.find(each => each.time > state.time || (each.time === state.time && each.device > state.device)) || all[0];
  if (next) go(next);
}

function start() {
  let theme = matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  try { theme = localStorage.getItem("xbuild-theme") || theme; } catch { /* as above */ }
  setTheme(theme);
  byId("facts").textContent = D.facts.join(" · ");
  chip();
  marks();
  const slider = byId("slider");
  slider.max = Math.max(1, D.end);
  slider.addEventListener("input", () => go({time: Number(slider.value)}));
  byId("back").onclick = KEYS.k;
  byId("forward").onclick = KEYS.j;
  byId("theme").onclick = KEYS.t;
  byId("help").onclick = KEYS["?"];
  document.addEventListener("keydown", event => {
    if (event.target.matches("input[type=search],input[type=number]") || byId("keys").open || event.ctrlKey || event.metaKey || event.altKey || !KEYS[event.key]) return;
    event.preventDefault();
    pending.isHeld = event.repeat;
    try { KEYS[event.key](); } finally { pending.isHeld = false; }
  });
  window.addEventListener("hashchange", () => go({index: null, ...readAddress()}));
  Lanes.start();
  Strip.start();
  Sizes.start();
  Graph.start();
  Modelled.start();
  Search.start();
  go(Object.assign({time: D.stop ? D.end : 1}, readAddress()));
}

start();
