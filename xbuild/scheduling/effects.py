"""What an instruction does to others: which ops talk to devices or to the host, which wait, and what they call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TypeVar

from attrs import frozen

from shape_inference import pred

from ..graph import Computation, Instruction
from ..op import OPS
from ..starts import origin, wrapped_in

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

MEETS = frozenset({*COLLECTIVES, *STARTS})
_ALWAYS = MEETS | FEEDS | TRANSFERS.keys() | set(TRANSFERS.values())
_MEETING = MEETS | {"async_start"}
_MAYBE = frozenset({"async_start", *START_OF})
_CALLING = frozenset(opcode for opcode, schema in OPS.items() if schema.attributes and schema.attributes.calling)  # type: ignore[attr-defined]
_ENTERING = _CALLING - MEETS - {"async_start"}
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


@frozen(eq=False)
class Site:
    """A communicating instruction at one place: the calls on the way, the instruction."""

    path: Path
    instruction: Instruction

    @property
    def channel(self) -> int:
        return self.instruction.attributes.channel_id  # type: ignore[no-any-return]

    @property
    def kind(self) -> str:
        """As what a device may have to wait there: send, recv, their dones, a feed, meet, start, done; unit.

        A unit is a loop or conditional that communicates inside.
        """
        return KINDS.get(self.instruction.opcode, "unit")

    @property
    def key(self) -> tuple[tuple[int, str] | int, ...]:
        """What tells it from every other place of its program."""
        return (*((id(step.instruction), step.role) for step in self.path), id(self.instruction))

    def __str__(self) -> str:
        """`send.1 in while w`"""
        return f"{self.instruction.name}{where(self.path)}"


KINDS = {
    **dict.fromkeys(COLLECTIVES, "meet"),
    **dict.fromkeys(DONE_OF, "start"),
    **dict.fromkeys(START_OF, "done"),
    **{opcode: opcode for opcode in (*FEEDS, *TRANSFERS, *TRANSFERS.values())},
}


MOST_PLACES = 100_000
"""At how many places of one program the instructions that communicate are told apart."""


@remembered
def places_of(computation: Computation) -> int:
    """How many sites a computation has at most: each call of what communicates, and each instruction in it, is more."""
    found = notable(computation)
    calls = (called for i in found if i.opcode in _ENTERING for called in i.called)
    return len(found) + sum(1 + places_of(called) for called in calls if communicates(called))


def is_followed(computation: Computation) -> bool:
    """Whether its places can be told apart; by calls of calls a few lines have 2^60."""
    return places_of(computation) <= MOST_PLACES


def sites(computation: Computation, path: Path = ()) -> Iterator[Site]:
    """Every communicating instruction that a run of the computation may come to, in recorded order.

    Of a computation that has too many places, each instruction once.
    """
    return _sites(computation, path) if is_followed(computation) else _once(computation, path, set())


def _once(computation: Computation, path: Path, seen: set[tuple[Computation, bool]]) -> Iterator[Site]:
    """Each communicating instruction at the first place where it stands, and the first that is not followed."""
    way = computation, all(step.is_followed for step in path)
    if way in seen:
        return
    seen.add(way)
    for instruction in notable(computation):
        if acts(instruction):
            yield Site(path, instruction)
        if instruction.opcode != "async_start":
            for step in steps(instruction):
                if communicates(step.computation):
                    yield from _once(step.computation, (*path, step), seen)


def _sites(computation: Computation, path: Path) -> Iterator[Site]:
    for instruction in notable(computation):
        if acts(instruction):
            yield Site(path, instruction)
        if instruction.opcode != "async_start":
            for step in steps(instruction):
                if communicates(step.computation):
                    yield from _sites(step.computation, (*path, step))


@remembered
def sites_of(computation: Computation) -> tuple[Site, ...]:
    """The sites of an entry, found once."""
    return tuple(sites(computation))


@remembered
def transfers_of(computation: Computation) -> tuple[Site, ...]:
    """The sends and recvs among the sites of an entry."""
    return tuple([site for site in sites_of(computation) if site.instruction.opcode in TRANSFERS])


@remembered
def collectives_of(computation: Computation) -> tuple[Site, ...]:
    """The collectives among the sites of an entry, blocking or started."""
    maybe = [site for site in sites_of(computation) if site.instruction.opcode in _MEETING]
    return tuple([site for site in maybe if collective_in(site.instruction) is not None])


@remembered
def feeds_of(computation: Computation) -> tuple[Site, ...]:
    """The infeeds and outfeeds among the sites of an entry."""
    return tuple([site for site in sites_of(computation) if site.instruction.opcode in FEEDS])


@remembered
def reached(computation: Computation) -> tuple[Computation, ...]:
    """The computation and all that it calls, found once."""
    return computation.reachable()
