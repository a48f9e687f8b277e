"""`Instruction`, `Computation`, `Module` and `ModuleGroup`: the immutable objects that make up a program."""

from __future__ import annotations

import copy
import sys
from collections.abc import Container, Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from types import CodeType, MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from attrs import define, field, frozen

from shape_inference import AnyShape, ProgramShape
from shape_inference.escaping import in_line

from .hooks import Showable, applied, program_in, stablehlo_of, text_of
from .identifiers import check_name, short_path

if TYPE_CHECKING:
    import networkx as nx


# ----------------------------------------------------------------------------
# Copies: an immutable object is its own copy, a builder has none, and neither is pickled


class Immutable:
    """Base of immutable objects: `copy` and `deepcopy` return the object itself, as for a tuple of ints.

    `==` is identity, except for values, where it records an op. Pickling is refused, since programs are stored as text.
    """

    __slots__ = ()

    def __copy__(self) -> Any:
        return self

    def __deepcopy__(self, memo: Any) -> Any:
        return self

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise copy_refusal(self, "pickled")


class Uncopied:
    """Base of objects that change with use, such as builders: copies are refused, since they would go out of date."""

    __slots__ = ()

    def __copy__(self) -> NoReturn:
        raise copy_refusal(self, "copied")

    def __deepcopy__(self, memo: Any) -> NoReturn:
        raise copy_refusal(self, "copied")

    def __reduce_ex__(self, protocol: Any) -> NoReturn:
        raise copy_refusal(self, "pickled")


_STORE_TEXT = "store a program as text, which module.to_hlo() writes and xb.parse_hlo reads"
_BUILD_FIRST = "call build() to get a computation, and xb.edit to change a program"


def copy_refusal(thing: Any, how: str) -> Exception:
    """The error of a copy, with the user's line."""
    from .builder import Builder
    from .diagnostics import ValueUseError, dressed_text

    hints = (_BUILD_FIRST,) if isinstance(thing, Builder) else (_STORE_TEXT,)
    named = f" {thing.name!r}" if hasattr(thing, "name") else ""
    message = f"a {type(thing).__name__} cannot be {how}"
    text = dressed_text(f"{type(thing).__name__}{named}: {message} [not_copied]", (), _copying_frame(), hints)
    error = ValueUseError("not_copied", text, hints)
    error.message, error.explained = message, True
    return error


def _copying_frame() -> tuple[CodeType, int] | None:
    """The user's frame: the first one outside Python's copy module and this module."""
    frame = sys._getframe(1)
    while frame.f_back is not None and frame.f_code.co_filename in (__file__, copy.__file__):
        frame = frame.f_back
    return frame.f_code, frame.f_lasti


# ----------------------------------------------------------------------------
# Sources, instructions, computations, modules

NOTHING: Mapping[str, Any] = MappingProxyType({})


@frozen
class Source:
    """A place in the user's program, in the form that messages use. The file is not opened."""

    file: str
    line: int
    function: str

    def __str__(self) -> str:
        function = f" in {self.function}" if self.function else ""
        return in_line(f"{short_path(self.file)}:{self.line}{function}")


@frozen
class RecordedSource(Source):
    """A line of code of this process, found from the code object; only files of this kind are opened."""


@frozen
class TextSource(Source):
    """A line of the HLO text from which a computation was read; reports name it, but it is not printed as metadata."""

    @classmethod
    def of(cls, file: str, line: int, function: str) -> TextSource | None:
        """The line, or None if the user does not have the text: JAX wrote it, and it is in no file."""
        return None if file in UNWRITTEN else cls(file, line, function)


UNWRITTEN = LOWERED, COMPILED = "<lowered by JAX>", "<compiled by JAX>"
"""What stands for the file of a text that JAX wrote only in memory."""


@frozen
class MetadataSource(TextSource):
    """A source line from metadata or stack frames of HLO text; its file is never opened."""


@frozen
class KeptSource(Source):
    """A source line of a trace, with its recorded text."""

    text: str = ""


def resolve(code: CodeType, offset: int) -> RecordedSource:
    """The source line of a bytecode offset in a code object."""
    line = next((line for start, end, line in code.co_lines() if start <= offset < end), None)
    return RecordedSource(code.co_filename, line or code.co_firstlineno, code.co_name)


@define(eq=False, repr=False)
class InstructionDraft(Immutable):
    """The fields of an instruction while a builder fills them; recording turns it into an Instruction."""

    opcode: str
    name: str
    shape: AnyShape
    operands: tuple[Instruction, ...] = ()
    segments: tuple[int, ...] | None = None
    attributes: Any = None
    where: tuple[CodeType, int] | Source | None = None
    control: tuple[Instruction, ...] = ()
    annotations: Mapping[str, Any] = NOTHING


