"""A program of the model as HLO text, one module or one for each device."""

from __future__ import annotations

import xbuild as xb

from .program import Collective, Computation, Instruction, Program, Reducer


def texts(program: Program) -> list[str]:
    """The text of each module, once where all devices run one."""
    entries = program.entries[:1] if program.is_one else program.entries
    return [_module(program, entry, number) for number, entry in enumerate(entries)]


def parsed(program: Program) -> xb.Module | xb.ModuleGroup:
    return grouped(texts(program))


def grouped(sources: list[str]) -> xb.Module | xb.ModuleGroup:
    """One module for all, or a module for each device."""
    modules = [xb.parse_hlo(text) for text in sources]
    return modules[0] if len(modules) == 1 else xb.ModuleGroup(dict(enumerate(modules)))


def _module(program: Program, entry: Computation, number: int) -> str:
    header = f"HloModule m{number}"
    header += ", is_scheduled=true" * program.is_given
    header += f", replica_count={program.replicas}" * (program.replicas > 1)
    header += f", num_partitions={program.partitions}" * (program.partitions > 1)
    computations = [*entry.reached()]
    givens = (each.given for c in computations for each in c.instructions)
    used = {given if isinstance(given, Reducer) else given.reducer for given in givens if _reduces(given)}
    parts = [header, *map(_reducer, sorted(used)), *(_computation(each, each is entry) for each in computations)]
    return "\n\n".join(parts) + "\n"


def _reduces(given: object) -> bool:
    return isinstance(given, Reducer) or (isinstance(given, Collective) and given.reducer is not None)


def _reducer(name: str) -> str:
    opcode, of = name.split(".")
    return f"{name} {{\n  a = {of}[] parameter(0)\n  b = {of}[] parameter(1)\n  ROOT r = {of}[] {opcode}(a, b)\n}}"


def _computation(computation: Computation, is_entry: bool) -> str:
    lines = [_line(each, each is computation.root) for each in computation.instructions]
    return "\n".join([f"{'ENTRY ' * is_entry}{computation.name} {{", *lines, "}"])


def _line(instruction: Instruction, is_root: bool) -> str:
    operands = ", ".join(each.name for each in instruction.operands)
    if instruction.opcode == "parameter":
        operands = str(instruction.given)
    elif instruction.opcode == "constant":
        operands = literal(instruction.given, instruction.type)
    control = ", ".join(each.name for each in instruction.control)
    return (
        f"  {'ROOT ' * is_root}{instruction.name} = {instruction.shape} {instruction.opcode}({operands})"
        f"{instruction.attributes}{f', control-predecessors={{{control}}}' * bool(control)}"
    )


def literal(number: object, of: str) -> str:
    if isinstance(number, tuple):
        return f"{{{', '.join(literal(each, of) for each in number)}}}"
    return str(bool(number)).lower() if of == "pred" else str(number)
