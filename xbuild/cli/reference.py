"""`xbuild ops` and `xbuild explain`: the ops by family, and what a word or an instruction of a program is."""

from __future__ import annotations

import sys
import textwrap
from collections.abc import Iterator

import click

import xbuild
from shape_inference import infer

from ..core.diagnostics import BuildError
from ..core.op import OPS, Schema
from ..reference.op_names import NAMES
from ..reference.words import close_to, first_sentence, signature_of, told
from .group import given, load, main
from .support.candidates import instructions, words
from .support.saying import say, say_json

_NAME = 26
"""The width of the names of ops in the list."""


@main.command()
@click.option("--signatures", is_flag=True, help="Print operands, attributes and the name in XlaBuilder of each op.")
def ops(signatures: bool) -> None:
    """List the ops by family, each with a sentence.

    `xbuild explain NAME` says more of one.
    """
    for number, (family, schemas) in enumerate(_families().items()):
        say(f"{chr(10) * bool(number)}{family}")
        for schema in schemas:
            say(f"  {_signature(schema)}" if signatures else "\n".join(_listed(schema)))


def _families() -> dict[str, list[Schema]]:
    """The ops by the sentence at the head of the file that declares them."""
    found: dict[str, list[Schema]] = {}
    for schema in OPS.values():
        title = (sys.modules[schema.declaration.__module__].__doc__ or "").strip()
        found.setdefault(title, []).append(schema)
    return found


def _listed(schema: Schema) -> Iterator[str]:
    lacks = "".join(f" [no {word}]" for word, has in _readings(schema.opcode) if not has)
    sentence = f"{first_sentence(schema.declaration.__doc__ or '')}{lacks}"
    head = f"  {NAMES[schema.opcode].name:<{_NAME}} "
    indent = " " * len(head)
    yield from textwrap.wrap(sentence, 80, initial_indent=head, subsequent_indent=indent, break_on_hyphens=False)


def _signature(schema: Schema) -> str:
    name = NAMES[schema.opcode].xla_builder
    return f"{signature_of(schema)}{f'  ({name})' if name else ''}"


def _readings(opcode: str) -> tuple[tuple[str, bool], ...]:
    """Which readings the op has: a rule for its shape, and one for its value (or a line of the plan)."""
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
    help="An instruction of the program TARGET, as add.3 or body/add.3.",
)
@click.option("--json", "as_json", is_flag=True, help="With --of: print the facts as JSON.")
def explain(target: str, name: str | None, as_json: bool) -> None:
    """Say what a word means, or what an instruction of a program is.

    WORD is an op (by its name in xb, in HLO text or in XlaBuilder), a function or type of xb, a kind of error as in
    [dimension_mismatch], an attribute, or a word of reports and documents such as replica_groups, token or psum.

    With --of NAME it is the program TARGET, and of its instruction NAME is told what it does, why it has its shape
    (in numbers), which line made it, what uses it, what it depends on, which devices hold equal values, and its value
    where that is known before the run.
    """
    if name is None:
        if wrong := given("as_json", "replicas", "partitions"):
            raise click.UsageError(f"{wrong[0]} is for an instruction of a program: TARGET --of NAME")
        _explain_word(target)
        return
    try:
        found = xbuild.explain(load(target), name)
    except BuildError as error:
        if error.kind != "undefined_name":
            raise
        raise click.UsageError(
            f"the program has no instruction %{name.removeprefix('%')}; `xbuild show` prints them"
        ) from None
    say_json(found.to_dict()) if as_json else say(str(found))


def _explain_word(word: str) -> None:
    texts = told(word)
    if not texts:
        close = close_to(word)
        hint = f"; did you mean {close!r}?" if close else "; `xbuild ops` lists the ops"
        if ":" in word or word.endswith((".hlo", ".txt")):
            hint = "; with --of NAME it is a program, and NAME one of its instructions"
        raise click.UsageError(f"{word!r} is neither an op nor another word that is known{hint}")
    say("\n\n".join(texts))
