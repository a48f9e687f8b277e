// The report of a stuck or refused program: where each device is, the cause and the fix, the graph of waits.
const Stuck = {
  first: 4,
  most: 10,

  show() {
    const found = [];
    if (D.stop) found.push(html("h2", {}, "Where each device is"), this.stands());
    if (D.reasons.length) found.push(this.reasons());
    if (D.stop) found.push(html("h2", {}, "Who waits for whom"), waits(D.stop.devices));
    const refused = D.verdict && D.verdict.refused;
    found.push(refused ? this.report(D.verdict.text, "full verdict") : this.report(D.stop.text, "full report"));
    return html("div", {class: "stuck"}, ...found);
  },
  report: (text, name) => html("details", {class: "report", open: D.verdict && D.verdict.refused && !D.stop ? "" : null}, html("summary", {}, name), html("pre", {class: "rule"}, text)),
  reasons() {
    const list = html("dl", {class: "reasons"});
    for (const [name, text] of D.reasons) {
      const checked = text.endsWith(" (checked: ok)");
      list.append(html("dt", {class: name}, name), html("dd", {}, named(checked ? text.slice(0, -14) : text), checked ? html("b", {class: "ok"}, " ✓ checked") : null));
    }
    return list;
  },
  // The list of devices, causes first; successive devices at the same instruction share an entry.
  stands() {
    const list = html("ul", {class: "stands"}), further = html("ul", {class: "stands"}), all = [...D.stop.devices].sort((a, b) => b.cause - a.cause || a.device - b.device), rows = [];
    for (const each of all) {
      const last = rows[rows.length - 1], alike = last && all.length > 6 && last[0].cause === each.cause && last[0].stands_at === each.stands_at && last[0].ended === each.ended;
      if (alike) last.push(each); else rows.push([each]);
    }
    const folds = rows.length > this.first + 1, shown = folds ? this.first : rows.length;
    rows.slice(0, this.most).forEach((row, n) => (n < shown ? list : further).append(this.row(row[0], row)));
    if (rows.length > this.most) further.append(html("li", {}, `... and ${rows.length - this.most} more`));
    return html("div", {}, list, folds ? html("details", {class: "further"}, html("summary", {}, `${rows.length - shown} more places`), further) : null);
  },
  row(each, alike) {
    const where = each.ended ? [" has ended"] : each.stands_at ? [" at ", html("b", {class: "m"}, each.stands_at)] : [" has not started"];
    const open = html("button", {type: "button", class: "link", on: () => go({device: each.device, time: Math.max(1, lanes[each.device].end)})}, D.labels[each.device]);
    return html("li", {class: each.cause ? "cause" : ""}, html("div", {class: "head"}, html("span", {}, open, ...where), each.source ? html("span", {class: "place m"}, each.source) : null),
      each.waits_for ? html("div", {class: "source"}, `waits for ${named(each.waits_for)}`) : null,
      alike.length > 1 ? html("div", {class: "source"}, `and ${alike.length - 1} more at the same instruction, up to ${D.labels[alike[alike.length - 1].device]}`) : null);
  },
};

const MOST_NODES = 12;
// The devices of the graph of waits: the first causes; all others are one node, so that a cycle through them closes.
function nodes(devices) {
  const awaited = new Set(devices.flatMap(each => each.missing));
  const all = devices.filter(each => !each.ended || awaited.has(each.device)).sort((a, b) => b.cause - a.cause || a.device - b.device);
  const few = all.slice(0, MOST_NODES).sort((a, b) => a.device - b.device), rest = all.slice(MOST_NODES);
  if (!rest.length) return few;
  const shown = new Set(few.map(each => each.device)), others = new Set(rest.map(each => each.device)), known = each => shown.has(each) || others.has(each);
  const named = missing => [...new Set(missing.filter(known).map(each => shown.has(each) ? each : "rest"))];
  const one = {device: "rest", count: rest.length, first: rest[0].device, cause: rest.some(each => each.cause), missing: named(rest.flatMap(each => each.missing)).filter(each => each !== "rest")};
  return [...few.map(each => ({...each, missing: named(each.missing)})), one];
}

// The graph of waits: causes are red, victims grey; few devices are boxes with text, many are circles with numbers.
function waits(devices) {
  const few = nodes(devices);
  const large = few.length <= 6, svg = document.createElementNS(SVG, "svg"), places = new Map(), {width, height, at} = arranged(few.length, large);
  svg.setAttribute("viewBox", `0 0 ${width} ${height}`);
  svg.setAttribute("class", "waits");
  svg.setAttribute("style", `max-width:${large ? 500 : 340}px`);
  svg.setAttribute("role", "img");
  svg.setAttribute("aria-label", `devices and the devices that they wait for: ${few.map(each => each.missing.length ? `${each.count ? `${each.count} more` : each.device} for ${each.missing.slice(0, 4).join(" and ")}` : "").filter(Boolean).join(", ")}`);
  element(svg, "defs", {}).innerHTML = ["wait", "dim"].map(name => `<marker id="to-${name}" viewBox="0 0 8 8" refX="7" refY="4" markerUnits="userSpaceOnUse" markerWidth="10" markerHeight="10" orient="auto"><path d="M0 0L8 4L0 8z" fill="var(--${name})"/></marker>`).join("");
  few.forEach((each, n) => places.set(each.device, at(n)));
  const half = large ? [66, 24] : [18, 18], said = [];
  for (const each of few) for (const other of each.missing) if (places.has(other)) said.push(edge(svg, each, few.find(one => one.device === other), places, half, few.length));
  for (const each of few) standing(svg, each, places.get(each.device), large);
  for (const [x, y, lines, name] of large ? said : []) lines.forEach((line, n) => {
    element(svg, "rect", {x: x - line.length * 3.5 - 2, y: y + n * 14 - 10, width: line.length * 7 + 4, height: 14, fill: "var(--panel)"});
    element(svg, "text", {x, y: y + n * 14, "text-anchor": "middle", style: `fill:var(--${name});font-size:11.5px`}, line);
  });
  return svg;
}

