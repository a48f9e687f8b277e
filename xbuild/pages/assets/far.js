// Values from other devices: the operands on all devices, and the elements that a chosen element was computed from.
const Far = {
  show(lane, i, spot, tables) {
    const bringers = brought.get(`${lane.device}:${i}`);
    if (!bringers) return [];
    const table = state.index == null ? null : tables.find(each => each.part === state.part || (each.part === 0 && tables.length === 1));
    const rows = table ? this.rows(table, state.index) : null;
    const found = [html("h2", {}, bringers.size > 1 ? "Operands on each device" : "Operand on the device that sent it")];
    found.push(rows ? this.story(lane, i, spot, rows, bringers) : html("p", {class: "more"}, "Select an element of the result to see which devices it came from."));
    const operands = this.operands(bringers, rows), host = html("div", {class: "devices", style: roomFor(operands.map(each => each.value))});
    for (const {device, operand, name, value, time} of operands) {
      const lit = rows ? new Set(rows.filter(row => row.device === device && row.operand === operand).map(row => row.element)) : null;
      host.append(html("div", {class: `dev${isWide(value) ? " wide" : ""}`}, html("button", {type: "button", on: () => go({device, time})}, `${D.labels[device]} `, html("span", {class: "m"}, name)), showValue(value, {lit})));
    }
    found.push(host);
    if (bringers.size > 16) found.push(html("p", {class: "more"}, `${bringers.size - 16} more devices contribute`));
    return found;
  },
  // The entries of a row of a table, in which devices, operands and elements stand one after the other.
  rows(table, index) {
    if (!table.all) table.all = columnOf(table);
    const third = table.all.length / 3, found = [];
    for (let n = index * table.k; n < (index + 1) * table.k; n++)
      if (table.all[n] >= 0) found.push({device: table.all[n], operand: table.all[third + n], element: table.all[2 * third + n]});
    return found;
  },
  value(device, event, operand) {
    const lane = lanes[device], spot = lane.spot(event).in[operand];
    const at = spot == null || spot < 0 ? -1 : lane.before(spot, event);
    return at < 0 ? null : {device, operand, name: D.spots[spot].n, value: lane.value(at), time: lane.times[at]};
  },
  // The operands to show: all operands of few devices; of many devices, those that the chosen element came from.
  operands(bringers, rows) {
    const wanted = rows && bringers.size > 16 ? new Set(rows.map(row => row.device)) : null;
    const few = [...bringers.keys()].filter(device => !wanted || wanted.has(device)).slice(0, 16);
    return few.flatMap(device => {
      const event = bringers.get(device), lane = lanes[device];
      const sends = lane.spot(event).o === "send", count = sends ? 1 : lane.spot(event).in.length;
      const used = rows && count > MANY ? new Set(rows.map(row => row.operand)) : null;
      return [...Array(count).keys()].filter(operand => !used || used.has(operand)).slice(0, MANY).map(operand => this.value(device, event, operand)).filter(each => each && each.value);
    });
  },
  story(lane, i, spot, rows, bringers) {
    const value = lane.value(i), whole = state.part == null ? value : value && value[state.part], elements = elementsOf(whole);
    const line = html("p", {class: "rule m"}, html("b", {}, `${spot.n}${state.part == null ? "" : `{${state.part}}`}${whole ? indexOf(state.index, whole.d) : ""}`), elements ? ` = ${elements[state.index].text}` : "", " from ");
    const parts = rows.slice(0, 8).map(row => {
      const operand = bringers.has(row.device) ? this.value(row.device, bringers.get(row.device), row.operand) : null, inner = operand && elementsOf(operand.value);
      return `${operand && operand.value ? `${operand.name}${indexOf(row.element, operand.value.d)}` : `element ${row.element}`} of ${D.labels[row.device]}${inner ? ` = ${inner[row.element].text}` : ""}`;
    });
    line.append(parts.length ? parts.join(", ") : "no device; elements that no device sends are zero", rows.length > 8 ? ` … ${rows.length} elements` : "");
    return line;
  },
};
