// The sizes of the parts of the page and the colours of the theme, read when they change and not at every step, since
// each reading makes the browser lay out the page.
const Sizes = {
  lanes: [800, 1e9], graph: [800, 400], side: 480, strip: 800, colours: new Map(),

  start() {
    this.measure();
    const look = () => { if (this.measure()) { Graph.resized(); draw(); } }, watch = new ResizeObserver(look);
    for (const id of ["lanes", "graph", "side", "strip"]) watch.observe(byId(id));
    window.addEventListener("resize", look);
  },
  // Measures all parts; whether a size has changed.
  measure() {
    const before = this.told(), of = id => [byId(id).clientWidth, byId(id).clientHeight];
    [this.lanes, this.graph, this.side, this.strip] = [of("lanes"), of("graph"), of("side")[0], of("strip")[0]];
    return before !== this.told();
  },
  told() { return [this.lanes, this.graph, this.side, this.strip].join(); },
  colour(name) {
    if (this.theme !== document.documentElement.dataset.theme) { this.theme = document.documentElement.dataset.theme; this.colours.clear(); }
    if (!this.colours.has(name)) this.colours.set(name, getComputedStyle(document.documentElement).getPropertyValue(name).trim());
    return this.colours.get(name);
  },
};
