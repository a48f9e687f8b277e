// Culling of a large picture: all parts are measured once, and parts outside the view are removed from the document.
const MOST_PARTS = 200;
class Culled {
  constructor(svg) {
    this.svg = svg;
    this.boxes = new Map([...svg.querySelectorAll(".shapes[id]")].map(each => [each.id, each]));
    this.above = element(svg.parentNode, "svg", {id: "above", "aria-hidden": true});
    this.parts = null;
    this.far = null;
  }
  // Measures each part: a box, a line, a frame or a title. At the first call the picture is complete.
  measure() {
    const found = [...this.svg.querySelectorAll(".shapes,.line,.frame,text")].filter(each => !each.parentNode.closest(".shapes,.line"));
    this.parts = new Map(found.map(node => {
      const {x, y, width, height} = node.getBBox(), by = this.moved(node);
      return [node, [x + by[0], y + by[1], width, height]];
    }));
    this.groups = [...new Set(found.map(each => each.parentNode))].map(each => [each, [...each.childNodes]]);
    this.seen = null;
  }
  // How far the groups around a part have moved it.
  moved(node) {
    let x = 0, y = 0;
    for (let each = node.parentNode; each && each !== this.svg; each = each.parentNode)
      for (const change of each.transform.baseVal) { x += change.matrix.e; y += change.matrix.f; }
    return [x, y];
  }
  // The position and the size of a box in the picture.
  extent(box) {
    if (!this.parts) this.measure();
    return this.parts.get(box);
  }
  // Shows the parts in a rectangle of the picture, with a margin so that small moves change nothing.
  look(x, y, wide, high, scale) {
    if (!this.parts) this.measure();
    this.distance(scale);
    if (this.parts.size <= MOST_PARTS || this.isSeen(x, y, wide, high)) return;
    this.seen = [x - wide / 4, y - high / 4, x + 1.25 * wide, y + 1.25 * high];
    for (const [group, nodes] of this.groups) this.fill(group, nodes);
  }
  isSeen(x, y, wide, high) {
    const [left, top, right, bottom] = this.seen || [1, 1, 0, 0];
    return x >= left && y >= top && x + wide <= right && y + high <= bottom && wide * 4 > right - left;
  }
  // The nodes of a group that are in view, in their order.
  fill(group, nodes) {
    const [left, top, right, bottom] = this.seen;
    let next = null;
    for (let n = nodes.length - 1; n >= 0; n--) {
      const node = nodes[n], at = this.parts.get(node), away = at && (at[0] > right || at[1] > bottom || at[0] + at[2] < left || at[1] + at[3] < top);
      if (away) { if (node.parentNode) node.remove(); continue; }
      if (!node.parentNode) group.insertBefore(node, next);
      next = node;
    }
  }
  // Hides text whose letters would be no larger than a dot.
  distance(scale) {
    if (this.far !== scale < .12) this.svg.classList.toggle("distant", this.far = scale < .12);
  }
  // Draws the outlines of marked boxes over the picture, since a change in the picture would lay out all of it again.
  mark(boxes) {
    const by = boxes.length && (this.by ||= this.moved(boxes[0].box));
    this.above.replaceChildren(...boxes.map(({box, role}) => {
      const outline = box.querySelector("path").cloneNode();
      outline.setAttribute("class", role);
      outline.setAttribute("transform", `translate(${by})`);
      return outline;
    }));
  }
}
