"""Tensor-parallel decoder layers of a real size, against the layers of one device.

`python -m tests.equivalence.neuron FOLDER`: FOLDER has the texts that AWS Neuron compiled, from ByteDance-Seed/entangle
(examples/data/aws_llama, Apache-2.0), as `tpN_layerM.hlo` or `tpN_layerM.hlo.gz`: tensor parallel over N devices, M
layers of the size of Llama-3.2-1B. In `tp2_layer1.broken`, `slice.54` reads q instead of k. The command compares each
text of several devices with that of one device, prints the verdict, the seconds, those of a processor, and the memory
of each comparison, and exits with 1 if a verdict is not as it should be.
"""

from __future__ import annotations

import argparse
import gzip
import re
import subprocess
import sys
import time
from pathlib import Path

import xbuild as xb

_NAME = re.compile(r"tp(?P<devices>\d+)_layer(?P<layers>\d+)(?P<broken>\.broken)?\.hlo(\.gz)?")


def read(path: Path) -> str:
    """The text of a file, which may be compressed."""
    return (gzip.decompress(path.read_bytes()) if path.suffix == ".gz" else path.read_bytes()).decode()


def compare(whole: Path, cut: Path) -> bool:
    """Print the verdict on a pair; whether it is as it should be."""
    import resource

    begun = time.monotonic(), time.process_time()
    verdict = xb.equivalent(read(whole), read(cut))
    seconds, used = time.monotonic() - begun[0], time.process_time() - begun[1]
    most = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    suspect = None if verdict.difference is None else verdict.difference.other
    is_right = suspect is not None and suspect.name == "slice.54" if ".broken" in cut.name else bool(verdict)
    at = "" if suspect is None else f" at %{suspect.name}"
    measured = f"{seconds:.0f} s ({used:.0f} s of a processor), {most} MB"
    print(f"{whole.name} {cut.name}: {verdict.kind}{at}, {measured}{'' if is_right else ' WRONG'}", flush=True)
    if not is_right:
        print(verdict)
    return is_right


def main(arguments: list[str] | None = None) -> int:
    """Compare all pairs of a folder, each in a process of its own; or one pair, of two files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("paths", nargs="+", type=Path, metavar="FOLDER")
    paths = parser.parse_args(arguments).paths
    if len(paths) == 2:
        return int(not compare(*paths))
    texts = {path: match for path in sorted(paths[0].iterdir()) if (match := _NAME.fullmatch(path.name))}
    whole = {match["layers"]: path for path, match in texts.items() if match["devices"] == "1"}
    codes = [
        subprocess.run([sys.executable, "-m", __spec__.name, whole[match["layers"]], path], check=False).returncode
        for path, match in texts.items()
        if match["devices"] != "1" and match["layers"] in whole
    ]
    return int(any(codes) or not codes)


if __name__ == "__main__":
    sys.exit(main())
