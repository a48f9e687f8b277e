// The global array of a value of a partitioned program: a block for each tile, with the devices that have it.
const Tiles = {
  most: 64, mode: "tiles",

  // What the panel shows of the results: the global array where there is one, else each device's own.
  isOn: spot => spot.g != null && Tiles.mode === "tiles",

  switch(spot) {
    if (spot.g == null) return null;
    const button = (mode, words, title) => html("button", {type: "button", title, "aria-pressed": String(this.mode === mode), on: () => { this.mode = mode; Side.draw(); }}, words);
    return html("span", {class: "switch", role: "group", "aria-label": "how the results are shown"}, button("tiles", "global", "show the global array as tiles of the devices"), button("devices", "devices", "show the result on each device"));
  },

  heading(spot) {
    return html("p", {class: "more m"}, D.arrays[spot.g].v === spot.n ? "" : `%${D.arrays[spot.g].v}  `, D.arrays[spot.g].t);
  },

  // Why the value is cut as it is, and why a collective was inserted.
  reasons(spot) {
    const found = [];
    if (spot.r) found.push(html("p", {class: "rule inserted"}, spot.r[0], html("span", {class: "source"}, `\n${spot.r[1]}`)));
    return found;
  },
  causes(spot) {
    const why = spot.g == null ? [] : D.arrays[spot.g].why;
    return why.length ? [html("h2", {}, "Why the array has this sharding"), html("div", {class: "rule"}, ...why.map(each => html("div", {}, each)))] : [];
  },

  // The tiles in the order of their places, each with its devices; parts that are still to be joined stand one after the other.
  groups(layout) {
    if (layout.groups) return layout.groups;
    const found = new Map();
    layout.at.forEach((at, device) => {
      const part = layout.part ? layout.part[device] : 0, key = [part, ...at].join();
      (found.get(key) || found.set(key, {part, at, devices: []}).get(key)).devices.push(device);
    });
    // Where the last two dimensions are whole, tiles are panels, which stand side by side.
    const rank = layout.n.length, panels = rank > 2 && layout.n.slice(-2).every(n => n === 1), order = each => [each.part, ...each.at].reduce((sum, n, place) => sum * (place ? layout.n[place - 1] : 1) + n, 0);
    return layout.groups = {all: [...found.values()].sort((a, b) => order(a) - order(b)), columns: panels ? [4, 3, 2].find(n => found.size % n === 0) || 1 : rank ? layout.n[rank - 1] : 1};
  },

  show(spot, turn, chosen, at) {
    const layout = D.layouts[D.arrays[spot.g].at], {all, columns} = this.groups(layout), across = Math.min(columns, Math.max(1, Math.floor((room() + 10) / 84))), few = this.near(all, columns, across);
    const host = html("div", {class: "tiles", style: `grid-template-columns:repeat(${across},minmax(0,1fr))`});
    for (const each of few) host.append(this.tile(each, layout, turn, chosen, at, room() / across - 14));
    if (few.length < all.length) host.append(html("p", {class: "more others"}, `${few.length} of ${all.length} tiles, around the tile of ${D.labels[state.device]}`));
    return host;
  },
  // Of many tiles a block of rows and columns around the tile of the device, so that neighbours stay neighbours.
  near(all, columns, across) {
    const own = Math.max(0, all.findIndex(each => each.devices.includes(state.device))), rows = all.length / columns, down = Math.min(rows, Math.max(1, Math.floor(this.most / across)));
    const from = (place, shown, count) => Math.max(0, Math.min(count - shown, place - (shown >> 1))), top = from(Math.floor(own / columns), down, rows), left = from(own % columns, across, columns);
    return all.filter((_, n) => { const row = Math.floor(n / columns) - top, column = n % columns - left; return row >= 0 && row < down && column >= 0 && column < across; });
  },

  // A tile: its devices, its place, and its elements; those behind the end of the array are padding.
  tile({part, at, devices}, layout, turn, chosen, place, width) {
    const events = devices.map(device => ({lane: lanes[device], event: Side.counterpart(lanes[device], place, turn)}));
    const reached = events.filter(({lane, event}) => event >= 0 && event !== lane.stuck && lane.times[event] <= state.time);
    const own = reached.find(({lane}) => lane.device === state.device) || reached[0], value = own && own.lane.value(own.event);
    const number = at.reduce((sum, n, dim) => sum * layout.n[dim] + n, 0), real = layout.d.map((extent, dim) => Math.max(0, Math.min(layout.l[dim], extent - at[dim] * layout.l[dim])));
    const range = `[${layout.d.map((extent, dim) => layout.n[dim] === 1 ? ":" : `${Math.min(at[dim] * layout.l[dim], extent)}:${Math.min((at[dim] + 1) * layout.l[dim], extent)}`).join(", ")}]`;
    const head = html("div", {class: "head"}, html("span", {class: "who"}, ...this.devices(devices, events)), html("span", {class: "m range", title: "the index range of the tile in the global array"}, range));
    const body = !own ? html("p", {class: "more"}, "not computed yet") : showValue(value, {padding: padded(value, real), within: width, chosen: own.lane.device === state.device ? chosen : null, choose: (index, element = null) => go({device: own.lane.device, time: own.lane.times[own.event], index, part: element})});
    return html("div", {class: `tile t${number % 8}${devices.includes(state.device) ? " on" : ""}`}, head, layout.part ? html("p", {class: "more"}, `part ${part} of a tile that is not joined yet`) : null, body, this.differing(reached), this.behind(value, real));
  },
  devices(devices, events) {
    const few = devices.length > 8 ? [...new Set([devices[0], ...devices.filter(each => each === state.device)])] : devices;
    const found = few.flatMap((device, n) => { const {lane, event} = events[devices.indexOf(device)]; return [" ", html("button", {type: "button", class: device === state.device ? "on" : "", title: D.labels[device], on: () => go({device, time: event >= 0 ? lane.times[event] : state.time})}, String(device))].slice(n ? 0 : 1); });
    return few.length < devices.length ? [...found, ` and ${devices.length - few.length} more`] : found;
  },
  // Copies of one tile are equal; where they are not, the tile says so.
  differing(reached) {
    const first = reached[0], other = reached.find(({lane, event}) => same(first.lane.value(first.event), lane.value(event)) === false);
    return other ? html("p", {class: "more bad"}, `devices ${first.lane.device} and ${other.lane.device} hold different values`) : null;
  },
  behind(value, real) {
    const dims = value && value.d ? value.d : [], empty = dims.map((extent, dim) => extent - (real[dim] ?? extent));
    return value && !value.f && empty.some(Boolean) ? html("p", {class: "more"}, `padding at the ends: ${empty.join(" x ")}`) : null;
  },
};

// Whether an element of a value stands behind the end of the global array.
function padded(value, real) {
  if (!value || !value.d || value.d.every((extent, dim) => extent === real[dim])) return null;
  return flat => { for (let dim = value.d.length - 1; dim >= 0; dim--) { if (flat % value.d[dim] >= real[dim]) return true; flat = Math.floor(flat / value.d[dim]); } return false; };
}
