"""`xbuild ops`, `xbuild explain` and `xbuild why`: what an op, a word or an instruction of a program is."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

import click

import xbuild
from shape_inference import infer

from ..core.diagnostics import BuildError
from ..core.graph import ModuleGroup
from ..core.op import OPS, Schema
from ..reference.op_names import NAMES
from ..reference.words import closest_word, explain_word, first_sentence, signature_of
from .candidates import instructions, words
from .group import load, main, options_used, takes_target
from .outputs import say, say_json

# ----------------------------------------------------------------------------
# `xbuild ops` and `xbuild explain`

_NAME = 26
"""The width of the column of names."""


@main.command()
@click.option("--signatures", is_flag=True, help="Print the operands, attributes and XlaBuilder name of each op.")
def ops(signatures: bool) -> None:
    """List the ops by family, each with a description.

    For details of one op, use `xbuild explain NAME`.
    """
    for number, (family, schemas) in enumerate(_families().items()):
        say(f"{chr(10) * bool(number)}{family}")
        for schema in schemas:
            say(f"  {_signature(schema)}" if signatures else "\n".join(_entry_lines(schema)))


def _families() -> dict[str, list[Schema]]:
    """The ops by family; the title of a family is the docstring of the module that declares it."""
    families: dict[str, list[Schema]] = {}
    for schema in OPS.values():
        title = (sys.modules[schema.declaration.__module__].__doc__ or "").strip()
        families.setdefault(title, []).append(schema)
    return families


def _entry_lines(schema: Schema) -> Iterator[str]:
    missing = "".join(f" [no {rule}]" for rule, has in _rules(schema.opcode) if not has)
    sentence = f"{first_sentence(schema.declaration.__doc__ or '')}{missing}"
    head = f"  {NAMES[schema.opcode].name:<{_NAME}} "
    indent = " " * len(head)
    yield from textwrap.wrap(sentence, 80, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False)


def _signature(schema: Schema) -> str:
    name = NAMES[schema.opcode].xla_builder
    return f"{signature_of(schema)}{f'  ({name})' if name else ''}"


def _rules(opcode: str) -> tuple[tuple[str, bool], ...]:
    """Whether the op has a rule for its shape, and one for its value (or a line of the plan)."""
    from ..properties.effects import COLLECTIVES
    from ..running import rule_tables

    is_planned = opcode == "parameter" or (opcode in rule_tables.planned and opcode not in COLLECTIVES)
    return ("shape", opcode in infer), ("value", opcode in rule_tables.compute or is_planned)


@main.command()
@click.argument("target", metavar="WORD|TARGET", shell_complete=words)
@click.option(
    "--of",
    "name",
    metavar="NAME",
    shell_complete=instructions,
    help="Explain this instruction of the program TARGET, such as add.3 or body/add.3.",
)
@click.option("--json", "as_json", is_flag=True, help="Print the facts as JSON (requires --of).")
@click.argument("more", nargs=-1, metavar="")
def explain(target: str, more: tuple[str, ...], name: str | None, as_json: bool) -> None:
    """Explain a word, or an instruction in a program.

    WORD is an op (by its name in xb, in HLO text or in XlaBuilder), a function or type in xb, a kind of error such as
    [dimension_mismatch], an attribute, or a word from reports and documents, such as replica_groups, token or psum.

    With --of NAME, explain the instruction NAME of the program TARGET. The explanation states what the instruction
    does, why it has its shape (with the numbers), its source line, its users and dependencies, the devices that hold
    equal values, and its value if that value is known without a run.
    """
    if more:
        raise click.UsageError(
            f"unexpected {more[0]!r}; `xbuild explain {target} --of {more[0]}` explains an instruction of a program"
        )
    if name is None:
        if wrong := options_used("as_json", "replicas", "partitions"):
            raise click.UsageError(f"{wrong[0]} applies only to an instruction of a program: TARGET --of NAME")
        _explain_word(target)
        return
    try:
        explanation = xbuild.explain(load(target), name)
    except BuildError as error:
        if error.kind != "undefined_name":
            raise
        raise click.UsageError(
            f"the program has no instruction %{name.removeprefix('%')}; `xbuild show` prints all instructions"
        ) from None
    say_json(explanation.to_dict()) if as_json else say(str(explanation))


def _explain_word(word: str) -> None:
    texts = explain_word(word)
    if not texts:
        close = closest_word(word)
        hint = f"; did you mean {close!r}?" if close else "; `xbuild ops` lists the ops"
        if ":" in word or word.endswith((".hlo", ".txt")):
            hint = "; to explain an instruction of a program, add --of NAME"
        raise click.UsageError(f"{word!r} is neither an op nor a known term{hint}")
    say("\n\n".join(texts))


# ----------------------------------------------------------------------------
# `xbuild why`


@main.command()
@takes_target
@click.argument("name", metavar="INSTRUCTION", shell_complete=instructions)
def why(target: str, name: str) -> None:
    """Show why an instruction is in a derivative: what it differentiates, its source line and its users.

    For more facts about any instruction, use `xbuild explain TARGET --of NAME`.
    """
    from ..differentiation.origins import why as explain_origin

    program = load(target)
    modules = program.modules.values() if isinstance(program, ModuleGroup) else (program,)
    reports = [explain_origin(module, name) for module in dict.fromkeys(modules) if _has_instruction(module, name)]
    if not reports:
        raise click.UsageError(
            f"the program has no instruction %{name.removeprefix('%')}; `xbuild show` prints all instructions"
        )
    say("\n\n".join(reports))


def _has_instruction(module: object, name: str) -> bool:
    computations = getattr(module, "computations", None) or module.reachable()  # type: ignore[attr-defined]
    bare = name.removeprefix("%")
    return any(instruction.name == bare for computation in computations for instruction in computation.instructions)
