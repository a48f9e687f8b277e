"""Round trip of the corpus through the reader and the printer: real XLA gives the same results for both texts."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

import attrs
import numpy as np

import xbuild as xb
from tests.conformance.corpus import stored_arguments
from tests.oracle import Failure, Job, Oracle
from tests.support.compare import difference
from xbuild.files.arrays import leaf_values

FOLDER = Path(__file__).parent / "data" / "hlo"
ENTRIES = json.loads((FOLDER / "manifest.json").read_text())
STYLES = ("short", "percent", "full")

# Texts as JSON on stdin; on stdout each as XLA reads and prints it, names of instructions apart, which it may make up.
_PRINTER = """
import json, sys
from jaxlib import _hlo
options = _hlo.HloPrintOptions.short_parsable()
options.canonicalize_instruction_names = True
def printed(text, metadata):
    options.print_metadata = metadata
    return _hlo.hlo_module_from_text(text).to_string(options)
json.dump([printed(text, metadata) for text, metadata in json.load(sys.stdin)], sys.stdout)
"""


def read_otherwise(entries: Sequence[dict[str, Any]]) -> list[str]:
    """The programs that XLA reads as others from our text, in any style, than from the text that we read."""
    jobs: list[tuple[str, bool]] = []
    for entry in entries:
        text = (FOLDER / entry["file"]).read_text()
        module = xb.parse_hlo(text, entry["file"])
        if "inferred_counts" in module.annotations:  # the text states none
            module = attrs.evolve(module, num_replicas=1, num_partitions=1)
        jobs += [(each, style == "full") for style in STYLES for each in (text, module.to_hlo(style=style))]
    command = [sys.executable, "-c", _PRINTER]
    done = subprocess.run(command, input=json.dumps(jobs), capture_output=True, text=True, check=False, timeout=120)
    assert done.returncode == 0, done.stderr
    forms = json.loads(done.stdout)
    names = [f"{entry['file']} in style {style}" for entry in entries for style in STYLES]
    return [name for name, given, ours in zip(names, forms[::2], forms[1::2], strict=True) if given != ours]


def run_otherwise(entries: Iterable[dict[str, Any]]) -> list[str]:
    """The programs that give real XLA other results from our text than from the text that we read, with the place."""
    found = []
    with Oracle() as oracle:
        for entry in entries:
            given, ours = _outcomes(oracle, entry)
            if isinstance(given, Failure) or isinstance(ours, Failure):
                found += [f"{entry['file']}: {each.message}" for each in (given, ours) if isinstance(each, Failure)]
            elif what := difference(ours, given):
                found.append(f"{entry['file']}: {what}")
    return found


def _outcomes(oracle: Oracle, entry: dict[str, Any]) -> list[Any]:
    text = (FOLDER / entry["file"]).read_text()
    module = xb.parse_hlo(text, entry["file"])
    with np.load(FOLDER / entry["inputs_file"]) as stored:
        inputs = dict(stored)
    rows = [_leaves(stored_arguments(inputs, device, module.entry), module) for device in range(module.num_devices)]
    counts = module.num_replicas, module.num_partitions
    return [oracle.run(Job(each, rows, *counts)) for each in (text, module.to_hlo())]


def _leaves(values: Sequence[Any], module: xb.Module) -> list[Any]:
    pairs = zip(values, module.entry.parameters, strict=True)
    return [np.asarray(leaf) for value, p in pairs for leaf, _ in leaf_values(value, p.shape)]


def main() -> int:
    runnable = [entry for entry in ENTRIES if entry["kind"] != "parse-only"]
    read, ran = read_otherwise(ENTRIES), run_otherwise(runnable)
    print(*read, *ran, sep="\n", end="\n" * bool(read or ran))
    print(f"{len(ENTRIES)} programs read in {len(STYLES)} styles: {len(read)} otherwise")
    print(f"{len(runnable)} programs run: {len(ran)} otherwise")
    return 1 if read or ran else 0


if __name__ == "__main__":
    sys.exit(main())
