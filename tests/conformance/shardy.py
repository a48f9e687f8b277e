"""Shardy's executable tests from a folder of .mlir files: each file is a test of a sharded program by its values.

The functions of the first part that state shardings are partitioned by `xb.shard`, where Shardy's own tests call its
passes, and what the RUN lines rename is renamed; then the whole is read as StableHLO and run by the interpreter.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Iterator
from pathlib import Path

from attrs import evolve

import xbuild as xb
from tests.conformance import stablehlo_ops as ops
from tests.conformance.reporting import report
from xbuild.core.graph import Instruction
from xbuild.properties.rewriting import mapped
from xbuild.stablehlo.reading.reader import module_of, parse_tree

_PART = re.compile(r"^//--- (\S+)\s*$", re.MULTILINE)
_RENAMED = re.compile(r"""sed (?:-e )?['"]s([/|#,])((?:(?!\1).)+)\1((?:(?!\1).)*)\1g?['"]""")
_MESH = re.compile(r"^[ ]*sdy\.mesh @[^<]*<[^>]*>[^\n]*$", re.MULTILINE)
_FUNCTION = re.compile(r"^[ ]*func\.func\s+(?:\w+ )?@(\w+)", re.MULTILINE)
_WRAPPED = re.compile(r"\A\s*module\b[^\n]*\{\n(.*)^\}\s*\Z", re.MULTILINE | re.DOTALL)


def parts_of(text: str) -> dict[str, str]:
    """The parts of a file by name, each without a module around it; a file that is not split is one part."""
    words = _PART.split(text)
    found = dict(zip(words[1::2], words[2::2], strict=True)) or {"": text}
    return {name: _WRAPPED.sub(r"\1", body) for name, body in found.items()}


def program_of(text: str) -> str:
    """The text of all functions: those of the first part under each name that the RUN lines give them, and the rest."""
    first, *rest = parts_of(text).values()
    meshes, functions = "\n".join(_MESH.findall(first)), _MESH.sub("", first)
    renames = [(old, new) for _, old, new in _RENAMED.findall(text.partition("//--- ")[0])]
    copies = [functions.replace(old, new) for old, new in renames] or [functions]
    if "@transformed_" in first:  # the pass under test keeps what a function computes
        copies.append(functions.replace("@transformed_", "@original_"))
    if "@parallel_" in first and "@sequential_" not in first:
        copies.append(functions.replace("@parallel_", "@sequential_"))  # its shardings say nothing where it is called
    found: dict[str, str] = {}
    for copy in copies:
        found = {**_functions(copy), **found}
    return "\n".join([meshes, *found.values(), *rest])


def _functions(text: str) -> dict[str, str]:
    """The functions of a text by name."""
    starts = [*_FUNCTION.finditer(text)]
    ends = [each.start() for each in starts[1:]] + [len(text)]
    return {each[1]: text[each.start() : end] for each, end in zip(starts, ends, strict=True)}


def failure(text: str, name: str) -> str | None:
    """What is wrong with the run of a test, or None."""
    try:
        program = program_of(text)
        with ops.ready(_per_device) as found:
            module = module_of(parse_tree(program, name), program, name)
            ops.run(module, [()] * module.num_devices)
        return found[0] if found else None
    except (xb.XbuildError, xb.HloParseError) as error:
        return str(error)
    except Exception as error:  # whatever else happens is our fault, and is reported
        return f"{type(error).__name__}: {error}"


def _per_device(module: xb.Module) -> xb.Module:
    """The program of a device of a function that states shardings; another function is one already."""
    every = [each for computation in module.computations for each in computation.instructions]
    notes = (key for each in every for key in each.annotations.get("frontend_attributes", {}))
    if not any(key.startswith("xla.sdy.") for key in notes):
        return module
    if module.num_partitions == 1:  # devices are replicas, and their numbers are those of replicas
        module = mapped(module, lambda each: evolve(each, opcode="partition_id") if _is_replica_id(each) else each)
    return xb.shard.partition(evolve(module, num_replicas=1), propagate=False).module


def _is_replica_id(instruction: Instruction) -> bool:
    return instruction.opcode == "replica_id"


def results(paths: list[Path]) -> Iterator[tuple[str, str | None]]:
    """The name of each test, which is that of its file, and what is wrong with it."""
    for path in paths:
        yield path.stem, failure(path.read_text(), path.stem)


def main(arguments: list[str]) -> int:
    given = [Path(each) for each in arguments]
    paths = [path for each in given for path in (sorted(each.glob("*.mlir")) if each.is_dir() else [each])]
    found = list(results(paths))
    lines = [f"{name}: {' '.join(wrong.split())[:300]}" for name, wrong in found if wrong]
    return report(lines, len(found) - len(lines))


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
