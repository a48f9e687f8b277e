"""Effects of instructions: which communicate, start, complete or call what, and which have effects.

Sections:

    Asynchronous pairs: the start that a done completes, and the op that an async-start wraps
    Functions of the host, which a program sends values to and receives results from
    Communication: with devices or the host, by itself or in what is called
    Calls: the path of calls that leads from the entry to an instruction
    Effects: what may not be dropped, duplicated or moved past another effect
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any

from attrs import field, frozen

from shape_inference import AnyShape, pred

from ..core.graph import Computation, Instruction
from ..core.memos import remembered as remembered
from ..core.op import OPS, opcodes
from .trip_counts import never_ends

# ----------------------------------------------------------------------------
# Asynchronous pairs: the start that a done completes, and the op that an async-start wraps


def origin(half: Instruction) -> Instruction | None:
    """The start that a done or update completes: its operand, or the operand of the first update in the chain."""
    seen: set[Instruction] = set()
    while half.operands and half not in seen:
        seen.add(half)
        half = half.operands[0]
        if half.opcode != "async_update":
            return half
    return None


def wrapped_in(start: Instruction) -> Instruction | None:
    """The only op of the computation that an async-start calls; None if that has other ops than parameters."""
    (called,) = start.called
    alone = all(i is called.root or i.opcode == "parameter" for i in called.instructions)
    return called.root if alone and called.root.opcode != "parameter" else None


# ----------------------------------------------------------------------------
# Functions of the host, which a program sends values to and receives results from on channels of their own

RENDEZVOUS = "_xla_host_transfer_rendezvous"
HANDLER = "_xla_host_transfer_handler_name"
OURS = "xbuild"
"""The handler of transfers whose other end is a Python function of this process."""

_ANNOTATION = "host_function"


@frozen(eq=False, slots=False)
class HostFunction:
    """A Python function at the other end of host transfers, called once for each round of values on its channels.

    `rendezvous` names it in HLO text, `label` in reports. `sends` are the channels of its operands in order, `receives`
    those of its results with their shapes. `function` takes the list of operands and returns the list of results.
    """

    rendezvous: str
    label: str
    function: Callable[[list[Any]], list[Any]]
    sends: tuple[int, ...]
    receives: Mapping[int, AnyShape] = field(factory=dict)

    def annotations(self) -> dict[str, Any]:
        """The annotations of its transfers: those of HLO text, and the function itself, which keeps it alive."""
        return {"frontend_attributes": {HANDLER: OURS, RENDEZVOUS: self.rendezvous}, _ANNOTATION: self}


def rendezvous_of(transfer: Instruction) -> str | None:
    """The name of the host function at the other end of a send or recv; None if there is none of this kind."""
    if not transfer.attributes.is_host_transfer:
        return None
    attributes = transfer.annotations.get("frontend_attributes", {})
    return attributes.get(RENDEZVOUS) if attributes.get(HANDLER) == OURS else None


def host_function_of(transfer: Instruction) -> HostFunction | None:
    """The function at the other end of a send or recv; None if it was read from text, which only names one.

    A name in text is never resolved to a function, since a stranger's program must not choose what is called.
    """
    found = transfer.annotations.get(_ANNOTATION)
    return found if isinstance(found, HostFunction) else None


# ----------------------------------------------------------------------------
# Communication: with devices or the host, by itself or in what is called

DONE_OF = {opcode: schema.properties.done for opcode, schema in OPS.items() if schema.properties.done}
START_OF = {done: start for start, done in DONE_OF.items()}
MEETS = opcodes(lambda op: op.needs == "group")
COLLECTIVES = MEETS - DONE_OF.keys()
STARTS = tuple(sorted(MEETS & DONE_OF.keys()))  # these are collectives themselves
TRANSFERS = {start: done for start, done in DONE_OF.items() if OPS[start].properties.needs == "peer"}
FEEDS = opcodes(lambda op: op.needs == "host")
_WRAPPING = opcodes(lambda op: op.calls == "wrapped")

COVERING = ("all_gather", "all_reduce", "all_to_all", "ragged_all_to_all", "reduce_scatter")
MEETING = MEETS | _WRAPPING
COMMUNICATION = opcodes(lambda op: op.needs != "nobody")
_MAYBE = _WRAPPING | START_OF.keys()
HALVES = opcodes(lambda op: op.half != "none")
STRUCTURE = opcodes(lambda op: op.is_view and op.half == "none" and op.elements in ("made", "whole"))
"""Parameters, constants and tuples."""
IDENTITIES = opcodes(lambda op: op.is_identity)
_CALLING = opcodes(lambda op: op.calls != "nothing")
ENTERING = _CALLING - MEETING
_NOTABLE = COMMUNICATION | HALVES | _CALLING


def spelling(opcode: str) -> str:
    """The opcode as spelled in HLO text."""
    return opcode.replace("_", "-")


_KEY = r"[\w .:/@+-]*"  # a name of a stranger must not have markup or unprintable characters
_ARGUMENT_PATH = re.compile(rf"""[A-Za-z_]\w*(?:\.\w+|\[(?:'{_KEY}'|"{_KEY}"|-?\d+|<flat index \d+>)\])*""", re.ASCII)
_NO_NAME = re.compile(r"(?:param|Arg|arg|args)[._]?[\d._]*")


def name_in_report(instruction: Instruction) -> str:
    """The name by which reports name an instruction: of a parameter its path in JAX's arguments, if it states one.

    >>> import xbuild as xb
    >>> text = 'ENTRY e { ROOT p.1 = f32[8] parameter(0), metadata={op_name="p[0].down"} }'
    >>> name_in_report(xb.parse_hlo(text).entry.root)
    'p[0].down'
    """
    if instruction.opcode != "parameter" or "metadata" not in instruction.annotations:
        return instruction.name
    path = str(instruction.annotations["metadata"].get("op_name", ""))
    says_more = "[" in path or "." in path or _NO_NAME.fullmatch(instruction.name) is not None
    return path if says_more and _ARGUMENT_PATH.fullmatch(path) else instruction.name


def op_and_name(instruction: Instruction) -> str:
    """`while w`; only the name of an instruction whose name contains its op, such as `while.25`."""
    op, name = spelling(instruction.opcode), name_in_report(instruction)
    return name if f"{name}.".startswith(f"{op}.") else f"{op} {name}"


def collective_in(instruction: Instruction) -> Instruction | None:
    """The collective that an instruction is or starts: itself, or the one that an async-start wraps."""
    opcode = instruction.opcode
    if opcode in MEETS:
        return instruction
    wrapped = wrapped_in(instruction) if opcode == "async_start" else None
    return wrapped if wrapped is not None and wrapped.opcode in COLLECTIVES else None


@remembered
def _together(computation: Computation) -> tuple[Instruction, ...]:
    """The collectives and transfers of a computation that otherwise has only their dones and tuples."""
    found = tuple([i for i in computation.instructions if i.opcode in TRANSFERS or collective_in(i) is not None])
    others = (i.opcode for i in computation.instructions if i not in found)
    return found if all(opcode in STRUCTURE or opcode in START_OF for opcode in others) else ()


def grouped_in(instruction: Instruction) -> tuple[Instruction, ...]:
    """The collectives and transfers that an async-start begins together; none if it wraps one collective, or other ops.

    They are in the computation that it wraps, or in the fusion or call that it wraps.
    Source: XLA's groups of collectives, as NCCL has them; XLA:GPU's fusions of a collective with slices; JAX's
    asynchronous collectives, which are calls.
    """
    if instruction.opcode != "async_start" or collective_in(instruction) is not None:
        return ()
    call = call_in(instruction)
    return _together(instruction.attributes.calls) if call is None else _called(call.called[0])


def call_in(start: Instruction) -> Instruction | None:
    """The fusion or call that an async-start wraps, as `fusion-start` or `call-start` in HLO text; None if it wraps
    something else.
    """
    wrapped = wrapped_in(start)
    return wrapped if wrapped is not None and wrapped.opcode in ("fusion", "call") else None


@remembered
def _called(computation: Computation) -> tuple[Instruction, ...]:
    """The collectives of a computation; none if it also has a transfer, half of a collective, or a call with either."""
    found = tuple([i for i in computation.instructions if communicates_anywhere(i)])
    return found if all(i.opcode in COLLECTIVES for i in found) else ()


def begins_communication(start: Instruction) -> bool:
    """Whether a start begins a collective or a group."""
    return collective_in(start) is not None or bool(grouped_in(start))


def is_in_place(collective: Instruction) -> bool:
    """Whether it is a collective permute that writes slices into an operand, which has no value rule here."""
    return base_of(collective) == "collective_permute" and bool(collective.attributes.slice_sizes)


def base_of(collective: Instruction) -> str:
    """The opcode of the collective that an instruction is or starts: `all_reduce` for an all-reduce-start."""
    return collective.opcode.removesuffix("_start")


def start_of(done: Instruction) -> Instruction | None:
    """The start that a done completes; None if there is none of its kind."""
    found = origin(done)
    return found if found is not None and found.opcode == START_OF[done.opcode] else None


@remembered
def travelling(computation: Computation) -> frozenset[Instruction]:
    """The sends and recvs of pipelined transfers: a tuple, and so the state of a loop, holds their context.

    Source: XLA's HLO verifier (the one user of a send or recv is its done, or a tuple).
    """
    tuples = [i for i in computation.instructions if i.opcode == "tuple"]
    packed = {start for each in tuples for start in each.operands if start.opcode in TRANSFERS}
    if not packed:
        return frozenset()
    return frozenset(packed - {o for i in computation.instructions if i.opcode != "tuple" for o in i.operands})


def is_under_way(instruction: Instruction) -> bool:
    """Whether the value of an instruction is a started collective, whose done returns the result."""
    start = origin(instruction) if instruction.opcode == "async_update" else instruction
    return start is not None and start.opcode in DONE_OF and begins_communication(start)


def communicates_itself(instruction: Instruction) -> bool:
    """Whether an instruction itself needs another device or the host, not only a computation that it calls."""
    opcode = instruction.opcode
    if opcode in COMMUNICATION:
        return True
    if opcode not in _MAYBE:
        return False
    start = instruction if opcode == "async_start" else start_of(instruction)
    return start is not None and begins_communication(start)


def communicates_anywhere(instruction: Instruction) -> bool:
    """Whether an instruction needs another device or the host, by itself or in a computation that it calls."""
    return communicates_itself(instruction) or any(map(communicates, instruction.called))


@remembered
def notable(computation: Computation) -> tuple[Instruction, ...]:
    """The instructions that concern the check: those that may communicate, starts, updates, dones and calls."""
    return tuple([i for i in computation.instructions if i.opcode in _NOTABLE])


@remembered
def communicates(computation: Computation) -> bool:
    """Whether a run of the computation may need another device or the host."""
    return any(map(communicates_anywhere, notable(computation)))


def is_with_host(instruction: Instruction) -> bool:
    """Whether it is half of a transfer whose other end is a Python function of the host."""
    is_done = instruction.opcode in TRANSFERS.values()
    if not (is_done or instruction.opcode in TRANSFERS) or not instruction.attributes.is_host_transfer:
        return False
    start = start_of(instruction) if is_done else instruction
    return start is not None and rendezvous_of(start) is not None


def has_side_effect(instruction: Instruction) -> bool:
    """Whether an instruction is a custom call with a side effect."""
    return instruction.opcode == "custom_call" and any(
        value is True for key, value in instruction.attribute_values().items() if key.endswith("has_side_effect")
    )


_PYTHON = re.compile(r"xla_(ffi_)?(partitioned_)?python_\w*callback")
_PRINTS = ("debug_print", "debug_callback")


def calls_python(instruction: Instruction) -> bool:
    """Whether an instruction is a custom call of a Python function, as JAX's callbacks are."""
    return instruction.opcode == "custom_call" and bool(_PYTHON.fullmatch(instruction.attributes.custom_call_target))


