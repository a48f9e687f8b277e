"""Tables of opcodes: what holds of an op is declared with it; each table that remains belongs to one reading."""

from __future__ import annotations

import ast
import importlib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from xbuild.core.op import OPS, opcodes
from xbuild.properties.effects import COLLECTIVES, DONE_OF, FEEDS, FOLLOWED, STARTS, TRANSFERS

ROOT = Path(__file__).parents[1]
NAMES = {*OPS} | {schema.spelling for schema in OPS.values()}

_IN_ANY_ORDER = opcodes(lambda op: op.order == "any")
_TUPLES = frozenset({"tuple", "get_tuple_element"})
_ROWS = frozenset(
    opcode for opcode, schema in OPS.items()
    if schema.operands in (("operand",), ("lhs", "rhs"))
    and schema.properties.elements == "same_place" and not schema.names
    and schema.properties.depends_on == "operands"
)  # fmt: skip

WHOLE: dict[str, tuple[frozenset[str], set[str]]] = {
    "shape_inference/ops/elementwise.py:UNARY+BINARY": (_ROWS, {"complex", "copy"}),
    "interpreter/kernels/elementwise.py:UNARY+BINARY+BY_WIDTH": (
        _ROWS, {"complex", "copy", "imag", "is_finite", "real"},
    ),
    "interpreter/kernels/folds.py:_UFUNCS": (_IN_ANY_ORDER, set()),
    "interpreter/ops/control_flow.py:_CUMULATIVE": (_IN_ANY_ORDER, set()),
    "interpreter/runtime/grid.py:_SERVED": (
        opcodes(lambda op: op.needs in ("peer", "host") or op.half == "done" or op.depends_on == "target"),
        {"copy_done"},
    ),
    "interpreter/tracing/origins.py:_MOVES+_FOLDS": (COLLECTIVES, {"ragged_all_to_all"}),
    "xbuild/checking/dataflow/analysis.py:WALK_RULES": (FOLLOWED | _TUPLES, set()),
    "xbuild/checking/dataflow/constant_propagation.py:_CALLING": (FOLLOWED | {"async_start"}, set()),
    "xbuild/checking/dataflow/replication.py:SHARED": (
        COLLECTIVES, {"all_to_all", "collective_permute", "ragged_all_to_all", "reduce_scatter"},
    ),
    "xbuild/checking/model/describe.py:_BY_DEVICE": (opcodes(lambda op: op.depends_on == "device"), set()),
    "xbuild/checking/structure/collective_matching.py:SIZED": (
        COLLECTIVES, {"all_reduce", "collective_broadcast", "collective_permute"},
    ),
    "xbuild/checking/structure/transfers.py:OTHER": (frozenset(TRANSFERS), set()),
    "xbuild/properties/device_groups.py:_REDUCING": (
        COLLECTIVES, {"all_to_all", "collective_broadcast", "collective_permute", "ragged_all_to_all"},
    ),
    "xbuild/properties/effects.py:COVERING": (COLLECTIVES, {"collective_broadcast", "collective_permute"}),
    "xbuild/stablehlo/writing/device_ops.py:PROPERTIES": (COLLECTIVES, {"ragged_all_to_all"}),
    "xbuild/timelines/exports.py:COLLECTIVES": (COLLECTIVES, {"collective_permute"}),
    "xbuild/timelines/tape.py:_ACTION_OF_KIND": (frozenset({*TRANSFERS, *TRANSFERS.values()}), {"send"}),
    "xbuild/text/async_sugar.py:ASYNC": (
        opcodes(lambda op: op.half != "none"),
        {*TRANSFERS, *TRANSFERS.values(), "copy_start", "copy_done", *STARTS, *(DONE_OF[start] for start in STARTS)},
    ),
    "xbuild/text/annotations.py:PAIRED": (frozenset(TRANSFERS), set()),
}  # fmt: skip
"""Tables that have every op with some properties, but for those that are listed."""

