// The picture around the current instruction: its operands two levels up, its users two levels down.
const Around = {
  most: 9, boxes: new Map(),

  start(host) {
    this.svg = document.createElementNS(SVG, "svg");
    this.svg.setAttribute("class", "xb page around");
    this.svg.setAttribute("role", "group");
    this.svg.setAttribute("aria-label", "instructions around the current one");
    host.append(this.svg);
    element(this.svg, "defs", {}).innerHTML = '<marker id="around-tip" class="a-value" viewBox="0 0 8 8" refX="7.4" refY="4" markerUnits="userSpaceOnUse" markerWidth="8" markerHeight="8" orient="auto"><path style="stroke:none;fill:inherit" d="M0 0L8 4L0 8Z"/></marker>';
    this.root = element(this.svg, "g", {});
    this.users = D.spots.map(() => []);
    D.spots.forEach((spot, n) => new Set(this.before(n)).forEach(each => this.users[each].push(n)));
    const open = event => { const box = event.target.closest("[data-spot]"); if (box) Search.take(Number(box.dataset.spot)); };
    this.svg.addEventListener("click", event => { if (!Graph.moved) open(event); });
    this.svg.addEventListener("keydown", event => { if (event.key === "Enter" || event.key === " ") { event.preventDefault(); event.stopPropagation(); open(event); } });
  },
  // The operands of a spot; of a parameter of a region, the op that calls the region.
  before(spot) {
    const {in: operands, up, o} = D.spots[spot];
    return o === "parameter" && up >= 0 ? [up] : operands.filter(each => each >= 0);
  },
  // The level of each spot, and how many spots of each level are left out.
  levels(spot) {
    const level = new Map([[spot, 0]]), hidden = [0, 0, 0, 0, 0], count = [0, 0, 1, 0, 0];
    for (const [way, next] of [[-1, each => this.before(each)], [1, each => this.users[each]]])
      for (let depth = 1, row = [spot]; depth <= 2; depth++) {
        const found = [...new Set(row.flatMap(next))].filter(each => !level.has(each)), kept = found.slice(0, this.most);
        kept.forEach(each => level.set(each, way * depth));
        hidden[2 + way * depth] = found.length - kept.length;
        count[2 + way * depth] = kept.length;
        row = kept;
      }
    return {level: this.downwards(level), hidden};
  },
  // Moves users down and operands up until every operand is above its users.
  downwards(level) {
    const order = [...level.keys()].sort((a, b) => a - b);
    for (const spot of order) if (level.get(spot) > 0) level.set(spot, Math.max(level.get(spot), ...this.before(spot).filter(each => level.get(each) >= 0 && each < spot).map(each => level.get(each) + 1)));
    for (const spot of order.reverse()) if (level.get(spot) < 0) level.set(spot, Math.min(level.get(spot), ...this.users[spot].filter(each => level.get(each) <= 0 && each > spot).map(each => level.get(each) - 1)));
    return level;
  },
  // Rows from top to bottom, each ordered by barycentre; `zero` is the row of the current instruction.
  rows(level) {
    const zero = -Math.min(...level.values()), rows = Array.from({length: zero + 1 + Math.max(...level.values())}, () => []), place = new Map();
    for (const [spot, depth] of level) rows[depth + zero].push(spot);
    const order = (row, near) => {
      const middle = spot => { const at = near(spot).map(each => place.get(each)).filter(each => each != null); return at.length ? at.reduce((a, b) => a + b, 0) / at.length : 0; };
      row.sort((a, b) => middle(a) - middle(b) || a - b).forEach((spot, n) => place.set(spot, n - (row.length - 1) / 2));
    };
    place.set(rows[zero][0], 0);
    for (let n = zero - 1; n >= 0; n--) order(rows[n], spot => this.users[spot]);
    for (let n = zero + 1; n < rows.length; n++) order(rows[n], spot => this.before(spot));
    return {rows, zero};
  },
  words(spot) {
    const {n, o, s} = D.spots[spot], own = n === o || n.replace(/\.\d+$/, "") === o, cut = (text, most) => text.length > most ? `${text.slice(0, most - 1)}…` : text;
    return [cut(own ? n : `${n}  ${o}`, 34), cut(s, 34)];
  },
  draw(spot) {
    const {level, hidden} = this.levels(spot), {rows, zero} = this.rows(level), place = new Map(), high = 40, down = 84;
    let widest = 0;
    const wide = new Map([...level.keys()].map(each => [each, Math.max(...this.words(each).map(line => line.length)) * 7.3 + 22]));
    const more = n => hidden[n - zero + 2] || 0;
    rows.forEach((row, n) => {
      const total = row.reduce((sum, each) => sum + wide.get(each) + 22, -22) + (more(n) ? 90 : 0);
      let x = -total / 2;
      for (const each of row) { place.set(each, [x + wide.get(each) / 2, n * down]); x += wide.get(each) + 22; }
      if (more(n)) place.set(`more ${n}`, [x + 34, n * down]);
      widest = Math.max(widest, total);
    });
    this.size = {x: -widest / 2 - 12, y: -30, width: widest + 24, height: (rows.length - 1) * down + 64};
    this.at = place.get(spot);
    this.clear();
    const {root} = this;
    root.setAttribute("transform", `translate(${-this.size.x},${-this.size.y})`);
    this.lines(root, level, place, high);
    this.boxes.clear();
    for (const each of level.keys()) this.box(root, each, place.get(each), wide.get(each), high);
    rows.forEach((_, n) => { if (more(n)) element(root, "text", {x: place.get(`more ${n}`)[0], y: n * down + 4, "text-anchor": "middle", class: "dim", style: "font-size:11.5px"}, `+${more(n)} more`); });
  },
  clear() {
    this.root.remove();
    this.root = element(this.svg, "g", {});
  },
  lines(root, level, place, high) {
    for (const spot of level.keys()) new Set(this.before(spot)).forEach(each => {
      if (!place.has(each)) return;
      const [x1, y1] = place.get(each), [x2, y2] = place.get(spot), bend = Math.max(24, Math.abs(y2 - y1) / 2);
      const line = element(root, "g", {class: `line ${D.spots[spot].in.includes(each) ? "value" : "call"}`});
      element(line, "path", {d: `M${x1} ${y1 + high / 2}C${x1} ${y1 + high / 2 + bend},${x2} ${y2 - high / 2 - bend},${x2} ${y2 - high / 2 - 1}`, "marker-end": "url(#around-tip)"});
      element(line, "title", {}, `${D.spots[each].n} → ${D.spots[spot].n}  ${D.spots[each].s}`);
    });
  },
  box(root, spot, [x, y], wide, high) {
    const {k, n, s, p} = D.spots[spot], group = element(root, "g", {class: `shapes k${k === "+" ? "Folded" : k}`, "data-spot": spot, tabindex: 0, role: "button", "aria-label": n});
    const left = x - wide / 2, top = y - high / 2, r = 6;
    element(group, "path", {d: `M${left + r} ${top}h${wide - 2 * r}a${r} ${r} 0 0 1 ${r} ${r}v${high - 2 * r}a${r} ${r} 0 0 1 ${-r} ${r}h${2 * r - wide}a${r} ${r} 0 0 1 ${-r} ${-r}v${2 * r - high}a${r} ${r} 0 0 1 ${r} ${-r}z`});
    const [name, shape] = this.words(spot);
    element(group, "text", {x, y: y - 3, "text-anchor": "middle", class: "name", style: "font-size:12px"}, name);
    element(group, "text", {x, y: y + 12, "text-anchor": "middle", style: "font-size:11px"}, shape);
    element(group, "title", {}, `${n}  ${s}${p.length ? `\nin ${p.join(" / ")}` : ""}`);
    this.boxes.set(spot, group);
  },
};
