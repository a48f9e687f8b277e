"""Real programs from a folder of HLO text: each is read, printed, read again as equal, checked and drawn.

Each has a child process with its own limits of seconds and bytes. `_AxB` at the end of a name means A * B partitions.
"""

from __future__ import annotations

import gzip
import re
import resource
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

from tests.conformance.reporting import report

SECONDS = 60.0
BYTES = 2 << 30
_PARTITIONS = re.compile(r"_(\d+)x(\d+)\Z")


def partitions_of(name: str) -> int | None:
    """The number of partitions that a name states, as `_64x8` does; None where it states none."""
    found = _PARTITIONS.search(name.removesuffix(".gz").rpartition(".")[0])
    return int(found[1]) * int(found[2]) if found else None


def text_of(path: Path) -> str:
    data = path.read_bytes()
    return (gzip.decompress(data) if path.suffix == ".gz" else data).decode("utf-8", errors="surrogateescape")


def treat(path: Path) -> str:
    """Read, print, read again, check and draw a program; a sentence of what it is, ValueError for what is wrong."""
    import xbuild as xb

    modules = xb.parse_hlo_modules(text_of(path), path.name, partitions=partitions_of(path.name))
    return "; ".join(treated(module) for module in modules)


def treated(module: Any) -> str:
    import xbuild as xb

    again = xb.parse_hlo(module.to_hlo(style="full"))
    if again.to_hlo(style="full") != module.to_hlo(style="full"):
        raise ValueError("its text does not read as the same")
    if (again.num_replicas, again.num_partitions) != (module.num_replicas, module.num_partitions):
        raise ValueError("its counts do not read as the same")
    verdict = xb.check(module)
    drawn = str(xb.viz(module))
    if not drawn.strip():
        raise ValueError("nothing is drawn")
    return f"{module.num_replicas} replicas, {module.num_partitions} partitions, {verdict.kind}"


def failure(path: Path) -> str | None:
    """What is wrong with how xbuild treats the program within the limits, or None."""
    begin = time.monotonic()
    command = [sys.executable, "-m", "tests.conformance.programs", "--one", str(path)]
    try:
        done = subprocess.run(command, capture_output=True, text=True, timeout=SECONDS, check=False)
    except subprocess.TimeoutExpired:
        return f"more than {SECONDS:.0f} s"
    if done.returncode:
        said = (done.stderr or done.stdout).strip().splitlines() or [f"exit code {done.returncode}"]
        return said[-1]
    print(f"{path.name}: {done.stdout.strip()}, {time.monotonic() - begin:.1f} s")
    return None


def programs_in(folder: Path) -> list[Path]:
    return sorted(each for each in folder.iterdir() if each.name.endswith((".hlo", ".txt", ".hlo.gz", ".txt.gz")))


def main(arguments: list[str]) -> int:
    if arguments[:1] == ["--one"]:
        resource.setrlimit(resource.RLIMIT_AS, (BYTES, BYTES))
        print(treat(Path(arguments[1])))
        return 0
    paths = [path for folder in arguments for path in programs_in(Path(folder))]
    found = [(path.name, failure(path)) for path in paths]
    lines = [f"{name}: {wrong}" for name, wrong in found if wrong]
    return report(lines, len(found) - len(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