PARTIAL = {
    "xbuild/sharding/propagation/dialect.py:_INTERFACES": "the op has no loops in the dialect, or is elementwise",
    "xbuild/sharding/propagation/flow.py:_EDGES": "the op has a rule, or its value is its own",
    "xbuild/sharding/propagation/flow.py:_KINDS": "elementwise ops come first, others with all that have a rule",
    "shape_inference/ops/elementwise.py:RESULT": "the result has the element type of the operand",
    "xbuild/checking/dataflow/constant_propagation.py:_PASSING": "the op is evaluated by its value rule",
    "xbuild/checking/dataflow/lattice.py:_OF_ANY": "the bounds of the operands decide",
    "xbuild/checking/dataflow/lattice.py:_RULES": "no bounds of the result are known",
    "xbuild/checking/dataflow/lattice.py:_FOLDS": "no bounds of the result are known",
    "xbuild/checking/dataflow/replication.py:COMMUTATIVE": "a reduction depends on the order of the members",
    "xbuild/checking/dataflow/replication.py:_OPERANDWISE": "the result is made of all operands",
    "xbuild/checking/dataflow/replication.py:_MARKING": "the result is of each device by itself",
    "xbuild/checking/replicated_values.py:_SOURCES": "the way back goes on to the operands",
    "xbuild/learning/puzzle.py:FREE": "a puzzle states whether a solution may use the op",
    "xbuild/sharding/partition/handler.py:COMBINERS": "the op has no neutral element",
    "xbuild/sharding/partition/reasons.py:_ADDED": "the sentence says that the sum is moved on the way",
    "xbuild/sharding/partition/reasons.py:_COMBINED": "the sentence says that a computation combines them",
    "xbuild/sharding/partition/reasons.py:_NOUNS": "the sentence says that results are partial",
    "xbuild/stablehlo/op_rules/devices.py:STARTED": "an async_start of it wraps a computation",
    "xbuild/stablehlo/reading/scope.py:_COPIED": "a region is refused that uses the value from outside",
    "xbuild/reference/readings.py:_PLAIN": "the op is named among those of which a derivative is made",
    "xbuild/reference/stablehlo_table.py:_DISSOLVED": "the op has its name in MLIR",
    "xbuild/stablehlo/spelling.py:EXPANDED": "the op is read as the op of HLO that its MLIR name stands for",
    "xbuild/stablehlo/spelling.py:UNNAMED": "one MLIR op has the name of the opcode, or that of _OTHER",
    "xbuild/stablehlo/spelling.py:_OTHER": "the op of StableHLO has the name of the opcode",
    "xbuild/stablehlo/writing/device_ops.py:_opcode": "there is no rule, as tests/stablehlo finds",
    "xbuild/stablehlo/writing/array_ops.py:_opcode": "there is no rule, as tests/stablehlo finds",
    "xbuild/properties/placement.py:COLLECTIVES": "the op is no collective of Shardy",
    "xbuild/costs/work.py:_WITHOUT_MEMORY": "operands are read whole, and the result is written",
    "xbuild/costs/work.py:_SLICES": "operands are read whole, where no rule says otherwise",
    "xbuild/costs/work.py:(_opcode, _read)": "operands are read whole, where no rule says otherwise",
    "xbuild/costs/work.py:(_opcode, _written)": "the result is written whole",
    "xbuild/checking/races/memory.py:_VIEWS": "the result is in memory of its own, or over an operand",
    "xbuild/checking/races/memory.py:_WRITING": "the result is in new memory",
    "xbuild/properties/effects.py:CALLERS": "what the op calls reads and writes as one op",
    "xbuild/runtimes/calls.py:(SEND, RECV, RECV_DONE)": "the op is no transfer, or one that waits for nobody",
    "xbuild/costs/buffers.py:_IN_PLACE": "the array is not looked for behind the op",
    "xbuild/costs/buffers.py:_UPDATES": "the op updates nothing in place",
    "xbuild/costs/buffers.py:(_opcode, _number)": "the result is in new memory, or over an operand it is alike",
    "xbuild/costs/buffers.py:_opcode": "the result is in new memory, or over an operand it is alike",
    "xbuild/costs/buffers.py:_NAMING": "the op reads its operands",
    "xbuild/hangs/comparing.py:ROOTED": "all ranks of the group read and write",
    "xbuild/hangs/comparing.py:OUTPUT_SIZES": "the sizes that the group must agree on are those of the inputs",
    "xbuild/linting/communication.py:_SAME": "a report names the op itself",
    "xbuild/linting/flow.py:MOVES": "an array is not followed through the op",
    "xbuild/linting/flow.py:SUMMING": "the collective combines nothing by a computation",
    "xbuild/linting/layouts.py:_WEIGHS": "an operand is not a weight because of the op",
    "interpreter/auto/estimates.py:_BY_PRODUCTS": "its operations take the time of single ones",
    "interpreter/auto/estimates.py:_LONGER": "it is compiled in the time of any instruction",
    "interpreter/auto/parts.py:_WINDOWED": "the op has no window of a scalar",
    "interpreter/auto/parts.py:_FREE": "the op has a level",
    "interpreter/auto/parts.py:_LIGHT": "a part with the op may be worth compiling",
    "interpreter/fields/device_axes.py:EXCHANGES": "the axes of its groups keep all their devices",
    "interpreter/fields/device_axes.py:SUMS": "the collective adds nothing over the axes of its groups",
    "interpreter/fields/device_axes.py:KEEPING": "the op depends on the device only by its operands",
    "interpreter/fields/reduction.py:_SAME_EVERYWHERE": "the value is that of its operands",
    "interpreter/fields/extents.py:SAME_ARRAYS": "the op has a rule, or its extents are not reduced",
    "interpreter/fields/extents.py:STARTS": "the op has a rule, or its extents are not reduced",
    "interpreter/fields/extents.py:DONES": "the op has a rule, or its extents are not reduced",
    "interpreter/fields/extents.py:_BY_RULE": "its extents are not reduced",
    "interpreter/fields/reduction.py:_PRODUCTS": "the op is in another of these tables, or extents of operands stay",
    "interpreter/fields/reduction.py:_JOINED": "the op is in another of these tables, or extents of operands stay",
    "interpreter/fields/reduction.py:_VARIABLES": "the op is in another of these tables, or extents of operands stay",
    "xbuild/timelines/durations.py:PRODUCTS": "the peak is that of the result's element type",
    "xbuild/text/async_sugar.py:HALVES": "the op has its own attributes alone",
    "xbuild/variance/types.py:_NAMES": "the op has no name on a mesh",
    "xbuild/variance/types.py:LINEAR": "operands that wait for their sum are refused",
    "xbuild/variance/types.py:_MOVING": "operands that wait for their sum are refused",
    "xbuild/variance/types.py:_ALIKE": "the result may differ where an operand may",
    "xbuild/variance/types.py:_MARKED": "the op is no cast",
    "xbuild/variance/types.py:_UNLIKE": "the result may differ where an operand may",
    "xbuild/variance/derivatives.py:_COMMUTING": "the sum stays where it is",
    "xbuild/checking/deadlock/level_run.py:FIRST": "items of other kinds have a rank by their kind",
    "xbuild/checking/model/describe.py:_THROUGH": "the report names the op itself",
    "xbuild/properties/waiting.py:EVENTS": "the op does not communicate, and no device waits for it",
    "xbuild/editing/extraction.py:_ALONE": "the op becomes a parameter of what is extracted",
    "xbuild/pictures/picture.py:_BY_OPCODE": "the op has the kind of its family",
    "xbuild/running.py:_MOVES": "a denormal operand or result is not told",
    "xbuild/text/async_sugar.py:_SPELLED": "the op may stand in a wrapped computation",
    "xbuild/text/codec_table.py:ROWS": "attributes are spelled by their types",
    "xbuild/text/reader.py:_NO_OPERANDS": "operands are read",
    "xbuild/properties/structure.py:_ONE_SPELLING": "no attribute of the op can be stated and left out alike",
    "xbuild/text/spelling.py:PRODUCTS": "operands of two kinds are refused, not converted",
    "xbuild/text/expansion.py:_LIKE_OPERAND": "the result has the wider precision",
    "xbuild/text/expansion.py:_EXPANSIONS": "the op is one instruction in text",
    "xbuild/text/annotations.py:_ACCURATE": "result_accuracy is no key of the op",
    "xbuild/text/annotations.py:KEPT": "keys that are not attributes are refused",
    "xbuild/properties/undefined.py:_HANDED_ON": "the op reads its operand, which a strict run tells",
    "xbuild/sharding/stated_shardings.py:_REDUCING": "the collective of Shardy reduces nothing",
    "xbuild/sharding/partition/simplifying.py:_ARITHMETIC": "the scalar counts as data, and nothing is simplified",
    "xbuild/sharding/partition/simplifying.py:_PASSING_ON": "the scalar counts as data, and nothing is simplified",
    "xbuild/sharding/partition/simplifying.py:_MERGED_BY": "sums of reductions by it stay apart",
    "xbuild/sharding/partition/simplifying.py:_COLLECTIVES": "the op stays as it is",
    "xbuild/stablehlo/op_rules/shard_dialects.py:_GRID_ATTRIBUTES": "the op is no collective of the shard dialect",
    "xbuild/stablehlo/op_rules/shard_dialects.py:_AXES_ATTRIBUTE": "the op is no collective of Shardy",
    "xbuild/testing/contracts.py:OPS": "a contract cannot name the op, but others= counts it",
    "xbuild/testing/contracts.py:_COMBINED": "the collective counts as one array",
    "interpreter/compiler/facts.py:_SIZES": "the sum counts as used otherwise, and is rounded",
    "interpreter/compiler/facts.py:_LOGIC": "the sum counts as used otherwise, and is rounded",
    "interpreter/compiler/emit.py:_INFIX": "the rule is called",
    "interpreter/compiler/emit.py:_PREFIX": "the rule is called",
    "interpreter/compiler/emit.py:_BARE": "the kernel of the op is called",
    "interpreter/engines/programs.py:NOT_ON_CPU": "the program is given to XLA:CPU",
    "interpreter/kernels/flushing.py:_OWN": "operands and result are flushed",
    "interpreter/kernels/folds.py:SIGNING": "no zeros are signed after a fold",
    "interpreter/kernels/folds.py:_FOR_PRED": "the ufunc of the op takes pred as well",
    "interpreter/kernels/scattering.py:_AT_ONCE": "updates are applied one after the other",
    "interpreter/ops/asynchronous.py:_opcode": "there is no plan rule, as tests/test_architecture.py finds",
    "interpreter/ops/collectives.py:_opcode": "there is no plan rule, as tests/test_architecture.py finds",
    "interpreter/ops/transfer.py:_opcode": "there is no plan rule, as tests/test_architecture.py finds",
    "interpreter/runtime/estimates.py:_TOUCHES_RESULT": "the op counts as one that takes no time",
    "interpreter/fields/variants.py:_KEEP_INTEGERS": "the result counts as no integer",
    "xbuild/properties/elementwise.py:_RESHAPES": "the program counts as not elementwise, and is run on fewer inputs",
    "interpreter/fields/verdict.py:ORDER": "no order of numbers decides the value",
    "interpreter/fields/verdict.py:_BITS": "no bits of floats are looked at",
    "interpreter/fields/degrees.py:RANDOM": "the value is none of a random function",
    "interpreter/fields/degrees.py:OF_EXPONENTIALS": "the op is no quotient of exponentials",
    "interpreter/fields/degrees.py:_MULTIPLYING": "the op multiplies no degrees",
    "interpreter/fields/degrees.py:_PASSING": "the degree is that of a new value",
    "interpreter/fields/divergence.py:_SHAPING": "the op computes a value that has a role of its own",
    "interpreter/fields/value_flow.py:_PASSED": "the value is computed by the instruction itself",
    "interpreter/fields/value_matching.py:_TAKEN": "the value is computed anew",
    "interpreter/fields/degrees.py:_ALONG": "no attribute names dimensions along which elements change places",
    "interpreter/fields/degrees.py:_IN_PLACE": "elements may come from any place, unless the op is elementwise",
    "interpreter/fields/degrees.py:_PRODUCTS": "the degree is the largest of the operands'",
    "interpreter/compiler/prepared.py:_TEXTS": "the plan calls the value rule",
    "interpreter/compiler/shortcuts.py:IN_PLACE": "Python has no operator that writes into the left operand",
    "interpreter/compiler/shortcuts.py:_BESIDE_NUMBERS": "NumPy is as fast with one number as with a row of numbers",
    "interpreter/compiler/shortcuts.py:_BY_ELEMENTS": "the op moves or computes single elements, or may round by order",
    "interpreter/compiler/shortcuts.py:_IN_C_ORDER": "the order of elements follows the operands",
    "interpreter/compiler/shortcuts.py:_MOVES": "the value of constant operands is computed in the run",
    "interpreter/fields/divergence.py:_PRODUCTS": "the operands are matched in their order",
    "xbuild/checking/model/outer_values.py:_IDENTITIES": "the value is computed by the instruction itself",
    "xbuild/explaining/collectives.py:_MOVED": "the value is computed by the instruction itself",
    "xbuild/explaining/collectives.py:_PRIMITIVES": "the op is no collective of JAX",
    "interpreter/compiler/facts.py:_ARITHMETIC": "the op may read denormal numbers of a product",
    "interpreter/compiler/facts.py:_FLUSHING": "the result may have denormal numbers",
    "interpreter/compiler/facts.py:_KEEPS_FLUSHED": "the result may have denormal numbers, whatever the operands",
    "interpreter/kernels/elementwise.py:NEAR_ZERO": "the function is not the identity near zero",
    "interpreter/fields/verdict.py:ROOTS": "the op is no root",
    "interpreter/fields/rules/functions.py:ROOTS": "the op is no root, or one by its own law",
    "interpreter/fields/rules/functions.py:_OF_LOGARITHMS": "the function is no logarithm",
    "interpreter/fields/rules/laws.py:LAWFUL_BY_SIGNS": "no law of signs is used",
    "interpreter/fields/rules/calls.py:_PURE": "equal calls are evaluated each for itself",
    "interpreter/fields/degrees.py:_STATISTICS": "the degree is the largest of the operands'",
    "interpreter/fields/degrees.py:_FUNCTION": "the random function is that of the op itself",
    "interpreter/fields/degrees.py:_REPEATING": "all elements of the result count as distinct",
    "interpreter/fields/value_matching.py:_PASSING": "the value is computed by the instruction itself",
    "interpreter/fields/towers.py:EXPONENTIALS": "the value is no exponential",
    "interpreter/fields/rules/folding.py:_FOLDS": "the fold is that of the value rule, by the computation",
    "interpreter/fields/rules/functions.py:_OF_EXPONENTIALS": "the op is no quotient of exponentials",
    "interpreter/fields/rules/functions.py:_ODD": "the random function has no such symmetry",
    "interpreter/fields/rules/functions.py:_EVEN": "the random function has no such symmetry",
    "interpreter/fields/rules/functions.py:_POINTS": "the random function has no known values",
    "interpreter/fields/rules/functions.py:NAMES": "the op has a rule of its own, or none",
    "interpreter/fields/rules/laws.py:LAWFUL": "no law of exponentials or logarithms is used",
    "interpreter/fields/rules/products.py:_opcode": "the op has a rule of its own, or none",
    "interpreter/fields/rules/tables.py:REFUSED": "the op is decided, as tests/equivalence/test_rules.py finds",
    "interpreter/fields/rules/tables.py:_ON_INTEGERS": "the op takes floats, too",
    "interpreter/fields/run.py:_REQUESTS": "the device asks nobody",
    "interpreter/fields/run.py:_RULES": "the value is computed by the rule over prime fields",
    "interpreter/fields/variants.py:_OF_BITS": "no bits of floats are looked at, and a run in f64 can judge",
    "interpreter/strict/rules.py:_opcode": "no strict rule, as tests/interpreter/test_strict.py finds",
    "interpreter/strict/rules.py:_OF_INTEGERS_TOO": "a NaN or an infinity without cause is found",
    "interpreter/strict/rules.py:(_opcode, _rule)": "no strict rule, as tests/interpreter/test_strict.py finds",
    "interpreter/strict/findings.py:_PASSING": "the op is a link of the chain",
}  # fmt: skip
"""Tables that have some ops, and what holds of all others; a new op that is not entered is right, if perhaps slow."""


