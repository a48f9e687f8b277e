// Texts of a page that stand out less than 4.5 to 1 against what is below them, and how many were looked at.
() => {
  // A colour as computed styles spell it: red, green and blue up to 255, and how opaque it is.
  const parsed = text => {
    const inner = text.match(/\(([^)]*)\)/);
    if (!inner) return [0, 0, 0, 0];
    const parts = inner[1].replace("srgb", "").split(/[\s,/]+/).filter(Boolean).map(Number), scale = text.startsWith("color(") ? 255 : 1;
    return [...parts.slice(0, 3).map(each => each * scale), parts[3] ?? 1];
  };
  const over = (top, below) => [...[0, 1, 2].map(n => top[n] * top[3] + below[n] * (1 - top[3])), 1];
  // What is below a text: its own shape in a picture, and the grounds of all that it stands in.
  const ground = each => {
    const layers = [];
    for (let at = each; at; at = at.parentElement) {
      if (at.matches(".ev,.shapes,.node,.mark")) {
        const shape = at.querySelector("rect,path,circle");
        layers.push(parsed(getComputedStyle(shape).fill));
      }
      layers.push(parsed(getComputedStyle(at).backgroundColor));
    }
    return layers.reverse().reduce((below, top) => over(top, below), [255, 255, 255, 1]);
  };
  // Relative luminance, as WCAG 2.1 has it.
  const light = colour => {
    const [r, g, b] = colour.map(each => each / 255).map(each => each <= .03928 ? each / 12.92 : ((each + .055) / 1.055) ** 2.4);
    return .2126 * r + .7152 * g + .0722 * b;
  };
  const found = [];
  let seen = 0;
  for (const each of document.querySelectorAll("body *")) {
    const own = [...each.childNodes].some(node => node.nodeType === 3 && node.textContent.trim());
    if (!own || each.closest("script,style,title,dialog,.unseen") || !each.getClientRects().length) continue;
    const style = getComputedStyle(each), below = ground(each), colour = over(parsed(each instanceof SVGElement ? style.fill : style.color), below);
    const [a, b] = [light(colour), light(below)].sort((x, y) => y - x), ratio = (a + .05) / (b + .05);
    seen++;
    if (ratio < 4.5) found.push(`${ratio.toFixed(2)} ${each.tagName}.${each.getAttribute("class") || ""} ${each.textContent.trim().slice(0, 40)}`);
  }
  return {seen, found};
}
