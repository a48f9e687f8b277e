"""StableHLO's interpret tests from a folder of .mlir files: each module between `// -----` is read, run and checked.

Everything is native: the package's reader and interpreter, with denormal numbers kept. The ops of the check and
interpreter dialects are `stablehlo_ops.py`; a module passes that runs to completion with each expectation met, or that
is refused where its file says so (`not` in the RUN line, `expected-error` in a comment).
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

import xbuild as xb
from tests.conformance import stablehlo_ops as ops
from tests.conformance.reporting import report
from xbuild.stablehlo.reading.reader import module_of, parse_tree

_BREAK = re.compile(r"^// -----.*$", re.MULTILINE)
_RUN = re.compile(r"^// RUN:(.*)$", re.MULTILINE)
_CODE = re.compile(r"^\s*(?!//)\S", re.MULTILINE)


def modules_in(text: str) -> list[str]:
    """The modules of a file; what holds comments alone is none."""
    return [part for part in _BREAK.split(text) if _CODE.search(part)]


def is_refused(text: str, part: str) -> bool:
    """Whether the file states that this module fails."""
    runs = [run.strip() for run in _RUN.findall(text)]
    return "expected-error" in part or any(run.startswith("not ") for run in runs)


def outcome(part: str, name: str) -> list[str]:
    """What is wrong with the run of a module: expectations that are not met, or why it does not run."""
    try:
        with ops.ready() as found:
            module = module_of(parse_tree(part, name), part, name)
            ops.run(module, [()] * module.num_devices)
        return found
    except (xb.XbuildError, xb.HloParseError) as error:
        return [str(error)]
    except Exception as error:  # whatever else happens is our fault, and is reported
        return [f"{type(error).__name__}: {error}"]


def failure(text: str, part: str, name: str) -> str | None:
    """What is wrong with how a module is treated, or None."""
    found = outcome(part, name)
    if is_refused(text, part):
        return None if found else "it passes, and its file says that it fails"
    return found[0].strip() if found else None


def results(paths: list[Path]) -> Iterator[tuple[str, str | None]]:
    """The name of each module, which is that of its file and its number, and what is wrong with it."""
    for path in paths:
        text = path.read_text()
        for number, part in enumerate(modules_in(text), 1):
            name = f"{path.stem}#{number}"
            yield name, failure(text, part, name)


def main(arguments: list[str]) -> int:
    given = [Path(each) for each in arguments]
    paths = [path for each in given for path in (sorted(each.glob("*.mlir")) if each.is_dir() else [each])]
    found = list(results(paths))
    lines = [f"{name}: {' '.join(wrong.split())[:300]}" for name, wrong in found if wrong]
    return report(lines, len(found) - len(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
