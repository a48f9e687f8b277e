"""The list of tested ops: all cases compiled in process and compared with the interpreter, and the oracle's record.

`python -m tests.auto.table` writes `interpreter/auto/tested.py`. It runs the cases in child processes, since XLA may
end the process that compiles an op; such an op is not on the list.
"""

from __future__ import annotations

import importlib
import multiprocessing
import pkgutil
import sys
import textwrap
from collections.abc import Iterable, Iterator, Sequence
from multiprocessing.connection import Connection
from pathlib import Path

import tests.cases
import xbuild as xb
from interpreter.auto import parts
from interpreter.auto.native import compiled
from interpreter.compiler.facts import give_native_code
from interpreter.engines.comparison import compare
from shape_inference import PRIMITIVES
from tests.cases.case import Case
from tests.oracle.deviations import OF_DENORMALS
from tests.oracle.record import Record
from xbuild.core.op import OPS, opcodes
from xbuild.properties.effects import COLLECTIVES

FILE = Path(parts.__file__).with_name("tested.py")

TYPES = tuple(name for name, each in PRIMITIVES.items() if each.is_native or name == "bf16")
"""The types of parts: those that NumPy has, and bf16."""

NOT_PURE = opcodes(lambda op: op.needs != "nobody" or op.depends_on in ("device", "random_state") or op.half != "none")
"""Ops whose value depends on more than their operands."""

LEFT_OUT = {
    "bitcast": "depends on layouts, which a part does not keep",
    "custom_call": "calls a function by name",
    "rng": "draws from a state",
    "domain": "is a remark of XLA's own",
    "get_dimension_size": "reads a dynamic size",
    "set_dimension_size": "makes a dynamic size",
    "after_all": "makes a token",
    "add_dependency": "takes a token",
    "batch_norm_training": "XLA computes the variance otherwise, which overflows and rounds otherwise",
    "fusion": "is XLA's own form of a kernel, and ends the process if it contains another one",
    "rng_bit_generator": "XLA does not take all states that are states here",
    "stochastic_convert": "no case is compiled",
    "triangular_solve": "of a singular matrix NaN comes instead of infinity",
    "sort": "XLA orders equal elements otherwise, and flushes denormal keys",
    "topk": "XLA orders NaNs otherwise",
}
"""Ops that are never compiled, with the reason."""

HARMLESS = frozenset({"equal", "subnormals", "subnormal operands"})
"""Outcomes of the oracle that leave an op on the list; any other one is a result that XLA computes otherwise."""

OUT_OF_TOLERANCE = {"log": ("f64",), "log_plus_one": ("f64",)}
"""Types in which the oracle allows an op more than `compare` does (`logarithms of doubles`)."""


UNSAFE = {"convert": ("c64", "c128"), "bitcast_convert": ("pred",), "power": TYPES}
"""Types in which XLA ends the process (a conversion of c64 to pred), has no such op, or does not read all of an
operand (an integer exponent)."""

OTHER_RESULTS = {"is_finite": ("pred",), "complex": ("c64", "c128"), "real": ("f32", "f64"), "imag": ("f32", "f64")}
"""Types of results that are not types of operands, by which the oracle counts."""

BITS_OF_NAN = frozenset({"conversion-convert-nan-f64-f16"})
"""Cases that differ in the bits of a NaN only."""


def agreeing(record: Record, opcode: str) -> list[str]:
    """The types in which the oracle has found no difference between the op here and on real XLA."""
    row = record.cells.get(opcode, {})
    apart = {
        *OUT_OF_TOLERANCE.get(opcode, ()),
        *UNSAFE.get(opcode, ()),
        *(OF_DENORMALS[opcode].types if opcode in OF_DENORMALS else ()),
    }
    found = [n for n in TYPES if n not in apart and row.get(n, {}).get("equal") and row[n].keys() <= HARMLESS]
    return [*found, *OTHER_RESULTS.get(opcode, ())] if found else []


def candidates(record: Record) -> dict[str, frozenset[str]]:
    """For each op that may be on the list the types of its operands and results.

    The oracle counts an instance for one of its types only, so an op may have all that its instances had.
    """
    pure = [o for o in OPS if o not in NOT_PURE | COLLECTIVES and o not in LEFT_OUT]
    found = {opcode: frozenset(agreeing(record, opcode)) for opcode in pure}
    return {opcode: types for opcode, types in found.items() if types}


