"""Colours of stops in lanes (stuck, waiting, later), in the light and the dark theme."""

from __future__ import annotations


def _rules(ok: str, bad: str, open_: str, pale: str, grey: str, ground: str, dim: str) -> str:
    rules = (
        ".v-ok{fill:#2e7d32}",
        ".v-deadlock,.xb .v-error,.xb .v-stopped{fill:#c62828}",
        ".v-depends{fill:#9a5b00}",
        ".v-word{fill:#ffffff}",
        f".s-bad{{fill:{bad}}}",
        f".s-cycle path{{fill:{pale};stroke:{bad};stroke-width:3}}",
        f".s-asked path{{fill:{ground};stroke:{bad};stroke-width:2;stroke-dasharray:5 3}}",
        f".s-waits path{{fill:{grey};stroke:{dim};stroke-dasharray:2 2}}",
        f".s-later path{{fill:{ground};stroke:{dim};stroke-dasharray:3 3}}",
        f".s-later text{{fill:{dim}}}",
        f".s-open path{{stroke:{open_};stroke-width:3.5}}",
        f".legend path{{fill:{ground}}}",
        f".lane{{stroke:{dim};stroke-width:1.2;opacity:.6}}",
        ".beyond{stroke-dasharray:2 5}",
        f".block{{fill:{dim};fill-opacity:.13;stroke:{dim};stroke-opacity:.6;stroke-width:1}}",
        f".halt{{stroke:{bad};stroke-width:1.5;stroke-dasharray:7 4}}",
        f".cycle path,.xb .after path,.xb .clash path{{stroke:{bad};stroke-width:2.4}}",
        ".clash path{stroke-dasharray:6 4}",
        f".waits path{{stroke:{dim};stroke-dasharray:4 4}}",
        f".move path{{stroke:{ok};stroke-width:2.2;stroke-dasharray:8 3}}",
        f".a-cycle,.xb .a-after,.xb .w-cycle,.xb .w-after{{fill:{bad}}}",
        f".a-waits{{fill:{dim}}}",
        f".a-move,.xb .w-move{{fill:{ok}}}",
        ".bar{fill:#d81b60;opacity:.32}",
        # A halo keeps text readable above the lines behind it.
        f".w-cycle,.xb .w-after,.xb .w-move{{paint-order:stroke;stroke:{ground};stroke-width:4;stroke-linejoin:round}}",
    )
    return "".join(f".xb {rule}" for rule in rules)


EXTRA = (
    _rules("#2e7d32", "#c62828", "#b26a00", "#ffebee", "#eceff1", "#ffffff", "#78868e"),
    _rules("#81c784", "#ff6b6b", "#ffb74d", "#4a1c1f", "#2b3237", "#15181a", "#8b989f"),
)
