// The panel beside: the instruction of the current device and step, its values on every device, where an element came from.
const Side = {
  draw() {
    const host = byId("side"), lane = lanes[state.device], i = currentEvent();
    const kept = host.scrollTop;
    host.replaceChildren();
    requestAnimationFrame(() => { host.scrollTop = kept; });
    if (D.stop) host.append(...this.stuck());
    else if (D.verdict && D.verdict.refused) host.append(html("details", {open: ""}, html("summary", {class: "more"}, "the verdict before the run"), html("pre", {class: "rule"}, D.verdict.text)));
    if (i < 0) { host.append(html("p", {class: "more"}, `${D.labels[state.device]} has not begun.`)); return; }
    const spot = lane.spot(i);
    if (lane.times[i] !== state.time) host.append(html("p", {class: "more"}, this.between(lane, i)));
    host.append(html("h3", {class: "m"}, spot.n, " ", html("small", {}, spot.s)));
    if (spot.p.length) host.append(html("p", {class: "path m"}, this.path(lane, i, spot)));
    const marked = (D.marks[lane.device] || []).filter(each => each[0] === i);
    for (const [, text] of marked) host.append(html("p", {class: "rule bad"}, text));
    host.append(this.facts(lane, i, spot));
    host.append(html("p", {class: "rule"}, html("b", {class: "m"}, spot.o), " — ", D.sentences[spot.o] || ""));
    host.append(html("h2", {}, "Result on each device"), this.results(lane.spots[i], i));
    host.append(...this.operands(lane, i, spot));
    if (D.left_out) host.append(html("p", {class: "more"}, `Not in this page: ${D.left_out}.`));
  },
  // The calls on the way, loops with their trips, and how often the device comes here.
  path(lane, i, spot) {
    const trips = new Map(lane.trips(i)), turns = lane.of(lane.spots[i]).length;
    const around = spot.p.map(name => trips.has(name) ? `${name}, trip ${trips.get(name)}` : name).join(" / ");
    return `in ${around}${turns > 1 ? ` · turn ${lane.turn(i) + 1} of ${turns}` : ""}`;
  },
  focusOnGrid() {
    const cell = byId("side").querySelector(".cell.chosen");
    if (cell) cell.parentNode.focus({preventScroll: true});
  },
  between(lane, i) {
    if (i + 1 >= lane.length) return D.stop ? "It has not come further." : `${D.labels[lane.device]} has ended; its last instruction was:`;
    const partner = partners.get(`${lane.device}:${i + 1}`);
    return `${D.labels[lane.device]} waits in ${lane.spot(i + 1).n}${partner ? ` for ${partner.text}` : ""}; before it came to:`;
  },
  facts(lane, i, spot) {
    const rows = spot.a.map(([name, text]) => [name, html("span", {class: "m"}, text)]);
    spot.in.forEach((operand, n) => {
      if (operand < 0) return;
      const other = D.spots[operand];
      rows.push([`operand ${n}`, html("span", {}, html("button", {class: "link m", on: () => this.follow(lane, operand, i)}, other.n), html("span", {class: "m"}, `  ${other.s}`))]);
    });
    if (lane.waited.has(i)) {
      const partner = partners.get(`${lane.device}:${i}`);
      rows.push(["waited", `${lane.waited.get(i)} step${lane.waited.get(i) > 1 ? "s" : ""}${partner ? ` for ${partner.text}` : ""}`]);
    }
    if (spot.w) rows.push(["source", html("span", {class: "m"}, spot.w[0], spot.w[1] ? html("div", {class: "source"}, spot.w[1]) : null)]);
    const table = html("table", {class: "facts"});
    for (const [name, text] of rows) table.append(html("tr", {}, html("td", {}, name), html("td", {}, text)));
    return table;
  },
  follow(lane, spot, i) {
    const event = lane.before(spot, i);
    if (event >= 0) go({time: lane.times[event], index: null});
  },
  // The same turn of the same instruction on the other devices.
  results(spot, i) {
    const turn = lanes[state.device].turn(i), host = html("div", {class: "devices", style: roomFor([lanes[state.device].value(i)])});
    const few = this.near(lanes.length <= 16 ? 16 : 12), shown = few.map(device => lanes[device]);
    const chosen = state.index == null ? null : {part: state.part, index: state.index};
    for (const lane of shown) {
      const event = this.counterpart(lane, spot, turn), value = event >= 0 ? lane.value(event) : null, on = lane.device === state.device;
      const name = html("button", {on: () => go({device: lane.device, time: event >= 0 ? lane.times[event] : state.time})}, D.labels[lane.device]);
      const body = event < 0 ? html("p", {class: "more"}, "does not come to it") : lane.times[event] > state.time
        ? html("p", {class: "more"}, `at step ${lane.times[event]}`) : D.spots[spot].s === "token[]" ? html("p", {class: "more"}, "a token") : showValue(value, {chosen: on ? chosen : null, choose: (index, part = null) => go({device: lane.device, time: lane.times[event], index, part})});
      const columns = value && value.f ? columnsOf(value) : 1;
      host.append(html("div", {class: `dev${on ? " on" : ""}${columns > 8 || Array.isArray(value) ? " wide" : ""}`}, name, body));
    }
    if (shown.length < lanes.length) host.append(this.others(shown.length));
    return host;
  },
  // The devices to show where there are many: those around the chosen one.
  near(most) {
    const from = Math.max(0, Math.min(state.device - (most >> 1), lanes.length - most));
    return lanes.slice(from, from + most).map(lane => lane.device);
  },
  others(count) {
    const box = html("input", {type: "number", min: 0, max: lanes.length - 1, value: state.device, "aria-label": "device"});
    box.addEventListener("change", () => { if (box.value !== "") go({device: Number(box.value)}); });
    return html("p", {class: "more"}, `${lanes.length - count} more devices; go to device `, box);
  },
  counterpart(lane, spot, turn) {
    const same = lane.of(spot);
    if (same.length || lane.device === state.device) return turn < same.length ? same[turn] : -1;
    const wanted = D.spots[spot], other = D.spots.findIndex((each, n) => each.n === wanted.n && each.p.join() === wanted.p.join() && lane.of(n).length);
    return other < 0 ? -1 : lane.of(other)[turn] ?? -1;
  },
  // The operands' values; of a chosen element those that it was computed from light up.
  operands(lane, i, spot) {
    const shown = spot.in.map((operand, n) => ({operand, n, event: operand < 0 ? -1 : lane.before(operand, i)})).filter(each => each.event >= 0 && lane.value(each.event));
    if (!shown.length) return [];
    const tables = lane.origins(i);
    if (tables && tables.length && "part" in tables[0]) return Far.show(lane, i, spot, tables);
    const picked = state.index != null && state.part == null && tables ? tables.map(table => rowOf(table, state.index)) : null, result = lane.value(i);
    const found = [html("h2", {}, "Operands")];
    if (picked && result) found.push(this.story(lane, spot, shown, picked, result));
    else if (tables && elementsOf(result)) found.push(html("p", {class: "more"}, "Choose an element of the result to see what it was computed from."));
    const host = html("div", {class: "devices", style: roomFor(shown.map(({event}) => lane.value(event)))});
    const once = new Set();
    for (const {operand, n, event} of shown) {
      if (once.has(operand) && !picked) continue;
      once.add(operand);
      const value = lane.value(event), columns = columnsOf(value);
      host.append(html("div", {class: `dev${columns > 8 || Array.isArray(value) ? " wide" : ""}`}, html("button", {class: "m", on: () => this.follow(lane, operand, i)}, D.spots[operand].n), showValue(value, {lit: picked && picked[n] ? new Set(picked[n]) : null})));
    }
    found.push(host);
    return found;
  },
  story(lane, spot, shown, picked, result) {
    const elements = elementsOf(result);
    const line = html("p", {class: "rule m"}, html("b", {}, `${spot.n}${indexOf(state.index, result.d)}`), elements ? ` = ${elements[state.index].text}` : "", " from ");
    const parts = shown.map(({operand, n, event}) => {
      const value = lane.value(event), row = picked[n] || [], inner = elementsOf(value);
      if (!row.length) return null;
      const few = row.slice(0, 6).map(flat => `${indexOf(flat, value.d)}${inner && row.length <= 6 ? `=${inner[flat].text}` : ""}`).join(" ");
      return `${D.spots[operand].n}${few}${row.length > 6 ? ` … ${row.length} elements` : ""}`;
    }).filter(Boolean);
    line.append(parts.length ? parts.join(", ") : "no element of an operand");
    return line;
  },
  // A run that stopped: the report, where each device stands, who waits for whom.
  stuck() {
    const list = html("ul", {class: "stands m"});
    const causes = D.stop.devices.filter(each => each.cause), rest = D.stop.devices.filter(each => !each.cause), all = [...causes, ...rest];
    for (const each of all.length > 16 ? all.slice(0, 8) : all) {
      const words = each.ended ? "has ended" : each.stands_at ? `stands at ${each.stands_at}` : "has not begun";
      list.append(html("li", {class: each.cause ? "cause" : ""}, html("button", {class: "link", on: () => go({device: each.device, time: Math.max(1, lanes[each.device].end)})}, D.labels[each.device]), ` ${words}`,
        each.waits_for ? html("div", {class: "source"}, `waits for ${each.waits_for}`) : null));
    }
    if (all.length > 16) list.append(html("li", {}, `and ${all.length - 8} more devices`));
    const refused = D.verdict && D.verdict.refused;
    return [html("h2", {}, "Where it is stuck"), waits(D.stop.devices), list,
      html("details", {open: ""}, html("summary", {class: "more"}, refused ? "the verdict before the run" : "the report"), html("pre", {class: "rule"}, refused ? D.verdict.text : D.stop.text))];
  },
};