@frozen(eq=False, repr=False)
class Instruction(InstructionDraft):
    """One op at one place in a program. Two instructions are equal only if they are the same object.

    The tuple `operands` is flat: `segments` lists the size of each of the op's operand lists, or is None if every list
    is one value. `annotations` (sharding, frontend_attributes, metadata, backend_config) have no effect here, but are
    printed.
    """

    @property
    def source(self) -> Source | None:
        """The user's line that recorded the instruction. It is resolved only on access, which keeps recording fast."""
        return resolve(*self.where) if isinstance(self.where, tuple) else self.where

    def arguments(self) -> tuple[Any, ...]:
        """Return the operands as the op's rules take them: a value, None or a tuple for each operand list."""
        from .op import OPS

        return OPS[self.opcode].unflatten(self.operands, self.segments)

    def attribute_values(self) -> dict[str, Any]:
        return {} if self.attributes is None else vars(self.attributes)

    @property
    def called(self) -> tuple[Computation, ...]:
        """The computations that the instruction's attributes refer to, in order."""
        return tuple(region for _, region in self.regions())

    def regions(self) -> Iterator[tuple[str, Computation]]:
        """Return the computations that the instruction calls, each with its role.

        The role is the name of the attribute, with a number if the attribute is a list.
        """
        for key in self.attributes.calling if self.attributes is not None else ():
            value = getattr(self.attributes, key)
            if isinstance(value, Computation):
                yield key, value
            else:
                yield from ((f"{key}[{n}]", each) for n, each in enumerate(value))

    def __repr__(self) -> str:
        return text_of(self)


def _instructions(given: Iterable[Instruction]) -> tuple[Instruction, ...]:
    return tuple(given)


def _computations(given: Iterable[Computation]) -> tuple[Computation, ...]:
    return tuple(given)


@frozen(eq=False, repr=False, slots=False)
class Computation(Showable, Immutable):
    """Instructions in recorded order, including the root. Instructions that no builder recorded are checked only when
    `check` is called."""

    name: str
    instructions: tuple[Instruction, ...] = field(converter=_instructions)
    root: Instruction

    @cached_property
    def parameters(self) -> tuple[Instruction, ...]:
        """The parameters by number."""
        found = (i for i in self.instructions if i.opcode == "parameter")
        return tuple(sorted(found, key=lambda i: i.attributes.number))

    @cached_property
    def program_shape(self) -> ProgramShape:
        return ProgramShape((p.shape for p in self.parameters), self.root.shape)

    @cached_property
    def signature(self) -> ProgramShape:
        """The program shape without layouts, which is what shape inference reads."""
        return self.program_shape.plain()

    def __getitem__(self, name: str) -> Instruction:
        """The instruction of this name."""
        return self._by_name[name]

    @cached_property
    def _by_name(self) -> dict[str, Instruction]:
        return {i.name: i for i in self.instructions}

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        """Call the computation on values, as with xb.call; evaluate it on arrays and numbers, as with xb.evaluate."""
        return applied(self, arguments, options)

    def graph(self) -> nx.DiGraph[Instruction]:
        """Return the instructions as a networkx graph.

        An edge leads from each operand or control predecessor to its user.
        """
        import networkx as nx

        graph: nx.DiGraph[Instruction] = nx.DiGraph(name=self.name)
        graph.add_nodes_from(self.instructions)
        for user in self.instructions:
            graph.add_edges_from(((p, user) for p in user.control), kind="control")
            graph.add_edges_from(((o, user) for o in user.operands), kind="operand")
        return graph

    def reachable(self, known: Container[Computation] = ()) -> tuple[Computation, ...]:
        """Return this computation and all computations that it calls, directly or indirectly.

        Callees come first, and each computation occurs once. Computations in `known` are left out.
        """
        return self._reached(known) if known else self._all_reached

    @cached_property
    def calls(self) -> tuple[Instruction, ...]:
        """The instructions that call computations."""
        return tuple([i for i in self.instructions if i.attributes is not None and i.attributes.calling])

    @cached_property
    def _all_reached(self) -> tuple[Computation, ...]:
        return self._reached(())

    def _reached(self, known: Container[Computation]) -> tuple[Computation, ...]:
        seen: dict[Computation, None] = {}
        begun: set[Computation] = set()
        stack: list[tuple[Computation, bool]] = [(self, False)]
        while stack:
            computation, done = stack.pop()
            if done:
                seen[computation] = None
            elif computation not in begun and computation not in known:
                begun.add(computation)
                stack.append((computation, True))
                called = [c for i in computation.calls for c in i.called]
                stack.extend((c, False) for c in reversed(called) if c not in seen)
        return tuple(seen)

    def to_stablehlo(self, *, locations: bool = False) -> str:
        """Return the StableHLO text of a module whose entry is this computation. See Module.to_stablehlo."""
        return stablehlo_of(self, locations)

    def __repr__(self) -> str:
        return text_of(self)

    __str__ = __repr__