def jax_primitive(instruction: Instruction) -> str:
    """The primitive of JAX that an instruction is lowered from, by its metadata or its name; empty if unknown."""
    metadata = instruction.annotations.get("metadata") or {}
    last = str(metadata.get("op_name", "")).rpartition("/")[2].partition("[")[0]
    return last or instruction.name.partition(".")[0]


def is_debug_print(instruction: Instruction) -> bool:
    """Whether an instruction is jax.debug.print or jax.debug.callback, which have no result."""
    return calls_python(instruction) and jax_primitive(instruction) in _PRINTS


# ----------------------------------------------------------------------------
# Calls: the path of calls that leads from the entry to an instruction


@frozen
class CallStep:
    """A call on the path from the entry to an instruction: the caller, the role, the computation called."""

    instruction: Instruction
    role: str
    computation: Computation

    @property
    def is_followed(self) -> bool:
        """Whether instructions in the computation run one after the other, as a part of the program."""
        return self.instruction.opcode in FOLLOWED

    @property
    def branch(self) -> str:
        """The name of a conditional's branch."""
        return branch_name(self.instruction, int(self.role.removeprefix("branch ")))

    def __str__(self) -> str:
        """`while w`, `while.25`, `branch 0 of conditional c`, `call f`"""
        part = f"{self.branch} of " if self.role.startswith("branch") else ""
        part = "the condition of " if self.role == "while condition" else part
        return f"{part}{op_and_name(self.instruction)}"