def tables() -> Iterator[tuple[str, list[str]]]:
    """Every assignment or loop of a module whose literals list two and more opcodes, with these.

    Of derivatives tests/vjp holds that each op has a rule, is zero, or is refused.
    """
    for package in ("shape_inference", "xbuild", "interpreter"):
        for path in sorted(set((ROOT / package).rglob("*.py")) - set((ROOT / "xbuild/differentiation").rglob("*.py"))):
            for node in ast.parse(path.read_text()).body:
                if listed := opcodes_in(node):
                    yield f"{path.relative_to(ROOT)}:{name_of(node)}", listed


def name_of(node: ast.stmt) -> str:
    target = node.targets[0] if isinstance(node, ast.Assign) else node.target  # type: ignore[attr-defined]
    return ast.unparse(target)


def opcodes_in(node: ast.stmt) -> list[str]:
    if not isinstance(node, ast.Assign | ast.AnnAssign | ast.For) or name_of(node) == "__all__":
        return []
    value = node.iter if isinstance(node, ast.For) else node.value
    found: list[str] = []
    for each in ast.walk(value) if value else ():
        keys = each.keys if isinstance(each, ast.Dict) else getattr(each, "elts", ())
        texts = [key.value for key in keys if isinstance(key, ast.Constant) and isinstance(key.value, str)]
        if len(texts) >= 2 and sum(text in NAMES for text in texts) * 2 > len(keys):
            found += texts
    return found