@frozen(eq=False, repr=False, slots=False)
class Module(Showable, Immutable):
    """One program for every device (SPMD): device = replica * num_partitions + partition.

    `annotations` are written as in the header of an HLO module. They have no effect here, but are printed. Raises
    ValueError if a count is not positive or the entry is not among the computations.
    """

    name: str
    entry: Computation
    computations: tuple[Computation, ...] = field(converter=_computations, default=())
    num_replicas: int = field(default=1, kw_only=True)
    num_partitions: int = field(default=1, kw_only=True)
    is_scheduled: bool = field(default=False, kw_only=True)
    annotations: Mapping[str, Any] = field(default=NOTHING, kw_only=True)

    def __attrs_post_init__(self) -> None:
        check_name(self.name)
        if not isinstance(self.entry, Computation):
            expected = "expected a Computation, such as builder.build() returns, for entry"
            raise TypeError(f"module {self.name}: {expected}, got {self.entry!r}")
        for count, value in (("num_replicas", self.num_replicas), ("num_partitions", self.num_partitions)):
            if value < 1:
                raise ValueError(f"module {self.name}: {count} must be at least 1, got {value}")
        if not self.computations:
            object.__setattr__(self, "computations", self.entry.reachable())
        elif self.entry not in self.computations:
            raise ValueError(f"module {self.name}: entry %{self.entry.name} is not one of its computations")

    @property
    def num_devices(self) -> int:
        return self.num_replicas * self.num_partitions

    def to_hlo(
        self,
        *,
        style: str = "short",
        percent: bool | None = None,
        layouts: bool | None = None,
        metadata: bool | None = None,
        entry_layout: bool | None = None,
    ) -> str:
        """Return the module as HLO text. `style` is short, percent or full; the flags override parts of it.

        `percent` writes names with `%` and computations with their signatures. `layouts` writes the default layout
        where a shape has none. `metadata` writes scopes and source lines. `entry_layout` writes the entry's signature
        in the header.
        """
        return text_of(self, style, percent=percent, layouts=layouts, metadata=metadata, entry_layout=entry_layout)

    def to_stablehlo(self, *, locations: bool = False) -> str:
        """Return the module as StableHLO text, in MLIR's pretty form, which JAX and XLA read.

        Tuples become several values, and called computations become regions at their calls; docs/stablehlo.md describes
        the rest. `locations` adds the name of each instruction and the user's line that recorded it. Raises
        StablehloError (not_in_stablehlo) if StableHLO cannot express an op, an element type or a constant.

        >>> import xbuild as xb
        >>> double = xb.computation(xb.f32[2])(lambda x: x + x)
        >>> print("\\n".join(xb.Module("double", double).to_stablehlo().splitlines()[1:4]))
          func.func public @main(%parameter.1: tensor<2xf32>) -> tensor<2xf32> {
            %add.2 = stablehlo.add %parameter.1, %parameter.1 : tensor<2xf32>
            return %add.2 : tensor<2xf32>
        """
        return stablehlo_of(self, locations)

    def __repr__(self) -> str:
        return self.to_hlo()

    __str__ = __repr__


def module_in(thing: Any, *, is_global: bool = False) -> Any:
    """The program that an object is or has; objects without one unchanged.

    It has one as an attribute `module`, such as a replicated program or a scheme, or it is a text, bytes, a path, or an
    object of JAX (`xbuild/files/programs.py`). With `is_global`, an object of JAX for several devices becomes the
    program before it is partitioned.
    """
    if isinstance(thing, Computation | Module | ModuleGroup):
        return thing
    found = getattr(thing, "module", None)
    return found if isinstance(found, Module | ModuleGroup) else program_in(thing, is_global=is_global)


def _modules(given: Mapping[int, Module] | Sequence[Module]) -> dict[int, Module]:
    """The modules by device; a list begins with device 0."""
    modules = dict(given if isinstance(given, Mapping) else enumerate(given))
    for device in (device for device, module in modules.items() if not isinstance(module, Module)):
        raise TypeError(f"module group: expected a Module for device {device!r}, got {modules[device]!r}")
    return modules


@frozen(eq=False, repr=False, slots=False)
class ModuleGroup(Showable, Immutable):
    """One program for each device (MPMD), given as a mapping from devices to programs or as a list. Channel ids pair
    sends with recvs across programs."""

    modules: Mapping[int, Module] = field(converter=_modules)

    @property
    def num_devices(self) -> int:
        return len(self.modules)

    def __repr__(self) -> str:
        return "\n\n".join(f"// device {device}\n{module}" for device, module in self.modules.items())
