"""`python -m tests.sharding.against_xla [WORD ...]` prints the tables of the programs whose names contain a word.

With `--write` it measures all programs and writes the tables into docs/sharding.md; `--rows FILE` takes rows that the
measuring process has printed.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path

from .causes import CAUSES
from .rows import ROOT, Row, rows
from .table import above, reasons, summary, table, work

DOCUMENT = ROOT / "docs" / "sharding.md"
MARK = "<!-- {}: written by python -m tests.sharding.against_xla --write -->"


def _read(path: Path) -> list[Row]:
    found = [Row(**json.loads(line)) for line in path.read_text().splitlines()]
    return list({row.name: row for row in found}.values())


def _write(tables: dict[str, str]) -> None:
    """Put each table in the place of the one that follows its mark."""
    text = DOCUMENT.read_text()
    for name, each in tables.items():
        head, mark, rest = text.partition(MARK.format(name))
        assert mark, f"{DOCUMENT} has no mark of {name}"
        text = f"{head}{mark}\n{each}\n\n{rest.lstrip().partition(chr(10) * 2)[2]}"
    DOCUMENT.write_text(text)


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.sharding.against_xla", description=__doc__)
    parser.add_argument("words", nargs="*")
    parser.add_argument("--rows", type=Path)
    parser.add_argument("--write", action="store_true")
    parser.add_argument("--only-shardy", action="store_true")
    chosen = parser.parse_args(arguments)
    found = _read(chosen.rows) if chosen.rows else rows(*chosen.words, has_gspmd=not chosen.only_shardy)
    tables = {"counts": summary(found), "above": reasons(found), "work": work(found), "programs": table(found)}
    if chosen.write:
        _write(tables)
    print("\n\n".join(tables.values()))
    unknown = [row.name for row in above(found) if row.name not in CAUSES]
    wrong = [row.name for row in found if row.fault is not None]
    print(f"\nfaults: {', '.join(wrong) or 'none'}; causes not known: {', '.join(unknown) or 'none'}")
    return 1 if wrong or unknown else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
