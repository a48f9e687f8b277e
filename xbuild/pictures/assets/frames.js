// A sheet of the picture: frames that fold and boxes that unfold, while the other boxes keep their order.
const TITLE = 24, LETTER = 7.6;
const plural = (count, word) => `${count.toLocaleString("en")} ${word}${count === 1 ? "" : "es"}`;

class Sheet {
  // `up` is the sheet that contains this sheet in place of the box `of`.
  constructor(group, given, up, of) {
    Object.assign(this, { group, given, up, of, at: [0, 0], size: given.size, opened: new Map(), now: new Map() });
    this.frames = given.frames.map(([id, up, at, boxes]) => ({ id, up, at, boxes, folded: false }));
    this.home = new Map(this.frames.flatMap((frame, number) => frame.boxes.map(id => [id, number])));
    const parts = [...group.children], of_ = word => parts.filter(each => each.classList.contains(word));
    this.drawn = of_("frame");
    this.titles = this.drawn.map(each => each.nextElementSibling);
    this.names = this.titles.map(each => each.textContent);
    this.lines = of_("line");
    this.shapes = new Map(of_("shapes").map(each => [each.id, each]));
    this.readLines(parts.slice(parts.findLastIndex(each => each.classList.contains("shapes")) + 1));
    this.layers = [this.lines, [...this.shapes.values()], this.ends.map(each => each.word)].map((nodes, number) => {
      const layer = document.createElementNS(svg.namespaceURI, "g");
      layer.classList.add(["lines", "boxes", "ends"][number]);
      layer.append(...nodes);
      return [layer, nodes];
    });
    group.append(...this.layers.map(([layer]) => layer));
    this.alone = !up && this.frames.filter(each => each.up < 0).length === 1;
    this.inside = this.frames.map(() => 0);
    for (const [number, frame] of this.frames.entries()) for (let each = number; each >= 0; each = this.frames[each].up) this.inside[each] += frame.boxes.length;
    this.counts = this.frames.map((_, number) => this.count(number));
    this.titles.forEach((title, number) => { if (this.foldable(number)) this.listen(title, number); });
    for (const [id, shape] of this.shapes) if (given.unfolds.has(id)) mark(this, id, shape);
  }
  readLines(words) {
    this.paths = this.lines.map(each => each.querySelector("path"));
    this.ways = this.paths.map(each => each.getAttribute("d"));
    this.points = this.ways.map(wayOf);
    this.bounds = this.points.map(all => [Math.min, Math.max].flatMap(end => [0, 1].map(side => end(...all.map(each => each[side])))));
    this.heads = this.lines.map(each => each.querySelector("title")?.textContent || "");
    this.ends = [];
    this.given.ends.forEach((which, number) => [1, 2].forEach(end => {
      if (!(which & end)) return;
      const word = words.shift();
      this.ends.push({ number, end, word, x: Number(word.getAttribute("x")), y: Number(word.getAttribute("y")) });
    }));
  }
  count(number) {
    const words = this.titles[number].cloneNode();
    words.setAttribute("class", "dim");
    words.setAttribute("display", "none");
    words.textContent = `${plural(this.inside[number], "box")} folded`;
    this.titles[number].after(words);
    return words;
  }
  // The only outermost frame of a program cannot be folded.
  foldable(number) { return !this.alone || this.frames[number].up >= 0; }
  told(number) { return this.foldable(number) ? `${this.frames[number].folded ? "▸" : "▾"} ${this.names[number]}` : this.names[number]; }
  listen(title, number) {
    for (const [name, value] of [["role", "button"], ["tabindex", "0"], ["aria-expanded", "true"], ["aria-label", this.names[number]]]) title.setAttribute(name, value);
    title.classList.add("fold");
    title.textContent = this.told(number);
    this.drawn[number].addEventListener("click", () => { if (this.frames[number].folded && !dragged) fold(this, number); });
    title.addEventListener("click", () => { if (!dragged) fold(this, number); });
    onKey(title, () => fold(this, number));
  }
  // The outermost folded frame that is this frame or contains it; -1 where there is none.
  cover(number) {
    let found = -1;
    for (let each = number; each >= 0; each = this.frames[each].up) if (this.frames[each].folded) found = each;
    return found;
  }
  // The rectangle of a folded frame, in coordinates of the layout: as wide as its title, at the top of the frame.
  shrunk(number) {
    const [x, y, wide] = this.frames[number].at, words = Math.max(this.names[number].length, this.counts[number].textContent.length) + 2;
    const width = Math.min(wide, words * LETTER + 24);
    return [x + (wide - width) / 2, y, width, 46];
  }

