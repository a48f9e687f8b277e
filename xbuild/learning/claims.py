"""Claims of lessons: of each answer, which engine gives the same, or who chose what the documents leave open."""

from __future__ import annotations

from typing import Any, Literal, TypeAlias

from attrs import frozen

from shape_inference import XbuildError

from ..core.graph import Computation, Module, ModuleGroup
from ..text.reading.reader import parse_hlo

ACCEPTED, REFUSED = "accepted", "refused"
"""The two outcomes of HLO text whose acceptance is asked for."""

Engine: TypeAlias = Literal["xla", "stablehlo", "hang", "jax", "choice", "xbuild"]
"""Who decides an answer: an engine that gives the same, a choice where the documents leave it open, or xbuild alone."""

_SENTENCES = {
    "xla": "XLA:CPU gives the same.",
    "stablehlo": "StableHLO's reference interpreter gives the same.",
    "hang": "XLA:CPU waits for devices that never come, and then ends its process.",
    "jax": "JAX gives the same.",
    "choice": "Left open by the documents; we chose {}.",
    "xbuild": "{}.",
}


@frozen
class Claim:
    """Who decides an answer; `program` and `inputs` (a row of arguments for each device) are what an engine runs.

    A program that is HLO text claims no values, but that the engine accepts or refuses the text as xbuild does.
    """

    engine: Engine
    words: str = ""
    program: Module | ModuleGroup | str | None = None
    inputs: tuple[tuple[Any, ...], ...] = ()

    def __str__(self) -> str:
        said = _SENTENCES[self.engine].format(self.words)
        if isinstance(self.program, str):
            return f"XLA:CPU {'takes' if outcome_of(self.program) == ACCEPTED else 'refuses'} it, too."
        return f"{said} XLA:CPU gives the same." if self.engine == "choice" and self.program is not None else said

    @property
    def is_of_an_engine(self) -> bool:
        """Whether a test runs the program on another engine."""
        return self.program is not None


def on_xla(program: Computation | Module | ModuleGroup | str, *inputs: Any) -> Claim:
    """The claim that XLA:CPU gives the same on these inputs: arguments of a computation, or a row for each device."""
    return _of_engine("xla", program, inputs)


def on_stablehlo(program: Computation | Module | ModuleGroup | str, *inputs: Any) -> Claim:
    """The claim that StableHLO's reference interpreter gives the same, for what XLA:CPU does not run."""
    return _of_engine("stablehlo", program, inputs)


def on_jax() -> Claim:
    """The claim that JAX gives the same, for what is decided before there is a program of XLA."""
    return Claim("jax")


def hangs_on_xla(program: Module, *inputs: Any) -> Claim:
    """The claim that XLA:CPU begins this program on these inputs and never ends it."""
    return _of_engine("hang", program, inputs)


def chosen(words: str, program: Computation | Module | ModuleGroup | None = None, *inputs: Any) -> Claim:
    """The statement that the documents leave the answer open, and what xbuild chose; of a program, XLA:CPU as well."""
    return Claim("choice", words) if program is None else _of_engine("choice", program, inputs, words)


def about_xbuild(words: str) -> Claim:
    """The statement that the answer is about xbuild itself, such as what it counts or says."""
    return Claim("xbuild", words.rstrip("."))


def _of_engine(engine: Engine, program: Any, inputs: tuple[Any, ...], words: str = "") -> Claim:
    if isinstance(program, str):
        return Claim(engine, words, program)
    return Claim(engine, words, module_of(program), rows_of(program, inputs))


def outcome_of(text: str) -> str:
    """Whether HLO text is accepted."""
    try:
        parse_hlo(text)
    except XbuildError:
        return REFUSED
    return ACCEPTED


def module_of(program: Computation | Module | ModuleGroup) -> Module | ModuleGroup:
    """The program as a module; a computation is the program of one device."""
    return Module(program.name, program) if isinstance(program, Computation) else program


def rows_of(program: Computation | Module | ModuleGroup, inputs: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
    """The arguments of each device; a device with one parameter may be given the argument alone."""
    if isinstance(program, Computation):
        return (inputs,)
    entries = [
        (program if isinstance(program, Module) else program.modules[device]).entry
        for device in range(program.num_devices)
    ]
    given = inputs or ((),) * len(entries)
    pairs = zip(entries, given, strict=True)
    return tuple((each,) if len(entry.parameters) == 1 else tuple(each) for entry, each in pairs)