TABLES = dict(tables())
OTHER_WORDS = {
    "done", "meet", "start", "unit", "window",
    "all_slice", "replicated_to_unreduced", "sharded_to_unreduced", "to_unreduced",
}  # fmt: skip
"""Kinds of items in the wait graph, an attribute, and collectives of Shardy and the shard dialect alone."""


def test_each_table_says_what_holds_of_ops_that_it_does_not_have() -> None:
    known = {*PARTIAL} | {f"{path}:{name}" for path, names in map(parted, WHOLE) for name in names}
    assert sorted(TABLES.keys() - known) == [], "declare a property, or enter the table above"
    assert sorted(known - TABLES.keys()) == []


def parted(entry: str) -> tuple[str, list[str]]:
    path, _, names = entry.partition(":")
    return path, names.split("+")


def test_tables_list_ops_alone() -> None:
    others = {name: [text for text in texts if text not in NAMES | OTHER_WORDS] for name, texts in TABLES.items()}
    assert {name: texts for name, texts in others.items() if texts} == {}


@pytest.mark.parametrize("entry", WHOLE)
def test_a_whole_table_has_every_op_of_its_domain(entry: str) -> None:
    path, names = parted(entry)
    module = importlib.import_module(path.removesuffix(".py").replace("/", "."))
    tables: list[Any] = [getattr(module, name) for name in names]
    found = {opcode.replace("-", "_") for table in tables for opcode in table}
    domain, without = WHOLE[entry]
    assert without <= domain
    assert sorted(found) == sorted(domain - without)


def test_feeds_and_transfers_are_all_that_needs_one_other() -> None:
    assert opcodes(lambda op: op.needs in ("peer", "host")) == FEEDS | {*TRANSFERS, *TRANSFERS.values()}