// The least width of a device's values, so that numbers have room.
const roomFor = values => `--least:${Math.max(150, ...values.filter(each => each && each.f && columnsOf(each) <= 8).map(each => columnsOf(each) * 47))}px`;

function rowOf(table, index) {
  if (!table) return null;
  if (!table.all) table.all = columnOf(table);
  return [...table.all.slice(index * table.k, (index + 1) * table.k)].filter(each => each >= 0);
}

// Who waits for whom: causes in red, victims in grey.
function waits(devices) {
  const few = devices.filter(each => !each.ended || devices.some(other => other.missing.includes(each.device))).sort((a, b) => b.cause - a.cause || a.device - b.device).slice(0, 12).sort((a, b) => a.device - b.device), count = few.length, radius = count > 6 ? 112 : 62, middle = radius + 26;
  const svg = document.createElementNS(SVG, "svg"), place = new Map();
  svg.setAttribute("viewBox", `0 0 ${2 * middle + 60} ${2 * middle}`);
  svg.setAttribute("style", `max-width:${count > 6 ? 340 : 190}px;display:block;margin:4px auto`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", "which device waits for which");
  element(svg, "defs", {}).innerHTML = ["wait", "dim"].map(name => `<marker id="to-${name}" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="8" markerHeight="8" orient="auto"><path d="M0 0L8 4L0 8z" fill="var(--${name})"/></marker>`).join("");
  few.forEach((each, n) => { const angle = 2 * Math.PI * n / count - Math.PI / 2; place.set(each.device, [middle + 30 + radius * Math.cos(angle), middle + radius * Math.sin(angle)]); });
  for (const each of few) for (const other of each.missing) {
    if (!place.has(other)) continue;
    const [x1, y1] = place.get(each.device), [x2, y2] = place.get(other), length = Math.hypot(x2 - x1, y2 - y1) || 1, ux = (x2 - x1) / length, uy = (y2 - y1) / length;
    const red = each.cause && few.find(one => one.device === other).cause, name = red ? "wait" : "dim";
    element(svg, "path", {d: `M${x1 + ux * 20} ${y1 + uy * 20} Q${(x1 + x2) / 2 - uy * 16} ${(y1 + y2) / 2 + ux * 16},${x2 - ux * 21} ${y2 - uy * 21}`, fill: "none", stroke: `var(--${name})`, "stroke-width": red ? 2.2 : 1.3, "marker-end": `url(#to-${name})`});
  }
  for (const each of few) {
    const [x, y] = place.get(each.device);
    element(svg, "circle", {cx: x, cy: y, r: 18, fill: "var(--panel)", stroke: each.cause ? "var(--wait)" : "var(--dim)", "stroke-width": each.cause ? 2.4 : 1.2, "stroke-dasharray": each.ended ? "3 3" : ""});
    element(svg, "text", {x, y: y + 4, "text-anchor": "middle", style: "fill:var(--ink)"}, each.device);
  }
  return svg;
}