def branch_name(conditional: Instruction, number: int) -> str:
    """`true_computation` and `false_computation` if a pred chooses, else `branch 0` and so on."""
    if takes_pred(conditional):
        return "false_computation" if number else "true_computation"
    return f"branch {number}"


def takes_pred(conditional: Instruction) -> bool:
    """Whether a pred chooses the branch of a conditional, and not an index."""
    return getattr(conditional.operands[0].shape, "dtype", None) is pred


def branch_number(conditional: Instruction, index: Any) -> int:
    """The branch that a value selects: the first for a true pred, the last for an index out of range.

    Source: Operation Semantics, Conditional.
    """
    if takes_pred(conditional):
        return 0 if index else 1
    last = len(conditional.called) - 1
    return int(index) if 0 <= index < last else last


PLAIN_CALLS = opcodes(lambda op: op.calls == "once")
LOOPS = opcodes(lambda op: op.calls == "loop")
UNITS = LOOPS | opcodes(lambda op: op.calls == "branch")
FOLLOWED = PLAIN_CALLS | UNITS
CALLERS = frozenset({"call", "conditional", "while"})
"""Ops whose callees read and write buffers of the caller; what a fusion or an async-start calls does so as one op."""


def steps(instruction: Instruction) -> Iterator[CallStep]:
    """The calls that an instruction makes; nests are compared by their roles: a scan is a loop without a condition."""
    for number, (role, computation) in enumerate(instruction.regions()):
        if instruction.opcode in LOOPS:
            yield CallStep(instruction, f"while {role if instruction.opcode == 'while' else 'body'}", computation)
        elif instruction.opcode == "conditional":
            yield CallStep(instruction, f"branch {number}", computation)
        else:
            yield CallStep(instruction, spelling(instruction.opcode), computation)


