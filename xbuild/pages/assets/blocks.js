// Blocks: the scopes that the program's author named, around the events of a lane: F0 B0 of a pipeline.
const HUES = [212, 28, 145, 285, 345, 190];
const Blocks = {
  start() {
    this.parts = D.spots.map(spot => spot.b ? spot.b.split("/") : []);
    this.deepest = Math.max(0, ...this.parts.map(each => each.length));
    // One hue for each sort of scope: F0 and F1 are alike, B0 is another.
    this.hues = new Map();
    for (const [first] of this.parts) if (first && !this.hues.has(this.sort(first))) this.hues.set(this.sort(first), HUES[this.hues.size % HUES.length]);
  },
  sort: name => name.replace(/[\d_.]+$/, ""),
  // The blocks of a lane in view at a depth of scopes: successive events of one scope; events without one end no block.
  at(lane, depth) {
    const found = [], last = Lanes.first + Lanes.shown;
    for (let i = Math.max(0, lane.at(Lanes.first - 1)); i < lane.length && lane.times[i] <= last; i++) {
      const parts = this.parts[lane.spots[i]];
      if (!parts.length) continue;
      const name = parts.slice(0, depth).join("/"), block = found[found.length - 1];
      if (block && block.name === name) block.to = lane.times[i];
      else found.push({name, from: lane.times[i], to: lane.times[i]});
    }
    return found;
  },
  // The blocks at the greatest depth at which their names have room.
  of(lane) {
    for (let depth = this.deepest; depth; depth--) {
      const found = this.at(lane, depth);
      if (depth === 1 || !found.length) return found;
      const room = found.reduce((sum, each) => sum + each.to - each.from + 1, 0) * Lanes.px / found.length;
      if (room >= 80) return found;
    }
    return [];
  },
  draw(svg, lane) {
    this.drawn = this.deepest ? this.of(lane) : [];
    const high = Lanes.row - (Lanes.row < 20 ? 2 : 5), top = Lanes.y(lane.device) - high / 2;
    for (const block of this.drawn) {
      const x = Math.max(Lanes.x(block.from) - Lanes.px / 2, Lanes.label - 4), wide = Math.min(Lanes.x(block.to) + Lanes.px / 2, Lanes.width) - x, hue = this.hues.get(this.sort(block.name.split("/")[0]));
      block.place = [x, wide];
      if (wide <= 0) continue;
      const rect = element(svg, "rect", {class: "block", x, y: top, width: Math.max(1, wide - 1), height: high, rx: Math.min(4, wide / 3), fill: `hsl(${hue} 60% 50% / .16)`, stroke: `hsl(${hue} 55% 50% / .7)`});
      element(rect, "title", {}, block.name);
    }
  },
  // Names stand above the events, or over them where these are narrow.
  name(svg, lane) {
    const narrow = Lanes.px < 12, y = Lanes.y(lane.device), size = narrow ? 11 : 9.5;
    if (Lanes.row < 22 || (!narrow && Lanes.row < 44)) return;
    for (const {name, place: [x, wide]} of this.drawn) {
      const left = Math.max(x, Lanes.label), room = Math.min(x + wide, Lanes.width) - left - 6, text = this.short(name, Math.floor(room / (size * .62)));
      if (text) element(svg, "text", {class: "halo block", x: narrow ? left + 3 + room / 2 : left + 3, y: narrow ? y + 4 : y - Lanes.row / 2 + 10, "text-anchor": narrow ? "middle" : "start", "pointer-events": "none", style: `font-size:${size}px`}, text);
    }
  },
  // A name in so many letters: whole, its last part, or nothing.
  short: (name, most) => [name, name.split("/").pop()].find(each => each.length <= most) || "",
};
