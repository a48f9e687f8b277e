// Culling of a large picture: boxes far outside the view are not drawn, and text too small to read is hidden.
const MANY = 400, FAR = 3.2, MARGIN = .6;
const origin = [picture.parentNode, picture].flatMap(each => [...each.transform.baseVal]).reduce(([x, y], { matrix }) => [x + matrix.e, y + matrix.f], [0, 0]);
let sight = null;
function cull(changed = false) {
  const sheets = [root, ...openSheets().map(([, sheet]) => sheet)], many = sheets.reduce((sum, sheet) => sum + sheet.shapes.size, 0) > MANY;
  const unit = scale(), wide = room[0] * unit, high = room[1] * unit;
  const left = view[0] + (view[2] - wide) / 2 - origin[0], top = view[1] + (view[3] - high) / 2 - origin[1];
  svg.classList.toggle("far", many && unit > FAR);
  const wanted = many ? [left, top, left + wide, top + high] : null;
  if (!changed && (wanted ? sight && holds(sight, wanted) && sight[2] - sight[0] < 6 * wide : !sight)) return;
  sight = wanted && [left - MARGIN * wide, top - MARGIN * high, left + (1 + MARGIN) * wide, top + (1 + MARGIN) * high];
  for (const sheet of sheets) sheet.reveal(sight, placeOf(sheet, [0, 0]));
}
function holds(outer, inner) {
  return outer[0] <= inner[0] && outer[1] <= inner[1] && outer[2] >= inner[2] && outer[3] >= inner[3];
}
function begin() {
  readAddress();
  show();
}
const ready = unpack().then(() => { if (folds.size && location.hash) { readAddress(); show(); } });
