"""Programs of StableHLO text, each with the HLO text of the same program."""

from __future__ import annotations

from pathlib import Path

from attrs import frozen

FOLDER = Path(__file__).parents[1] / "data" / "stablehlo"


@frozen
class Pair:
    """Two spellings of one program."""

    id: str
    text: str
    hlo: str


PAIRS = [
    Pair(path.stem, path.read_text(), path.with_suffix(".hlo").read_text())
    for path in sorted((FOLDER / "programs").glob("*.mlir"))
]