Path = tuple[CallStep, ...]


def nest(path: Path) -> tuple[str, ...]:
    """The loops and branches of a path by role, as the two halves of a channel are compared.

    A plain call or group runs its callee once, and so does, for the verdict, a loop that never ends.
    """
    return tuple(step.role for step in path if step.instruction.opcode in UNITS and not never_ends(step.instruction))


def where(path: Path) -> str:
    """` in while w` for an instruction of its body; nothing for the entry."""
    return "".join(f" in {step}" for step in reversed(path))


# ----------------------------------------------------------------------------
# Effects: what may not be dropped, duplicated or moved past another effect

_OUTSIDE = opcodes(lambda op: op.needs in ("peer", "host") or op.depends_on == "random_state")


def has_effect(instruction: Instruction) -> bool:
    """Whether an instruction does more than return its value: it may not be dropped, duplicated or moved past another.

    It communicates with devices or the host, draws from or changes a random state, or is a custom call with a side
    effect; or it runs a computation in which an instruction does, or completes an asynchronous op that does. This is
    the only definition: whatever drops unused code, keeps an order, or decides what each device runs uses it, or
    `reaches_outside` if collectives between the devices of the program do not count.

    >>> import xbuild as xb
    >>> module = xb.parse_hlo('''
    ... log { x = f32[2] parameter(0)
    ...       ROOT y = f32[2] custom-call(x), custom_call_target="log", custom_call_has_side_effect=true }
    ... ENTRY e { p = f32[2] parameter(0)
    ...           c = f32[2] call(p), to_apply=log
    ...           ROOT n = f32[2] negate(p) }''')
    >>> [has_effect(each) for each in module.entry.instructions]
    [False, True, False]

    Source: XLA, HloInstruction::HasSideEffect.
    """
    return _acts(instruction, _is_effect, has_effects)


@remembered
def has_effects(computation: Computation) -> bool:
    """Whether a run of the computation may have an effect beside its result."""
    return any(map(has_effect, computation.instructions))


def reaches_outside(instruction: Instruction) -> bool:
    """Whether an instruction has an effect other than a collective: feed, transfer, side effect or random state."""
    return _acts(instruction, _is_outside, _reach_outside)


@remembered
def _reach_outside(computation: Computation) -> bool:
    return any(map(reaches_outside, computation.instructions))


def _is_outside(instruction: Instruction) -> bool:
    return instruction.opcode in _OUTSIDE or has_side_effect(instruction)


def _is_effect(instruction: Instruction) -> bool:
    return _is_outside(instruction) or communicates_itself(instruction)


def _acts(
    instruction: Instruction, is_own: Callable[[Instruction], bool], acts_inside: Callable[[Computation], bool]
) -> bool:
    """Whether an instruction, what it calls, or the asynchronous op that it completes, has an effect of a kind."""
    if instruction.opcode in _QUIET:
        return False
    if is_own(instruction):
        return True
    if instruction.opcode in _COMPLETING:
        start = origin(instruction)
        return start is not None and start.opcode in _WRAPPING and _acts(start, is_own, acts_inside)
    return bool(OPS[instruction.opcode].regions) and any(map(acts_inside, instruction.called))


_COMPLETING = opcodes(lambda op: op.half in ("update", "done"))
_QUIET = OPS.keys() - _OUTSIDE - COMMUNICATION - _MAYBE - _COMPLETING - _CALLING
