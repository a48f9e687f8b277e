// A map of coordinates along one axis. The intervals in `taken` keep their length, empty intervals in `freed` are
// shortened, and each interval in `wider` (its ends, and its new length) is stretched with all boxes in its range.
const GAP = 28;
function axis(taken, freed, wider, end) {
  const steps = [];
  let at = 0;
  for (const [low, high] of [...taken.sort((a, b) => a[0] - b[0]), [end, end]]) {
    const empty = low - at;
    if (empty > GAP && freed.some(([a, b]) => a < low && b > at)) steps.push([at, low, GAP - empty]);
    at = Math.max(at, high);
  }
  const gain = place => steps.reduce((sum, [low, high, more]) => sum + more * Math.min(Math.max((place - low) / (high - low), 0), 1), 0);
  for (const [low, high, wanted] of wider.sort((a, b) => a[1] - a[0] - b[1] + b[0])) {
    const lacking = wanted - (high - low) - gain(high) + gain(low);
    if (lacking > 0) steps.push([low, high, lacking]);
  }
  if (!steps.length) return place => place;
  const marks = [...new Set(steps.flatMap(([low, high]) => [low, high]))].sort((a, b) => a - b), gains = marks.map(gain);
  return place => {
    let low = 0, high = marks.length;
    while (low < high) { const middle = (low + high) >> 1; if (marks[middle] <= place) low = middle + 1; else high = middle; }
    if (!low) return place;
    if (low === marks.length) return place + gains[low - 1];
    const share = (place - marks[low - 1]) / (marks[low] - marks[low - 1]);
    return place + gains[low - 1] + share * (gains[low] - gains[low - 1]);
  };
}
const round = number => Math.round(number * 10) / 10 || 0;
function set(node, name, value) {
  if (node.getAttribute(name) === value) return;
  if (value === null) node.removeAttribute(name); else node.setAttribute(name, value);
}
