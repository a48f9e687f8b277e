"""HLO texts that XLA tests itself with: what its parser reads is read, or refused for a reason that XLA gives, too."""

from __future__ import annotations

import gzip
import json
import re
import sys
import time
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from attrs import frozen

import xbuild as xb
from tests.oracle.shapes.__main__ import Answer, answered

Case = dict[str, Any]
SECONDS = 5.0
SHARE = 0.995
COUNTED = 8  # devices that the child process has


@frozen
class Outcome:
    """What xbuild does with a text: `read`, `refused`, `raised` or `slow`, and the message."""

    kind: str
    message: str = ""


def outcome(text: str) -> Outcome:
    begin = time.monotonic()
    try:
        xb.parse_hlo_modules(text)
        found = Outcome("read")
    except xb.HloParseError as error:
        found = Outcome("refused", str(error).splitlines()[0])
    except Exception as error:
        found = Outcome("raised", f"{type(error).__name__}: {error}")
    seconds = time.monotonic() - begin
    return found if seconds < SECONDS else Outcome("slow", f"{seconds:.1f} s; {found.kind}: {found.message}")


def shared_reasons(cases: Sequence[Case]) -> list[Answer]:
    """What XLA's verifiers and its compiler say of texts that its parser reads."""
    return answered([(case["text"], *_counts(case["text"]), False) for case in cases])


def _counts(text: str) -> tuple[int, int]:
    """The counts of the header, as far as the child process has devices."""
    header = text.lstrip().partition("\n")[0]
    counts = [int(header.partition(f"{key}=")[2].partition(",")[0] or 1) for key in ("replica_count", "num_partitions")]
    return (counts[0], counts[1]) if counts[0] * counts[1] <= COUNTED else (1, 1)


@frozen
class Result:
    """How many texts came to what, and a line for each that fails."""

    counts: Counter[str]
    lines: list[str]

    @property
    def share(self) -> float:
        """Of the texts that XLA's parser reads, those that are read or refused for a reason that XLA gives, too."""
        alone = self.counts["XLA reads, refused here alone"]
        good = sum(count for name, count in self.counts.items() if name.startswith("XLA reads")) - alone
        return good / max(good + alone, 1)


def run(cases: Sequence[Case]) -> Result:
    counts, lines = Counter[str](), list[str]()
    found = [(case, outcome(case["text"])) for case in cases]
    asked = [case for case, ours in found if ours.kind == "refused" and case["xla"] == "read"]
    answers = {case["id"]: answer for case, answer in zip(asked, shared_reasons(asked), strict=True)}
    for case, ours in found:
        name, is_good = _judged(case, ours, answers.get(case["id"]))
        counts[name] += 1
        if not is_good:
            lines.append(f"{case['id']}: {name}: {ours.message}")
        elif case["id"] in answers:
            print(f"{case['id']}: {name}: {ours.message} | {_line(answers[case['id']].message)}")
    return Result(counts, lines)


def _judged(case: Case, ours: Outcome, answer: Answer | None) -> tuple[str, bool]:
    """What a text comes to, and whether that is right."""
    if ours.kind in ("raised", "slow"):
        return ours.kind, False
    if case["xla"] == "refused" and ours.kind == "read" and _NEWER.search(case["text"]):
        return "XLA of jaxlib 0.10.2 refused, newer reads, read", True
    if case["xla"] != "read":
        return f"XLA {case['xla']}, {ours.kind}", case["xla"] == "died" or ours.kind == "refused"
    if ours.kind == "read":
        return "XLA reads, read", True
    if answer is not None and answer.message.startswith("died"):
        return "XLA reads, and dies of it when it compiles, refused", True
    is_shared = answer is not None and answer.is_refused and (not answer.is_unable or _is_of_shapes(answer.message))
    return ("XLA reads, refused as by XLA's verifier", True) if is_shared else ("XLA reads, refused here alone", False)


_NEWER = re.compile(r"%?[\w.-]+#\d|, is_stable=|, order=|\bdebug_attributes=")
"""What XLA reads since jaxlib 0.11: elements of tuples as operands, and attributes."""


def _is_of_shapes(message: str) -> bool:
    """Whether a message names a shape, type or number of operands that does not fit, also of ops that XLA:CPU lacks."""
    return _OF_SHAPES.search(message) is not None


_OF_SHAPES = re.compile(
    r"doesn't match callee|number of operands doesn't match|type mismatch on argument|must be [^:]*, but got|"
    r"inferred type\(s\) .* incompatible with return type"
)


def _line(text: str) -> str:
    return " ".join(text.split())[:200]


def main(arguments: list[str]) -> int:
    cases = [
        case for path in arguments for case in json.loads(gzip.decompress(Path(path).read_bytes()).decode())["cases"]
    ]
    found = run(cases)
    print(*found.lines, sep="\n", end="\n" * bool(found.lines))
    for name, count in sorted(found.counts.items()):
        print(f"{name:48} {count:6}")
    print(f"{'of those that XLA reads, read or refused alike':48} {found.share:7.2%}, {SHARE:.1%} wanted")
    print(f"{len(cases) - len(found.lines)} passed, {len(found.lines)} failed")
    return 1 if found.share < SHARE or any("reads" not in line for line in found.lines) else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
