"""What an instruction does to others: which ops talk to devices or to the host, which wait, and what they call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from attrs import frozen

from shape_inference import pred

from ..core.graph import Computation, Instruction
from ..core.host import rendezvous_of
from ..core.op import OPS
from .async_pairs import origin, wrapped_in

COLLECTIVES = frozenset({
    "all_reduce", "all_gather", "reduce_scatter", "all_to_all", "collective_permute", "collective_broadcast",
    "collective_reduce", "ragged_all_to_all",
})  # fmt: skip
TRANSFERS = {"send": "send_done", "recv": "recv_done"}
STARTS = ("all_gather_start", "all_reduce_start", "collective_permute_start")  # these are collectives themselves
DONE_OF = {
    **TRANSFERS,
    "async_start": "async_done",
    "copy_start": "copy_done",
    **{start: start.replace("_start", "_done") for start in STARTS},
}
START_OF = {done: start for start, done in DONE_OF.items()}
FEEDS = frozenset({"infeed", "outfeed"})

COVERING = ("all_gather", "all_reduce", "all_to_all", "ragged_all_to_all", "reduce_scatter")
MEETS = frozenset({*COLLECTIVES, *STARTS})
_ALWAYS = MEETS | FEEDS | TRANSFERS.keys() | set(TRANSFERS.values())
MEETING = MEETS | {"async_start"}
_MAYBE = frozenset({"async_start", *START_OF})
_CALLING = frozenset(opcode for opcode, schema in OPS.items() if schema.attributes and schema.attributes.calling)  # type: ignore[attr-defined]
ENTERING = _CALLING - MEETS - {"async_start"}
_NOTABLE = _ALWAYS | _MAYBE | _CALLING | {"async_update", "copy_start"}

Fact = TypeVar("Fact")


def remembered(fact: Callable[[Computation], Fact]) -> Callable[[Computation], Fact]:
    """Keep a fact with the computation itself, which never changes."""
    key = f"_scheduling_{fact.__name__}"

    def ask(computation: Computation) -> Fact:
        known = vars(computation)
        if key not in known:
            known[key] = fact(computation)
        return known[key]  # type: ignore[no-any-return]

    return ask


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


def base_of(collective: Instruction) -> str:
    """Which collective it is or starts: `all_reduce` of an all-reduce-start."""
    return collective.opcode.removesuffix("_start")


def start_of(done: Instruction) -> Instruction | None:
    """The start that a done completes; None where there is none of its kind."""
    found = origin(done)
    return found if found is not None and found.opcode == START_OF[done.opcode] else None


@remembered
def travelling(computation: Computation) -> frozenset[Instruction]:
    """The sends and recvs whose context goes into a tuple, and with it into the state of a loop: a pipelined transfer.

    Source: XLA's HLO verifier (the one user of a send or recv is its done, or a tuple).
    """
    tuples = [i for i in computation.instructions if i.opcode == "tuple"]
    packed = {start for each in tuples for start in each.operands if start.opcode in TRANSFERS}
    if not packed:
        return frozenset()
    return frozenset(packed - {o for i in computation.instructions if i.opcode != "tuple" for o in i.operands})


def is_under_way(instruction: Instruction) -> bool:
    """Whether its value is a collective that has begun, of which nothing can be seen before its done."""
    start = origin(instruction) if instruction.opcode == "async_update" else instruction
    return start is not None and start.opcode in DONE_OF and collective_in(start) is not None


def acts(instruction: Instruction) -> bool:
    """Whether it needs another device or the host itself."""
    opcode = instruction.opcode
    if opcode in _ALWAYS:
        return True
    if opcode not in _MAYBE:
        return False
    start = instruction if opcode == "async_start" else start_of(instruction)
    return start is not None and collective_in(start) is not None


def talks(instruction: Instruction) -> bool:
    """Whether it needs another device or the host, itself or in what it calls."""
    return acts(instruction) or any(map(communicates, instruction.called))


@remembered
def notable(computation: Computation) -> tuple[Instruction, ...]:
    """All that is to be looked at one by one: what may communicate, begins or completes something, or calls."""
    return tuple([i for i in computation.instructions if i.opcode in _NOTABLE])


@remembered
def communicates(computation: Computation) -> bool:
    """Whether a run of it may need another device or the host."""
    return any(map(talks, notable(computation)))


def is_with_host(instruction: Instruction) -> bool:
    """Whether it is half of a transfer whose other end is a Python function of the host."""
    start = start_of(instruction) if instruction.opcode in TRANSFERS.values() else instruction
    return start is not None and start.opcode in TRANSFERS and rendezvous_of(start) is not None


def has_side_effect(instruction: Instruction) -> bool:
    """Whether it is a custom call that reaches outside of the program."""
    return instruction.opcode == "custom_call" and any(
        value is True for key, value in instruction.attribute_values().items() if key.endswith("has_side_effect")
    )


@frozen
class Step:
    """A call on the way from the entry to an instruction: what calls, as what, and which computation."""

    instruction: Instruction
    role: str
    computation: Computation

    @property
    def is_followed(self) -> bool:
        """Whether instructions in the computation run one after the other, as a part of the program."""
        return self.instruction.opcode in _FOLLOWED

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


LOOPS = ("while", "scan")
_FOLLOWED = ("call", "fusion", "conditional", *LOOPS)


def steps(instruction: Instruction) -> Iterator[Step]:
    """The calls that an instruction makes, with the role that nesting is compared by: a scan is a loop without test."""
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


_DRAWS = frozenset({"rng", "rng_get_and_update_state"})


def has_effect(instruction: Instruction) -> bool:
    """Whether it talks to devices or the host, reaches outside, or moves a random state, itself or in what it calls."""
    if acts(instruction) or instruction.opcode in _DRAWS or has_side_effect(instruction):
        return True
    return bool(OPS[instruction.opcode].regions) and any(map(has_effects, instruction.called))


@remembered
def has_effects(computation: Computation) -> bool:
    """Whether a run of it may do more than give its result."""
    return any(map(has_effect, computation.instructions))