def family_cases() -> Iterator[tuple[str, Case]]:
    for info in pkgutil.iter_modules(tests.cases.__path__):
        if info.name != "case":
            for case in importlib.import_module(f"tests.cases.{info.name}").CASES:
                yield f"{info.name}-{case.id}", case


def native_difference(case: Case) -> str | None:
    """How the result of a case differs if all of it is compiled; None if it agrees. Refuses if it has no such part."""
    computation = case.computation()
    outlined = parts.Outlined(least=0.0)
    program = outlined.computation(computation)
    if not outlined.parts:
        return "none"
    for part in outlined.parts:
        code = compiled(part, folder=None)
        if isinstance(code, str):
            return code
        give_native_code(part.called, code)
    ours, theirs = (xb.evaluate(each, *case.arguments) for each in (computation, program))
    wrong = [str(each) for each in compare([ours], [theirs], [computation.root.shape]) if not each.same]
    return wrong[0] if wrong else None


def opcodes_of(case: Case) -> set[str]:
    return {i.opcode for each in case.computation().reachable() for i in each.instructions}


# ----------------------------------------------------------------------------
# The cases in child processes, and the file


def _serve(pipe: Connection, table: dict[str, frozenset[str]]) -> None:
    parts.TESTED = table
    known = dict(family_cases())
    while True:
        try:
            pipe.send(native_difference(known[pipe.recv()]))
        except EOFError:
            return
        except Exception as error:
            pipe.send(f"raised {error!r}"[:300])


def judged(names: Sequence[str], table: dict[str, frozenset[str]]) -> dict[str, str | None]:
    """What came of each case; a case that ends its process is `died`."""
    found, start = dict[str, str | None](), multiprocessing.get_context("spawn")
    rest = list(names)
    while rest:
        ours, theirs = start.Pipe()
        child = start.Process(target=_serve, args=(theirs, table), daemon=True)
        child.start()
        theirs.close()
        while rest:
            ours.send(name := rest.pop(0))
            try:
                found[name] = ours.recv()
            except EOFError:
                found[name] = "died"
                break
        ours.close()
        child.join()
    return found


def written(table: dict[str, frozenset[str]]) -> str:
    """The file with the list; ops of the same types share a row."""
    rows: dict[tuple[str, ...], list[str]] = {}
    for opcode, types in sorted(table.items()):
        rows.setdefault(tuple(n for n in TYPES if n in types), []).append(opcode)
    parts = "".join(f"    {_quoted(types)}: {_quoted(opcodes)},\n" for types, opcodes in sorted(rows.items()))
    return HEAD + parts + TAIL


def _quoted(words: Iterable[str]) -> str:
    """The words as a string literal of short lines."""
    first, *more = textwrap.wrap(" ".join(words), 100)
    if not more:
        return f'"{first}"'
    lines = [f"{line} " for line in (first, *more[:-1])] + more[-1:]
    return "(\n" + "".join(f'        "{line}"\n' for line in lines) + "    )"


HEAD = '''"""The ops that may be compiled natively, with their types; written by `python -m tests.auto.table`."""

_ROWS = {
'''
TAIL = """}

TESTED = {opcode: frozenset(types.split()) for types, opcodes in _ROWS.items() for opcode in opcodes.split()}
"""


def main() -> None:
    table = candidates(Record.read())
    cases = [name for name, case in family_cases() if opcodes_of(case) & table.keys()]
    outcomes = judged(cases, table)
    sys.stdout.writelines(f"{name}: {words}\n" for name, words in outcomes.items() if words not in (None, "none"))
    wrong = [n for n, words in outcomes.items() if is_wrong(words) and n not in BITS_OF_NAN]
    if wrong:
        sys.exit(f"these cases are not on the safe side: {', '.join(wrong)}")
    FILE.write_text(written(table))


def is_wrong(words: str | None) -> bool:
    """Whether XLA ended the process or computed another result; what it refuses stays in the interpreter."""
    return words not in (None, "none") and not str(words).startswith("XLA refuses it")


if __name__ == "__main__":
    main()
