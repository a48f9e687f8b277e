"""The record of the comparison for each op and element type: number of instances, or why none can be compared."""

from __future__ import annotations

import json
import re
from collections import Counter
from importlib.metadata import version
from pathlib import Path
from typing import Any

from attrs import Factory, define

from .judge import Finding

FILE = Path(__file__).parents[1] / "data" / "oracle.json"
LIBRARIES = ("jaxlib", "numpy", "ml_dtypes")


@define
class Record:
    """The cells, opcode -> type -> what: the counts of comparisons by outcome, or `refused` or `unable` and a reason.

    `refused` is xbuild's word for a type that the op does not take, `unable` is XLA:CPU's for one that it cannot run.
    """

    cells: dict[str, dict[str, Any]] = Factory(dict)
    runs: list[dict[str, Any]] = Factory(list)
    versions: dict[str, str] = Factory(lambda: {name: version(name) for name in LIBRARIES})

    @classmethod
    def read(cls) -> Record:
        return cls(**json.loads(FILE.read_text())) if FILE.exists() else cls()

    def write(self) -> None:
        self.cells = {opcode: dict(sorted(self.cells[opcode].items())) for opcode in sorted(self.cells)}
        rows = [f"  {json.dumps(opcode)}: {json.dumps(row)}" for opcode, row in self.cells.items()]
        parts = {"runs": self.runs, "versions": self.versions}
        lines = [f" {json.dumps(key)}: {json.dumps(value)}" for key, value in parts.items()]
        cells = ",\n".join(rows)
        text = ",\n".join([*lines, f' "cells": {{\n{cells}\n }}'])
        FILE.write_text(f"{{\n{text}\n}}\n")

    def runnable(self, opcode: str) -> list[str]:
        """The types in which instances of the op can be compared."""
        return [name for name, cell in self.cells.get(opcode, {}).items() if not {"refused", "unable"} & cell.keys()]

    def add(self, finding: Finding) -> None:
        """Count an instance as equal, or under the reason that it is apart for.

        A cell in which XLA:CPU harms itself, if not each time, is out.
        """
        if finding.is_harm:
            self.cells[finding.instance.opcode][finding.instance.dtype.name] = {"unable": brief(finding.words)}
            return
        cell = self.cells[finding.instance.opcode][finding.instance.dtype.name]
        outcome = finding.words if finding.kind == "apart" else finding.kind
        cell[outcome] = cell.get(outcome, 0) + 1

    def total(self) -> Counter[str]:
        """The comparisons by outcome."""
        counts = Counter[str]()
        for row in self.cells.values():
            for cell in row.values():
                counts.update({key: n for key, n in cell.items() if isinstance(n, int)})
        return counts


def brief(message: str) -> str:
    """The beginning of a message of XLA's, without what differs from run to run and from shape to shape."""
    marks = r"loc\([^)]*\)|<unknown>:0:|\w*RuntimeError:|%[\w.]+|\w+\[[\d,]*\](\{[^}]*\})?"
    words = " ".join(re.sub(marks, "", message).split())
    for pattern, instead in _SHORTER:
        words = re.sub(pattern, instead, words)
    return re.split(r"(?<=\w)[.;] |: %| \(external|, got |, metadata", words)[0].strip()[:140]


_SHORTER = (
    (r"(process died with \w+( \d+)?).*", r"\1"),
    (r".*'[\w.]+' op (operand|result) #\d+ must be .*", "StableHLO, through which it is fed, has no such type there"),
    (r"(RuntimeProgramInputMismatch).*", r"\1"),
    (r"(complex comparison) .*", r"\1"),
    (r"(opcode) `\S+` (is not supported)", r"\1 \2"),
    (r"(unsupported operand type|for datatype) '?\w+'?", r"\1"),
    (r"unary complex op '(\w+)'", r"\1"),
    (r"(Non-root instruction) =.*", r"\1"),
    (r"(on non-sub-byte types).*", r"\1"),
)
"""What differs between messages that say the same."""
