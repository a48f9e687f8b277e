"""Turns of phrase that a native writer would not use, counted in everything that people read.

`python -m tests.style` lists every place. `python -m tests.style --record` writes how many each file still holds to
`tests/data/style_debt.json`; `tests/test_style.py` lets these numbers fall and never rise.
"""

from __future__ import annotations

import json
import re
import sys
from collections.abc import Iterator
from pathlib import Path

ROOT = Path(__file__).parents[1]
DEBT = ROOT / "tests" / "data" / "style_debt.json"
READ_BY_PEOPLE = (
    "shape_inference",
    "xbuild",
    "interpreter",
    "examples",
    "docs",
    "README.md",
    "CONTRIBUTING.md",
    "SECURITY.md",
)

# Each pattern with what to write in its place.
PATTERNS = {
    r"\b(?:is|are|was|were|be) wanted\b|\bwanted (?:is|are)\b": "expected X, got Y",
    r"\b(?:is|are|was|were|be) told\b": "the reader or the object as subject: 'the verdict names', 'XLA reads'",
    r"\bnever comes? to\b": "never reaches",
    r"\bfor ever\b": "hangs, or never ends",
    r"\bof (?:each|every|what|a|the|one) \w+ stands?\b": "subject first: 'Shows where each value comes from'",
    r"\bstands? (?:in|at|on|before|after|above|below|beside|there|here|for itself)\b": "is, precedes, lists",
    r"\bby turns\b": "alternately, or interleaved",
    r"\bmend(?:s|ed|ing)?\b": "fix",
    r"\b(?:that|which) (?:is|are) so\b": "say what they are",
    r"\bso nobody\b": "no device",
    r"\bis cut (?:along|over|by)\b|\bare cut (?:along|over|by)\b": "is sharded along, is split over",
    r"\bthere (?:is|are) none\b": "no X exists, or X is missing",
    r"\bof the user's\b": "the user's X",
    r"\blarger by far\b": "much larger",
    r"\bby chance\b": "at random, random",
    r"\bis no \w+ of\b|\bis no (?:operand|op|value|type|shape|program|target|number|result|rule)\b": "is not a X",
    r"\bcomes? to (?:it|them|the|a|its|their|that|this)\b": "reaches",
    r"\b(?:it|this|that|report|verdict|message|page|command) tells (?:of|which|what|how|why)\b": "says, shows",
    r"\b(?:functions|ops|numbers|values|elements|devices|collectives|texts?|types?|names|bytes|data) alone\b": "only X",
    r"\bparted (?:by|at)\b": "separated by, split at",
    r"(?:^|[.:;] )[Oo]f (?:each|every|several|two|all) \w+ (?:there|is|are|has|the|one)\b": "subject first",
}
_COMPILED = {re.compile(pattern, re.IGNORECASE): advice for pattern, advice in PATTERNS.items()}
_STYLE_PAGE = re.compile(r"^## How we write$.*?(?=^## |\Z)", re.MULTILINE | re.DOTALL)


def readable(path: Path) -> str:
    """The text of a file without the style page, which may quote such phrases."""
    text = path.read_text()
    if path.name == "CONTRIBUTING.md":
        text = _STYLE_PAGE.sub(lambda page: "\n" * page[0].count("\n"), text)
    return text


def find_phrases(line: str) -> Iterator[str]:
    for pattern in _COMPILED:
        yield from (match[0] for match in pattern.finditer(line))


def find_places(path: Path) -> Iterator[tuple[int, str, str]]:
    """Line, phrase and advice for each such phrase in a file."""
    for number, line in enumerate(readable(path).splitlines(), 1):
        for pattern, advice in _COMPILED.items():
            for match in pattern.finditer(line):
                yield number, match[0], advice


def read_files() -> Iterator[Path]:
    for name in READ_BY_PEOPLE:
        path = ROOT / name
        yield from [path] if path.is_file() else sorted(p for p in path.rglob("*") if p.suffix in {".py", ".md"})


def count_places() -> dict[str, int]:
    """How many such phrases each file holds; files without any are left out."""
    counts = {str(path.relative_to(ROOT)): len(list(find_places(path))) for path in read_files()}
    return {path: count for path, count in counts.items() if count}


def main() -> None:
    if "--record" in sys.argv[1:]:
        DEBT.write_text(json.dumps(count_places(), indent=1, sort_keys=True) + "\n")
        return
    for path in read_files():
        for number, phrase, advice in find_places(path):
            print(f"{path.relative_to(ROOT)}:{number}: {phrase!r}: {advice}")


if __name__ == "__main__":
    main()
