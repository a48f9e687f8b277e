"""`xbuild ops` and `xbuild explain`: the list of ops, and the documentation of an op or a kind of refusal."""

from __future__ import annotations

import difflib
import inspect
from typing import Any

import click

import xbuild
from shape_inference import infer

from ..core.op import OPS, Schema
from ..reference.explanations import EXPLANATIONS
from ..reference.op_names import NAMES
from .group import main
from .saying import say


@main.command()
def ops() -> None:
    """List the ops: how each is called, what reads it, and its name in XlaBuilder."""
    rows = [(_signature(schema), _status(opcode), NAMES[opcode].xla_builder) for opcode, schema in sorted(OPS.items())]
    width = max(len(row[1]) for row in rows)
    for signature, status, xla_builder in rows:
        say(f"{status:<{width}}  {signature}{f'  ({xla_builder})' if xla_builder else ''}")


def _signature(schema: Schema) -> str:
    return f"{NAMES[schema.opcode].name}{inspect.signature(schema.declaration)}".replace("'", "")


def _status(opcode: str) -> str:
    """Which readings the op has: `shape` infers it, `value` runs it (a rule, or the plan itself)."""
    from ..properties.effects import COLLECTIVES
    from ..running import rule_tables

    is_planned = opcode == "parameter" or (opcode in rule_tables.planned and opcode not in COLLECTIVES)
    readings = (("shape", opcode in infer), ("value", opcode in rule_tables.compute or is_planned))
    return " ".join(word if has else "-" * len(word) for word, has in readings)


@main.command()
@click.argument("word", metavar="KIND-or-OP")
def explain(word: str) -> None:
    """Say what an op does, or what a kind of refusal means.

    Ops are found by their names in xb, in HLO text and in XlaBuilder; other functions of xb and xb.mesh by their
    names.
    """
    from ..reference.migration import ROWS

    told = _told(word)
    if told is None and (row := ROWS.get(f"ops.{word}")):
        note = f" ({row.note})" if row.note else ""
        targets = [each for each in row.target.split(", ") if each != "-"]
        told = "\n".join([
            f"XlaBuilder's {word} is {' and '.join(f'xb.{each}' for each in targets) or 'not here'}{note}",
            *filter(None, map(_told, targets)),
        ])  # fmt: skip
    if told is None:
        close = difflib.get_close_matches(word, [*OPS, *EXPLANATIONS], 1)
        hint = f"; did you mean {close[0]!r}?" if close else "; `xbuild ops` lists the ops"
        raise click.UsageError(f"{word!r} is neither an op nor a kind of refusal{hint}")
    say(told)


def _told(word: str) -> str | None:
    """The documentation of an op, a kind of refusal, or another function of xb; None for any other word."""
    word = word.removeprefix("xb.").removeprefix("ops.")
    opcode = word.strip("_").replace("-", "_")
    form = getattr(xbuild, NAMES[opcode].name if opcode in OPS else word, None)
    if opcode in OPS:
        names, schema = NAMES[opcode], OPS[opcode]
        also = f", XlaBuilder's {names.xla_builder}" if names.xla_builder else ""
        lines = [f"xb.ops.{_signature(schema)}", f"{names.spelling} in HLO text{also}"]
        if form is not getattr(xbuild.ops, names.name):
            lines.append(f"the comfortable form: {_called(names.name, form)}")
        return "\n".join([*lines, "", inspect.cleandoc(schema.declaration.__doc__ or "")])
    if word in EXPLANATIONS:
        return f"{word}: {EXPLANATIONS[word]}"
    if inspect.isfunction(form):
        return f"{_called(word, form)}\n\n{inspect.getdoc(form)}"
    on_mesh = getattr(xbuild.mesh, word.removeprefix("mesh."), None)
    if inspect.isfunction(on_mesh):
        return f"{_called(f'mesh.{on_mesh.__name__}', on_mesh)}\n\n{inspect.getdoc(on_mesh)}"
    return None


def _called(name: str, function: Any) -> str:
    return f"xb.{name}{inspect.signature(function)}".replace("'", "")
