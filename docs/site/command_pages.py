"""The reference of the command line: a page for each command, with its options and the examples of docs/commands.md."""

from __future__ import annotations

import re
from inspect import cleandoc

import click

from xbuild.cli import main

from .markdown import document, escaped, fenced, table, tree
from .staging import ROOT, Stage

_EXAMPLE = re.compile(r"^ {4}(?:\w+=\S+ )?xbuild +(\w+) .*$", re.MULTILINE)
_DOCUMENT = re.compile(r"docs/(\w+)\.md")


def make(stage: Stage) -> None:
    """Stage a page for each command, and the index with the sentence of each."""
    examples: dict[str, list[str]] = {name: [] for name in sorted(main.commands)}
    for found in _EXAMPLE.finditer((ROOT / "docs" / "commands.md").read_text(encoding="utf-8")):
        examples[found[1]].append(found[0].strip())
    for name, lines in examples.items():
        stage.page(f"commands/{name}", _page(name, main.commands[name], lines))
    rows = ((f"[`xbuild {name}`]({name}.md)", escaped(_blocks(main.commands[name])[0])) for name in examples)
    head = "# The command line\n\n[Commands](../commands.md) introduces targets, and shows examples by subject."
    parts = [head, table(("command", "what it does"), rows), tree(examples, hidden=True)]
    stage.page("commands/index", "\n\n".join(parts))


def _page(name: str, command: click.Command, examples: list[str]) -> str:
    with click.Context(command, info_name=f"xbuild {name}") as context:
        usage = " ".join([context.command_path, *command.collect_usage_pieces(context)]).strip()
        records = [record for each in command.get_params(context) if (record := each.get_help_record(context))]
    parts = [f"# xbuild {name}", fenced(usage), document("\n\n".join(_blocks(command)))]
    if examples:
        parts += ["## Examples", fenced("\n\n".join(map(_noted, examples)), "sh")]
    parts += ["## Options", *(f"`{option}`\n: {escaped(text)}" for option, text in records if text)]
    documents = dict.fromkeys(_DOCUMENT.findall("\n".join([*examples, command.help or ""])))
    if documents:
        parts.append(f"See also {', '.join(f'[{each}](../{each}.md)' for each in documents)}.")
    return "\n\n".join(parts)


def _blocks(command: click.Command) -> list[str]:
    """The paragraphs of the help; click keeps the lines of those that begin with a backspace."""
    return [
        block.removeprefix("\b\n") if block.startswith("\b") else " ".join(block.split())
        for block in cleandoc(command.help or "").split("\n\n")
    ]


def _noted(line: str) -> str:
    """The command of a line, below its comment."""
    command, _, note = line.partition(" # ")
    return "\n".join([*([f"# {note}"] if note else []), " ".join(command.split())])
