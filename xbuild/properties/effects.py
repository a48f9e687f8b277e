"""Effects of instructions: which communicate with devices or the host, which start or complete, what they call."""

from __future__ import annotations

from collections.abc import Iterator

from attrs import frozen

from shape_inference import pred

from ..core.graph import Computation, Instruction
from ..core.memos import remembered as remembered
from ..core.op import OPS, opcodes
from .async_pairs import origin, wrapped_in
from .host import rendezvous_of

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
_ALWAYS = opcodes(lambda op: op.needs != "nobody")
_MAYBE = _WRAPPING | START_OF.keys()
HALVES = opcodes(lambda op: op.half != "none")
STRUCTURE = opcodes(lambda op: op.is_view and op.half == "none" and op.elements in ("made", "whole"))
"""Parameters, constants and tuples."""
IDENTITIES = opcodes(lambda op: op.is_identity)
_CALLING = opcodes(lambda op: op.calls != "nothing")
ENTERING = _CALLING - MEETING
_NOTABLE = _ALWAYS | HALVES | _CALLING


def spelling(opcode: str) -> str:
    """The opcode as HLO text has it."""
    return opcode.replace("_", "-")


def collective_in(instruction: Instruction) -> Instruction | None:
    """The collective that an instruction is or starts: itself, or the one that an async-start wraps."""
    opcode = instruction.opcode
    if opcode in MEETS:
        return instruction
    wrapped = wrapped_in(instruction) if opcode == "async_start" else None
    return wrapped if wrapped is not None and wrapped.opcode in COLLECTIVES else None


def is_in_place(collective: Instruction) -> bool:
    """Whether it is a collective permute that writes slices into an operand, of which there are no values here."""
    return base_of(collective) == "collective_permute" and bool(collective.attributes.slice_sizes)


def base_of(collective: Instruction) -> str:
    """The opcode of the collective that an instruction is or starts: `all_reduce` for an all-reduce-start."""
    return collective.opcode.removesuffix("_start")


def start_of(done: Instruction) -> Instruction | None:
    """The start that a done completes; None where there is none of its kind."""
    found = origin(done)
    return found if found is not None and found.opcode == START_OF[done.opcode] else None


@remembered
def travelling(computation: Computation) -> frozenset[Instruction]:
    """The sends and recvs of pipelined transfers: their context goes into a tuple, so into the state of a loop.

    Source: XLA's HLO verifier (the one user of a send or recv is its done, or a tuple).
    """
    tuples = [i for i in computation.instructions if i.opcode == "tuple"]
    packed = {start for each in tuples for start in each.operands if start.opcode in TRANSFERS}
    if not packed:
        return frozenset()
    return frozenset(packed - {o for i in computation.instructions if i.opcode != "tuple" for o in i.operands})


def is_under_way(instruction: Instruction) -> bool:
    """Whether the value of an instruction is a collective that has started, whose result comes with its done."""
    start = origin(instruction) if instruction.opcode == "async_update" else instruction
    return start is not None and start.opcode in DONE_OF and collective_in(start) is not None


def communicates_itself(instruction: Instruction) -> bool:
    """Whether an instruction needs another device or the host by itself, not only in a computation that it calls."""
    opcode = instruction.opcode
    if opcode in _ALWAYS:
        return True
    if opcode not in _MAYBE:
        return False
    start = instruction if opcode == "async_start" else start_of(instruction)
    return start is not None and collective_in(start) is not None


def communicates_anywhere(instruction: Instruction) -> bool:
    """Whether an instruction needs another device or the host, by itself or in a computation that it calls."""
    return communicates_itself(instruction) or any(map(communicates, instruction.called))


@remembered
def notable(computation: Computation) -> tuple[Instruction, ...]:
    """The instructions that the check looks at: those that may communicate, starts, updates, dones and calls."""
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


@frozen
class Step:
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
        """`while w`, `branch 0 of conditional c`, `call f`"""
        part = f"{self.branch} of " if self.role.startswith("branch") else ""
        part = "the condition of " if self.role == "while condition" else part
        return f"{part}{spelling(self.instruction.opcode)} {self.instruction.name}"


def branch_name(conditional: Instruction, number: int) -> str:
    """`true_computation` and `false_computation` where a pred chooses, else `branch 0` and so on."""
    if getattr(conditional.operands[0].shape, "dtype", None) is pred:
        return "false_computation" if number else "true_computation"
    return f"branch {number}"


PLAIN_CALLS = opcodes(lambda op: op.calls == "once")
LOOPS = opcodes(lambda op: op.calls == "loop")
UNITS = LOOPS | opcodes(lambda op: op.calls == "branch")
FOLLOWED = PLAIN_CALLS | UNITS


def steps(instruction: Instruction) -> Iterator[Step]:
    """The calls that an instruction makes; nests are compared by their roles: a scan is a loop without test."""
    for number, (role, computation) in enumerate(instruction.regions()):
        if instruction.opcode in LOOPS:
            yield Step(instruction, f"while {role if instruction.opcode == 'while' else 'body'}", computation)
        elif instruction.opcode == "conditional":
            yield Step(instruction, f"branch {number}", computation)
        else:
            yield Step(instruction, spelling(instruction.opcode), computation)


Path = tuple[Step, ...]


def nest(path: Path) -> tuple[str, ...]:
    """The path by kinds of call, as the two halves of a channel are compared."""
    return tuple(step.role for step in path)


def where(path: Path) -> str:
    """` in while w` for an instruction of its body; nothing for the entry."""
    return "".join(f" in {step}" for step in reversed(path))


_DRAWS = opcodes(lambda op: op.depends_on == "random_state")


def has_effect(instruction: Instruction) -> bool:
    """Whether an instruction or what it calls communicates, has a side effect or changes a random state."""
    if communicates_itself(instruction) or instruction.opcode in _DRAWS or has_side_effect(instruction):
        return True
    return bool(OPS[instruction.opcode].regions) and any(map(has_effects, instruction.called))


@remembered
def has_effects(computation: Computation) -> bool:
    """Whether a run of the computation may have an effect beside its result."""
    return any(map(has_effect, computation.instructions))
