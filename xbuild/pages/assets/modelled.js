"use strict";
// The switch between lanes over logical time and lanes over modelled time, on pages that have both.
const Modelled = {
  start() {
    if (!byId("modelled")) return;
    byId("modelled").onclick = () => Modelled.show(true);
    byId("logical").onclick = () => Modelled.show(false);
  },
  show(isModelled) {
    byId("timed").hidden = !isModelled;
    for (const id of ["lanes", "strip", "out", "in", "all"]) byId(id).hidden = isModelled;
    byId("modelled").setAttribute("aria-pressed", String(isModelled));
    byId("logical").setAttribute("aria-pressed", String(!isModelled));
    byId("over").textContent = isModelled ? "modelled" : "logical";
  },
};
