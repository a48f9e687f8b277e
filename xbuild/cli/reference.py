"""`xbuild ops` and `xbuild explain`: what there is, and what a word means."""

from __future__ import annotations

import difflib
import inspect

import click

from shape_inference import infer

from ..explanations import EXPLANATIONS
from ..names import NAMES
from ..op import OPS, Schema
from .group import main


@main.command()
def ops() -> None:
    """List the ops: how each is called, what reads it, and its name in XlaBuilder."""
    rows = [(_signature(schema), _status(opcode), NAMES[opcode].xla_builder) for opcode, schema in sorted(OPS.items())]
    width = max(len(row[1]) for row in rows)
    for signature, status, xla_builder in rows:
        click.echo(f"{status:<{width}}  {signature}{f'  ({xla_builder})' if xla_builder else ''}")


def _signature(schema: Schema) -> str:
    return f"{NAMES[schema.opcode].name}{inspect.signature(schema.declaration)}".replace("'", "")


def _status(opcode: str) -> str:
    """Which readings the op has: `shape` infers it, `value` runs it (a rule, or the plan itself)."""
    from interpreter.rules import compute, planned

    from ..scheduling.effects import COLLECTIVES

    is_planned = opcode == "parameter" or (opcode in planned and opcode not in COLLECTIVES)
    readings = (("shape", opcode in infer), ("value", opcode in compute or is_planned))
    return " ".join(word if has else "-" * len(word) for word, has in readings)


@main.command()
@click.argument("word", metavar="KIND-or-OP")
def explain(word: str) -> None:
    """Say what an op does, or what a kind of refusal means."""
    opcode = word.strip("_").replace("-", "_")
    if opcode in OPS:
        names = NAMES[opcode]
        also = f", XlaBuilder's {names.xla_builder}" if names.xla_builder else ""
        click.echo(f"xb.{_signature(OPS[opcode])}\n{names.spelling} in HLO text{also}\n")
        click.echo(inspect.cleandoc(OPS[opcode].declaration.__doc__ or ""))
    elif word in EXPLANATIONS:
        click.echo(f"{word}: {EXPLANATIONS[word]}")
    else:
        close = difflib.get_close_matches(word, [*OPS, *EXPLANATIONS], 1)
        hint = f"; did you mean {close[0]!r}?" if close else "; `xbuild ops` lists the ops"
        raise click.UsageError(f"{word!r} is neither an op nor a kind of refusal{hint}")