  // Computes the places of all frames, boxes and lines from the frames that are folded and the boxes that are unfolded.
  arrange() {
    const { frames, home, given: { places, size } } = this, covers = frames.map((_, number) => this.cover(number));
    const closed = [...frames.keys()].filter(number => covers[number] === number), small = new Map(closed.map(number => [number, this.shrunk(number)]));
    const open = [...this.opened].filter(([id]) => covers[home.get(id)] < 0);
    const taken = [...small.values()];
    if (closed.length) {
      for (const [id, place] of Object.entries(places)) if (covers[home.get(id)] < 0) taken.push(place);
      frames.forEach(({ at: [x, y, w, h] }, number) => {
        if (covers[number] < 0) taken.push([x, y, Math.min(w, this.told(number).length * LETTER + 24), TITLE + 10], [x + w - 14, y + h - 14, 14, 14]);
      });
    }
    const part = (place, side) => [place[side], place[side] + place[side + 2]];
    const [fx, fy] = [0, 1].map(side => axis(taken.map(each => part(each, side)), closed.map(number => part(frames[number].at, side)),
      open.map(([id, sheet]) => [...part(places[id], side), sheet.size[side]]), size[side]));
    const spread = ([x, y, w, h]) => { const left = fx(x), top = fy(y); return [left, top, fx(x + w) - left, fy(y + h) - top]; };
    const whole = ([x, y, w, h]) => [x + fx(x + w / 2) - (x + w / 2), y + fy(y + h / 2) - (y + h / 2), w, h];
    this.size = [fx(size[0]), fy(size[1])];
    const rects = new Map(closed.map(number => [number, whole(small.get(number))]));
    frames.forEach((frame, number) => this.drawFrame(number, covers[number] >= 0 && covers[number] !== number, rects.get(number) || spread(frame.at)));
    for (const [id, sheet] of this.opened) set(sheet.group, "display", covers[home.get(id)] < 0 ? null : "none");
    for (const [id, sheet] of open) {
      const [x, y, w, h] = spread(places[id]), [wide, high] = sheet.size;
      sheet.at = [x + (w - wide) / 2, y + (h - high) / 2];
      rects.set(id, [...sheet.at, wide, high]);
      set(sheet.group, "transform", `translate(${sheet.at.map(round).join(" ")})`);
    }
    this.now = new Map();
    for (const [id, shape] of this.shapes) {
      const place = places[id];
      if (covers[home.get(id)] >= 0) continue;
      this.now.set(id, rects.get(id) || whole(place));
      const [x, y] = this.now.get(id), move = `translate(${round(x - place[0])} ${round(y - place[1])})`;
      if (!this.opened.has(id)) set(shape, "transform", move === "translate(0 0)" ? null : move);
    }
    this.drawLines(covers, rects, fx, fy, whole);
  }
  // Keeps in the document the boxes and lines that intersect the view; all of them where `sight` is null.
  reveal(sight, [left, top]) {
    if (!sight && this.limited) for (const [layer, nodes] of this.layers) layer.append(...nodes);
    this.limited = Boolean(sight);
    const seen = ([x, y, right, low]) => !sight || left + x < sight[2] && left + right > sight[0] && top + y < sight[3] && top + low > sight[1];
    const draw = (layer, node, reach) => {
      set(node, "display", reach ? null : "none");
      if (reach && seen(reach)) { if (!node.parentNode) this.layers[layer][0].append(node); } else if (sight) node.remove();
    };
    for (const [id, shape] of this.shapes) {
      const [x, y, w, h] = this.now.get(id) || [];
      draw(1, shape, this.now.has(id) && !this.opened.has(id) && [x, y, x + w, y + h]);
    }
    this.lines.forEach((line, number) => draw(0, line, this.reach[number]));
    for (const { number, word } of this.ends) draw(2, word, this.worded[number] && this.reach[number]);
  }
  drawFrame(number, away, [x, y, w, h]) {
    const [frame, title, count] = [this.drawn[number], this.titles[number], this.counts[number]], { folded } = this.frames[number], r = 8;
    for (const each of [frame, title]) set(each, "display", away ? "none" : null);
    set(count, "display", away || !folded ? "none" : null);
    if (away) return;
    set(count, "x", String(round(x + 12 + 2 * LETTER)));
    set(count, "y", String(round(y + 35)));
    set(frame, "d", `M${round(x + r)} ${round(y)}h${round(w - 2 * r)}q${r} 0 ${r} ${r}v${round(h - 2 * r)}q0 ${r} ${-r} ${r}h${round(2 * r - w)}q${-r} 0 ${-r} ${-r}v${round(2 * r - h)}q0 ${-r} ${r} ${-r}z`);
    frame.classList.toggle("folded", folded);
    if (title.textContent !== this.told(number)) title.textContent = this.told(number);
    set(title, "x", String(round(x + 12)));
    set(title, "y", String(round(y + 19)));
    if (this.foldable(number)) set(title, "aria-expanded", String(!folded));
  }

