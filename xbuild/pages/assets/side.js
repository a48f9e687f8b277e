// The side panel: the current instruction, its values on every device, and where an element came from.
const Side = {
  first: 0,

  draw() {
    const host = byId("side"), lane = lanes[state.device], i = currentEvent();
    // The report of a stopped run comes first at the halt of a device, and last while earlier steps are replayed.
    const stands = D.stop || (D.verdict && D.verdict.refused) ? this.stuck || (this.stuck = Stuck.show()) : null, ahead = !D.stop || i < 0 || i === lane.stuck || state.time >= D.end;
    this.stay(i < 0 ? -1 : lane.spots[i]);
    const fromTop = stands && ahead !== this.ahead, parts = [...(i < 0 ? [html("p", {class: "more"}, `${D.labels[state.device]} has not started.`)] : this.instruction(lane, i))];
    this.ahead = ahead;
    if (stands) ahead ? parts.unshift(stands) : parts.push(stands);
    if (!stands && D.verdict && D.verdict.kind === "depends") parts.push(this.verdict || (this.verdict = Stuck.report(D.verdict.text, "full verdict")));
    if (D.left_out) parts.push(html("p", {class: "more"}, `This page is incomplete: ${D.left_out}.`));
    host.replaceChildren(...parts);
    // The panel keeps its scroll position; reading or setting the position at each step would lay out the page twice.
    if (fromTop) host.scrollTop = 0;
    // The first highlighted element is scrolled into view after an element is chosen.
    const chosen = [lane.device, i, state.part, state.index].join(), lit = chosen !== this.chosen && host.querySelector(".lit");
    this.chosen = chosen;
    if (lit) lit.scrollIntoView({block: "nearest"});
  },
  // Keeps the shown elements of a long tuple while the instruction stays the same; a chosen element is among them.
  stay(spot) {
    if (spot !== this.spot) this.first = 0;
    this.spot = spot;
    if (state.part != null && (state.part < this.first || state.part >= this.first + FEW)) this.first = state.part;
  },
  instruction(lane, i) {
    const spot = lane.spot(i), found = [];
    if (lane.times[i] !== state.time && i !== lane.stuck) found.push(html("p", {class: "more"}, this.between(lane, i)));
    found.push(html("h3", {class: "m"}, spot.n, " ", html("small", {}, spot.s)));
    if (spot.p.length) found.push(html("p", {class: "path m"}, this.path(lane, i, spot)));
    const marked = (D.marks[lane.device] || []).filter(each => each[0] === i);
    for (const [, text] of marked) found.push(html("p", {class: "rule bad"}, text));
    if (i === lane.stuck) found.push(html("p", {class: lane.state.cause ? "rule bad" : "rule"}, `${D.labels[lane.device]} is here${lane.state.waits_for ? ` and waits for ${named(lane.state.waits_for)}` : ""}`));
    found.push(...Tiles.reasons(spot), this.facts(lane, i, spot));
    const isGlobal = Tiles.isOn(spot), heading = html("h2", {}, isGlobal ? "Global array" : "Result on each device");
    found.push(html("div", {class: "bar"}, heading, isGlobal ? null : html("span", {class: "more"}, this.alike(lane.spots[i], lane.turn(i))), Tiles.switch(spot), html("span", {class: "space"}), html("span", {class: "legend", title: "the colors of values"}, html("i", {class: "low"}), "below zero", html("i", {class: "high"}), "above zero")), ...(isGlobal ? [Tiles.heading(spot), Tiles.show(spot, lane.turn(i), state.index == null ? null : {part: state.part, index: state.index}, lane.spots[i])] : [this.results(lane.spots[i], i)]), ...Tiles.causes(spot));
    return [...found, ...this.operands(lane, i, spot), html("h2", {}, "Rule"), this.rule(spot)];
  },
  // The first sentence of the documentation of an op, and its rules of shapes and types.
  rule(spot) {
    const [sentence, rules] = D.ops[spot.o] || ["", []];
    return html("div", {class: "rule"}, html("b", {class: "m"}, spot.o), ` — ${sentence}`, ...rules.map(([name, text]) => html("div", {class: "source"}, html("b", {}, `${name} `), text)));
  },
  // The path of a spot, loops with their trips, and the number of times that the device executes the instruction.
  path(lane, i, spot) {
    const trips = new Map(lane.trips(i)), turns = lane.of(lane.spots[i]).length;
    const around = spot.p.map(name => trips.has(name) ? `${name}, trip ${trips.get(name)}` : name).join(" / ");
    return `in ${around}${turns > 1 ? ` · execution ${lane.turn(i) + 1} of ${turns}` : ""}`;
  },
  focusOnGrid() {
    const cell = byId("side").querySelector(".cell.chosen");
    if (cell) cell.parentNode.focus({preventScroll: true});
  },
  between(lane, i) {
    if (i + 1 >= lane.length) return `${D.labels[lane.device]} has ended; its last instruction was:`;
    const partner = partners.get(`${lane.device}:${i + 1}`);
    return `${D.labels[lane.device]} waits at ${lane.spot(i + 1).n}${partner ? ` for ${partner.text}` : ""}; before that, it ran:`;
  },
  facts(lane, i, spot) {
    const rows = spot.a.map(([name, text]) => [name, html("span", {class: "m"}, text)]);
    spot.in.slice(0, MANY).forEach((operand, n) => {
      if (operand < 0) return;
      const other = D.spots[operand];
      rows.push([`operand ${n}`, html("span", {}, html("button", {type: "button", class: "link m", on: () => this.follow(lane, operand, i)}, other.n), html("span", {class: "m"}, `  ${other.s}`))]);
    });
    if (spot.in.length > MANY) rows.push(["", `${spot.in.length - MANY} more operands`]);
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
  // The results of the same turn of the same instruction on all devices.
  results(spot, i) {
    const turn = lanes[state.device].turn(i), few = this.near(lanes.length <= 16 ? 16 : 12), shown = few.map(device => lanes[device]);
    const host = html("div", {class: "devices", style: roomFor([lanes[state.device].value(i)], few.length)});
    const chosen = state.index == null ? null : {part: state.part, index: state.index};
    for (const lane of shown) {
      const event = this.counterpart(lane, spot, turn), value = event >= 0 ? lane.value(event) : null, on = lane.device === state.device;
      const name = html("button", {type: "button", on: () => go({device: lane.device, time: event >= 0 ? lane.times[event] : state.time})}, D.labels[lane.device]);
      const body = event >= 0 && event === lane.stuck ? html("p", {class: `more${lane.state.cause ? " bad" : ""}`}, "waits here") : event < 0 ? html("p", {class: "more"}, "never reaches this instruction") : lane.times[event] > state.time
        ? html("p", {class: "more"}, `reaches this instruction at step ${lane.times[event]}`) : D.spots[spot].s === "token[]" ? html("p", {class: "more"}, "a token") : showValue(value, {chosen: on ? chosen : null, choose: (index, part = null) => go({device: lane.device, time: lane.times[event], index, part})});
      host.append(html("div", {class: `dev${on ? " on" : ""}${isWide(value) ? " wide" : ""}`}, name, body));
    }
    if (shown.length < lanes.length) host.append(this.others(shown.length));
    return host;
  },
  // Whether all devices have the same result, where that of each is known in full.
  alike(spot, turn) {
    if (lanes.length < 2 || lanes.length > 16) return "";
    const events = lanes.map(lane => this.counterpart(lane, spot, turn)), has = lanes.every((lane, n) => events[n] >= 0 && lane.times[events[n]] <= state.time && lane.values[events[n]] >= 0);
    if (!has) return "";
    const apart = [];
    for (const value of new Set(lanes.map((lane, n) => lane.value(events[n])))) {
      const found = apart.map(each => same(each, value));
      if (found.includes(null)) return "";
      if (!found.includes(true)) apart.push(value);
    }
    return apart.length === 1 ? "equal on all devices" : `${apart.length} different values`;
  },
  // The devices to show where there are many: those around the chosen one.
  near(most) {
    const from = Math.max(0, Math.min(state.device - (most >> 1), lanes.length - most));
    return lanes.slice(from, from + most).map(lane => lane.device);
  },
  others(count) {
    const box = html("input", {type: "number", min: 0, max: lanes.length - 1, value: state.device, "aria-label": "device"});
    box.addEventListener("change", () => { if (box.value !== "") go({device: Number(box.value)}); });
    return html("p", {class: "more others"}, `${lanes.length - count} more devices; go to device `, box);
  },
  counterpart(lane, spot, turn) {
    const same = lane.of(spot);
    if (same.length || lane.device === state.device) return turn < same.length ? same[turn] : -1;
    const wanted = D.spots[spot], other = D.spots.findIndex((each, n) => each.n === wanted.n && each.p.join() === wanted.p.join() && lane.of(n).length);
    return other < 0 ? -1 : lane.of(other)[turn] ?? -1;
  },
  // The operands' values; of a chosen element those that it was computed from light up.
  operands(lane, i, spot) {
    const known = spot.in.map((operand, n) => ({operand, n, event: operand < 0 ? -1 : lane.before(operand, i)})).filter(each => each.event >= 0 && lane.value(each.event));
    if (!known.length) return [];
    const tables = lane.origins(i);
    if (tables && tables.length && "part" in tables[0]) return Far.show(lane, i, spot, tables);
    const picked = state.index != null && state.part == null && tables ? tables.map(table => rowOf(table, state.index)) : null, result = lane.value(i);
    // Of very many operands, those that the chosen element came from are shown, else the first few.
    const shown = known.length <= MANY ? known : (picked ? known.filter(each => picked[each.n] && picked[each.n].length) : known).slice(0, picked ? MANY : FEW);
    const found = [html("h2", {}, picked && result ? `Where ${spot.n}${indexOf(state.index, result.d)} comes from` : "Operands")];
    if (picked && result) found.push(this.story(lane, spot, shown, picked, result));
    else if (tables && elementsOf(result)) found.push(html("p", {class: "more"}, "Select an element of the result to see the elements from which it was computed."));
    const host = html("div", {class: "devices", style: roomFor(shown.map(({event}) => lane.value(event)))});
    const once = new Set();
    for (const {operand, n, event} of shown) {
      if (once.has(operand) && !picked) continue;
      once.add(operand);
      const value = lane.value(event);
      host.append(html("div", {class: `dev${isWide(value) ? " wide" : ""}`}, html("button", {type: "button", class: "m", on: () => this.follow(lane, operand, i)}, D.spots[operand].n), showValue(value, {lit: picked && picked[n] ? new Set(picked[n]) : null})));
    }
    found.push(host);
    if (shown.length < known.length) found.push(html("p", {class: "more"}, `${known.length - shown.length} more operands`));
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
    line.append(parts.length ? parts.join(", ") : "no operand element");
    return line;
  },
};

// The columns of the grid of devices: as many as leave room for numbers, about the same in each row.
function roomFor(values, count = values.length) {
  const least = Math.max(112, ...values.flatMap(partsOf).filter(each => each && each.f && columnsOf(each) <= 8).map(each => columnsOf(each) * 47));
  const most = Math.max(1, Math.floor((room() + 14) / (least + 14))), rows = Math.ceil(count / most);
  return `grid-template-columns:repeat(${rows > 1 ? Math.ceil(count / rows) : most},minmax(0,1fr))`;
}

function rowOf(table, index) {
  if (!table) return null;
  if (!table.all) table.all = columnOf(table);
  return [...table.all.slice(index * table.k, (index + 1) * table.k)].filter(each => each >= 0);
}