// The size of the graph of waits and the middle of each node: two nodes side by side, more in a ring.
function arranged(count, large) {
  if (!large) return {width: 284, height: 284, at: n => [142 + 118 * Math.sin(2 * Math.PI * n / count), 142 - 118 * Math.cos(2 * Math.PI * n / count)]};
  if (count <= 2) return {width: 470, height: 138, at: n => [count === 1 ? 235 : n ? 384 : 86, 69]};
  const tall = count > 4 ? 128 : count > 3 ? 84 : 78, turn = count === 4 ? Math.PI / 4 : 0;
  const middle = count === 3 ? tall + 30 : (count === 4 ? tall * Math.SQRT1_2 : tall) + 32, height = count === 3 ? 1.5 * tall + 62 : 2 * middle;
  return {width: 470, height, at: n => [235 + (count === 4 ? 214 : 150) * Math.sin(2 * Math.PI * n / count - turn), middle - tall * Math.cos(2 * Math.PI * n / count - turn)]};
}

// Draws an edge from the border of one node to that of another, bent to the left; returns the place of its label.
function edge(svg, from, to, places, [wide, high], count) {
  const [x1, y1] = places.get(from.device), [x2, y2] = places.get(to.device), both = to.missing.includes(from.device), name = from.cause && to.cause ? "wait" : "dim";
  const length = Math.hypot(x2 - x1, y2 - y1) || 1, bend = count === 2 ? (both ? 48 : 0) : both ? 18 : 8;
  const middle = [(x1 + x2) / 2 + (y2 - y1) / length * bend, (y1 + y2) / 2 - (x2 - x1) / length * bend];
  const [ax, ay] = border(x1, y1, middle, wide, high), [bx, by] = border(x2, y2, middle, wide + 2, high + 2);
  element(svg, "path", {d: `M${ax} ${ay}Q${middle[0]} ${middle[1]},${bx} ${by}`, fill: "none", stroke: `var(--${name})`, "stroke-width": name === "wait" ? 2.2 : 1.4, "marker-end": `url(#to-${name})`});
  const [first, behind] = from.wants || [], lines = first ? [`for ${first}${behind && count === 2 ? "," : ""}`, ...(behind && count === 2 ? [`which comes ${behind}`] : [])] : [];
  const x = (ax + 2 * middle[0] + bx) / 4, y = (ay + 2 * middle[1] + by) / 4;
  if (count === 2) return [x, y + (y < y1 - 1 || !both ? -6 - 14 * (lines.length - 1) : 16), lines, name];
  return [x, y + 4, lines, name];
}

// The point at which the line from the middle of a box to a point crosses the border of the box.
function border(x, y, [tx, ty], wide, high) {
  const dx = tx - x, dy = ty - y, share = Math.min(wide / Math.max(1e-6, Math.abs(dx)), high / Math.max(1e-6, Math.abs(dy)), 1);
  return [x + dx * share, y + dy * share];
}

function standing(svg, each, [x, y], large) {
  const colour = each.cause ? "wait" : "dim", look = {fill: "var(--panel)", stroke: `var(--${colour})`, "stroke-width": each.cause ? 2.2 : 1.2, "stroke-dasharray": each.ended ? "4 3" : ""};
  const group = element(svg, "g", {class: "node", tabindex: 0, role: "button", "aria-label": each.count ? `${each.count} more devices` : `${D.labels[each.device]}${each.stands_at ? ` at ${each.stands_at}` : ""}`});
  const device = each.count ? each.first : each.device, open = () => go({device, time: Math.max(1, lanes[device].end)});
  group.addEventListener("click", open);
  group.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); open(); } });
  if (!large) {
    element(group, "circle", {cx: x, cy: y, r: 17, ...look});
    element(group, "text", {x, y: y + 4, "text-anchor": "middle"}, each.count ? `+${each.count}` : each.device);
    if (each.count) element(group, "title", {}, `${each.count} more devices`);
    return;
  }
  element(group, "rect", {x: x - 66, y: y - 24, width: 132, height: 48, rx: 8, ...look});
  const cut = text => text.length > 19 ? `${text.slice(0, 18)}…` : text, words = each.ended ? "has ended" : each.instruction ? `at ${each.instruction}` : "has not started";
  element(group, "text", {x, y: y - 3, "text-anchor": "middle", "font-weight": 700}, cut(D.labels[each.device]));
  element(group, "text", {x, y: y + 13, "text-anchor": "middle", style: `font-size:11px;fill:var(--${each.ended ? colour : "ink"})`}, cut(words));
  element(group, "title", {}, `${D.labels[each.device]} ${words}`);
  // A wait that no device can end is written below the box.
  if (!each.missing.length && !each.ended) each.wants.forEach((line, n) => element(svg, "text", {x, y: y + 40 + 14 * n, "text-anchor": "middle", style: `font-size:11px;fill:var(--${colour})`}, n ? line.split(":")[0] : `for ${line},`));
}
