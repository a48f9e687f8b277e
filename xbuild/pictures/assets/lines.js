// The route of a line as points, each with the letter of the path segment that ends there. Both ends of the route have
// a vertical segment, of length 0 if need be, which grows when the layer of the box becomes higher.
function wayOf(path) {
  let x = 0, y = 0;
  const found = [...path.matchAll(/([A-Z])([^A-Z]*)/g)].map(([, letter, rest]) => {
    const numbers = rest.split(/[ ,]+/).filter(Boolean).map(Number);
    if (letter === "V") y = numbers[0]; else [x, y] = numbers.slice(-2);
    return [x, y, letter];
  });
  if (found.length > 1 && found[1][2] === "C") found.splice(1, 0, [found[0][0], found[0][1], "V"]);
  if (found[found.length - 1][2] === "C") found.push([x, y, "V"]);
  return found;
}
// The route after a move: its ends move with their boxes, and the points between them by the maps of the two axes.
function bent(points, tail, head, fx, fy) {
  const curves = points.flatMap(([, , letter], number) => letter === "C" ? [number] : []), end = points.length - 1;
  const first = curves.length ? curves[0] : 1, last = curves.length ? curves[curves.length - 1] : 1;
  const moved = points.map(([x, y], number) => [
    number < first ? tail.x(x) : number >= last ? head.x(x) : fx(x), number ? number === end ? head.y(y) : fy(y) : tail.y(y)]);
  if (moved.every(([x, y], number) => x === points[number][0] && y === points[number][1])) return null;
  return moved.map(([x, y], number) => {
    if (!number) return `M${round(x)} ${round(y)}`;
    const [from, above] = moved[number - 1];
    if (Math.abs(from - x) < .05) return `V${round(y)}`;
    const middle = round((above + y) / 2);
    return `C${round(from)} ${middle} ${round(x)} ${middle} ${round(x)} ${round(y)}`;
  }).join("");
}
// A sideways route whose first half moves with the tail box and whose second half moves with the head box.
function drawnAside(way, before, after) {
  const numbers = way.split(/[MC ]/).filter(Boolean).map(Number), half = numbers.length / 2;
  if (![...before, ...after].some(Boolean)) return way;
  const [start, ...rest] = numbers.map((each, at) => round(each + (at < half ? before : after)[at % 2])).join(" ").match(/\S+ \S+/g);
  return `M${start}${rest.map((each, at) => (at % 3 ? " " : "C") + each).join("")}`;
}
// A line from box to box: downwards where the head is below the tail, else from side to side.
function between([ax, ay, aw, ah], [bx, by, bw, bh], sideways) {
  if (by >= ay + ah && !sideways) {
    const [x, y, to, end] = [ax + aw / 2, ay + ah, bx + bw / 2, by].map(round), middle = round((y + end) / 2);
    return `M${x} ${y}C${x} ${middle} ${to} ${middle} ${to} ${end}`;
  }
  const right = bx >= ax + aw ? 1 : bx + bw <= ax ? -1 : 0, start = right < 0 ? ax : ax + aw, end = right > 0 ? bx : bx + bw;
  const bow = Math.max(46, Math.abs(end - start) * .45), y = ay + ah / 2, to = by + bh / 2;
  return `M${round(start)} ${round(y)}C${round(start + (right < 0 ? -bow : bow))} ${round(y)} ${round(end + (right > 0 ? -bow : bow))} ${round(to)} ${round(end)} ${round(to)}`;
}