  // A line to a box in a folded frame ends at the folded frame; lines between the same two ends are drawn as one.
  drawLines(covers, rects, fx, fy, whole) {
    const { home, lines, given } = this, first = new Map(), known = new Map();
    const end = id => { if (!known.has(id)) known.set(id, this.end(id, rects.get(id), fx, fy, whole)); return known.get(id); };
    const low = rect => [rect[0], rect[1]], high = rect => [rect[0] + rect[2], rect[1] + rect[3]];
    this.reach = lines.map(() => null);
    this.worded = lines.map((group, number) => {
      const [tail, head] = given.lines[number], from = covers[home.get(tail)], to = covers[home.get(head)];
      const same = from >= 0 && from === to, key = from < 0 && to < 0 ? number : [from < 0 ? tail : from, to < 0 ? head : to, group.classList[1]].join("\n");
      const other = first.get(key);
      if (other) other.count++; else if (!same) first.set(key, { number, count: 1 });
      if (same || other) return false;
      set(this.paths[number], "d", this.way(number, from, to, end, rects, fx, fy));
      const [a, b] = [from < 0 ? end(tail).rect : rects.get(from), to < 0 ? end(head).rect : rects.get(to)], [x, y, right, down] = this.bounds[number];
      const ends = [...[low(a), low(b)], [fx(x), fy(y)]], others = [...[high(a), high(b)], [fx(right), fy(down)]];
      this.reach[number] = [0, 1].map(side => Math.min(...ends.map(each => each[side]))).concat([0, 1].map(side => Math.max(...others.map(each => each[side]))));
      return from < 0 && to < 0;
    });
    for (const { number, count } of first.values()) {
      const title = this.heads[number] && lines[number].querySelector("title"), words = count > 1 ? `${count} lines; the first: ${this.heads[number]}` : this.heads[number];
      if (title && title.textContent !== words) title.textContent = words;
    }
    for (const { number, end: which, word, x, y } of this.ends) {
      if (!this.worded[number]) continue;
      const points = this.points[number], [px, py] = points[which === 1 ? 0 : points.length - 1], at = end(given.lines[number][which - 1]);
      set(word, "x", String(round(x + at.x(px) - px)));
      set(word, "y", String(round(y + (which === 1 ? at.below(py) : at.above(py)) - py)));
    }
  }
  // How the ends of lines move with a box: with the box, or along the border of the sheet that the box has unfolded to.
  end(id, rect, fx, fy, whole) {
    const place = this.given.places[id];
    if (rect) return { rect, x: x => Math.min(Math.max(fx(x), rect[0] + 10), rect[0] + rect[2] - 10), above: () => rect[1], below: () => rect[1] + rect[3] };
    const moved = whole(place), dx = moved[0] - place[0], dy = moved[1] - place[1], down = y => y + dy;
    return { rect: moved, x: x => x + dx, above: down, below: down };
  }
  way(number, from, to, end, rects, fx, fy) {
    const [tail, head] = this.given.lines[number], points = this.points[number], a = end(tail), b = end(head);
    const sideways = this.given.ends[number] & 4;
    if (from < 0 && to < 0 && !sideways) return bent(points, { x: a.x, y: a.below }, { x: b.x, y: b.above }, fx, fy) || this.ways[number];
    if (from < 0 && to < 0 && ![tail, head].some(id => this.opened.has(id))) {
      const [before, after] = [tail, head].map((id, at) => [0, 1].map(side => (at ? b : a).rect[side] - this.given.places[id][side]));
      return drawnAside(this.ways[number], before, after);
    }
    if (from >= 0 && to < 0 && this.leavesBelow(from, points[0][1])) {
      const [x, y, w, h] = rects.get(from), rest = bent(points, { x: fx, y: fy }, { x: b.x, y: b.above }, fx, fy) || this.ways[number];
      return `M${round(x + w / 2)} ${round(y + h)}L${rest.slice(1)}`;
    }
    return between(from < 0 ? a.rect : rects.get(from), to < 0 ? b.rect : rects.get(to), sideways && from < 0 && to < 0);
  }
  // Whether a line begins at the lower edge of a frame: such a line goes to that edge first.
  leavesBelow(number, y) {
    const [, top, , high] = this.frames[number].at;
    return Math.abs(y - top - high) < 1;
  }
}
function onKey(node, act) {
  node.addEventListener("keydown", event => {
    if (event.key !== "Enter" && event.key !== " ") return;
    event.preventDefault();
    act();
  });
}
