// The strip below the lanes: the whole run, the interval in view, and the current step.
const Strip = {
  start() {
    this.host = byId("strip");
    this.host.addEventListener("pointerdown", event => this.jump(event));
    this.host.addEventListener("pointermove", event => { if (event.buttons) this.jump(event); });
    this.marks = lanes.map(lane => {
      const found = [];
      for (let i = 0; i < lane.length; i++) if (COMMUNICATES.has(lane.spot(i).k) || lane.waited.has(i)) found.push(i);
      return found;
    });
  },
  jump(event) {
    const box = this.host.getBoundingClientRect();
    go({time: Math.round((event.clientX - box.left - Lanes.label) / (box.width - Lanes.label) * D.end)});
  },
  draw() {
    const width = Sizes.strip, scale = (width - Lanes.label) / Math.max(D.end, 1);
    if (!width) return;
    const drawn = [width, window.devicePixelRatio, document.documentElement.dataset.theme].join();
    if (this.drawn !== drawn) { this.whole(width, window.devicePixelRatio || 1, scale); this.drawn = drawn; }
    const seen = byId("seen").style, wide = `${Math.max(2, Math.min(Lanes.shown, D.end) * scale)}px`;
    if (seen.width !== wide) seen.width = wide;
    seen.transform = `translateX(${Lanes.label + (Lanes.first - 1) * scale}px)`;
    byId("current").style.transform = `translateX(${Lanes.label + (state.time - .5) * scale - 1}px)`;
  },
  // Draws the whole run, which is the same at every step.
  whole(width, ratio, scale) {
    const canvas = byId("overview"), tall = 22 / lanes.length, left = Lanes.label, colour = name => Sizes.colour(name);
    canvas.width = width * ratio; canvas.height = 26 * ratio;
    const pen = canvas.getContext("2d");
    pen.scale(ratio, ratio);
    pen.fillStyle = colour("--dim"); pen.font = "11px ui-sans-serif,system-ui,sans-serif"; pen.fillText("whole run", 5, 17);
    lanes.forEach(lane => {
      const y = 2 + lane.device * tall;
      pen.fillStyle = colour("--Kb"); pen.globalAlpha = .3; pen.fillRect(left, y, lane.end * scale, Math.max(1, tall - 1));
      for (const i of this.marks[lane.device]) {
        const waited = lane.waited.has(i);
        pen.globalAlpha = waited ? .35 : .9;
        pen.fillStyle = colour(waited || i === lane.stuck ? "--wait" : "--coll");
        if (waited) pen.fillRect(left + (lane.since(i) - 1) * scale, y, (lane.times[i] - lane.since(i)) * scale, Math.max(1, tall - 1));
        else pen.fillRect(left + (lane.times[i] - 1) * scale, y, Math.max(1, scale), Math.max(1, tall - 1));
      }
    });
  },
};
