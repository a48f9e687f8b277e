"""Sentences that a person reads, drawn by a seed for a reader who judges their English.

`python -m tests.sentences --seed 1 --count 60` prints sentences from messages, help, documents, concepts, lessons and
public docstrings, as many from each. `--flagged` prints those that hold a phrase of `tests/style.py`.
"""

from __future__ import annotations

import argparse
import ast
import inspect
import random
import re
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import click

import xbuild as xb
from tests import style
from xbuild.cli import main as command_line

ROOT = Path(__file__).parents[1]
PACKAGES = ("shape_inference", "xbuild", "interpreter")
_MESSAGES = {"refuse", "Finding", "hint", "note", "ClickException", "UsageError", "BadParameter", "say", "fail"}
_LOGS = {"campaigns.md", "cold_reading.md", "files.md", "op_status.md"}
_FENCE = re.compile(r"^```.*?^```", re.MULTILINE | re.DOTALL)


def documents() -> Iterator[tuple[str, str]]:
    """The prose of README and of all documents, without code, tables and logs."""
    for path in (
        ROOT / "README.md",
        ROOT / "SECURITY.md",
        ROOT / "CONTRIBUTING.md",
        *sorted((ROOT / "docs").rglob("*.md")),
    ):
        if path.name not in _LOGS:
            text = _FENCE.sub("", style.readable(path))
            lines = [line for line in text.splitlines() if not line.startswith(("|", "#", "    ", "<", "!["))]
            yield str(path.relative_to(ROOT)), "\n".join(lines)


def concepts() -> Iterator[tuple[str, str]]:
    """The definitions of `xbuild explain WORD`."""
    for path in sorted((ROOT / "xbuild" / "reference" / "concepts").glob("*.txt")):
        for entry in path.read_text().split("\n\n"):
            name, _, definition = entry.partition("\n")
            yield f"explain {name.partition(',')[0]}", definition.partition("  Example:")[0]


def lessons() -> Iterator[tuple[str, str]]:
    """The text cells of lessons and puzzles."""
    for folder in ("lessons", "puzzles"):
        for path in sorted((ROOT / "examples" / folder).glob("[0-9]*.py")):
            prose = (line for line in path.read_text().splitlines() if line.startswith("# ") and line[:6] != "#     ")
            lines = [line.removeprefix("#").strip() for line in prose]
            yield str(path.relative_to(ROOT)), "\n".join(line for line in lines if not line.startswith(("%", "#")))


def helps() -> Iterator[tuple[str, str]]:
    """The help of every command and option."""

    def walk(command: click.Command, name: str) -> Iterator[tuple[str, str]]:
        prose = (each for each in inspect.cleandoc(command.help or "").split("\n\n") if not each.startswith("\b"))
        yield f"{name} --help", "\n\n".join(prose)
        for option in command.params:
            text = getattr(option, "help", None)
            if text:
                yield f"{name} {option.opts[0]}", text
        if isinstance(command, click.Group):
            context = click.Context(command)
            for each in command.list_commands(context):
                found = command.get_command(context, each)
                if found is not None:
                    yield from walk(found, f"{name} {each}")

    return walk(command_line, "xbuild")


def docstrings() -> Iterator[tuple[str, str]]:
    """The docstrings of public names, of the members of public classes, and of the namespaces."""
    seen: set[int] = set()

    def of(name: str, value: Any) -> Iterator[tuple[str, str]]:
        text = getattr(value, "__doc__", None)
        if id(value) in seen or not isinstance(text, str) or text == type(value).__doc__:
            return
        seen.add(id(value))
        if getattr(value, "__module__", "xbuild").partition(".")[0] in PACKAGES:
            yield name, inspect.cleandoc(text).partition(">>>")[0].partition("\nSource:")[0]

    for name in xb.__all__:
        value = getattr(xb, name)
        yield from of(f"xb.{name}", value)
        if inspect.isclass(value) or inspect.ismodule(value):
            for member in vars(value) if inspect.isclass(value) else getattr(value, "__all__", ()):
                if not member.startswith("_"):
                    found = inspect.getattr_static(value, member, None)
                    yield from of(f"xb.{name}.{member}", found)


def messages() -> Iterator[tuple[str, str]]:
    """The texts in calls that refuse, warn or hint, with names for what is filled in."""
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for node in ast.walk(ast.parse(path.read_text())):
                if isinstance(node, ast.Call) and _called(node) in _MESSAGES:
                    values = [*node.args, *(keyword.value for keyword in node.keywords)]
                elif isinstance(node, ast.Raise) and isinstance(node.exc, ast.Call):
                    values = [*node.exc.args, *(keyword.value for keyword in node.exc.keywords)]
                else:
                    continue
                for value in values:
                    text = _text(value)
                    if text.count(" ") >= 2:
                        yield f"{path.relative_to(ROOT)}:{value.lineno}", text


def _called(node: ast.Call) -> str:
    return getattr(node.func, "id", getattr(node.func, "attr", ""))


def _text(node: ast.expr) -> str:
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(_text(part) if isinstance(part, ast.Constant) else _placeholder(part) for part in node.values)
    return ""


def _placeholder(part: ast.expr) -> str:
    """What a message fills in, by the last name in its expression: `{got}`."""
    names = re.findall(r"[^\W\d]\w*", re.sub(r"'[^']*'", "", ast.unparse(getattr(part, "value", part))))
    return f"{{{names[-1] if names else 'x'}}}"


SOURCES: dict[str, Callable[[], Iterator[tuple[str, str]]]] = {
    "messages": messages,
    "help": helps,
    "documents": documents,
    "concepts": concepts,
    "lessons": lessons,
    "docstrings": docstrings,
}


@cache
def sentences(source: str) -> list[tuple[str, str]]:
    """All sentences of a source, each with its place."""
    found = []
    for place, text in SOURCES[source]():
        for paragraph in re.split(r"\n\s*\n|\n(?=\s*(?:[-*]|\d+\.) )", text):
            joined = " ".join(paragraph.split())
            for sentence in re.split(r"(?<=[^\d.][.?!])\s+(?=[A-Z`*])", joined):
                sentence = re.sub(r"^\d+\. ", "", sentence)
                if sentence.count(" ") >= 2:
                    found.append((place, sentence))
    return found


def draw(seed: int, count: int) -> list[tuple[str, str]]:
    """As many sentences of each source, drawn by the seed."""
    chosen = random.Random(seed)
    share = -(-count // len(SOURCES))
    drawn = [pair for source in SOURCES for pair in chosen.sample(sentences(source), share)]
    return chosen.sample(drawn, count)


def flagged(source: str) -> list[tuple[str, str, str]]:
    """The sentences of a source that hold an odd phrase: place, phrase, sentence."""
    return [
        (place, phrase, sentence) for place, sentence in sentences(source) for phrase in style.find_phrases(sentence)
    ]


def main() -> None:
    parser = argparse.ArgumentParser(description="Draw sentences that a person reads.")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, default=200)
    parser.add_argument("--flagged", action="store_true", help="Print all sentences with an odd phrase instead.")
    options = parser.parse_args()
    if options.flagged:
        for source in SOURCES:
            for place, phrase, sentence in flagged(source):
                print(f"{source}  {place}: {phrase!r}: {sentence}")
        return
    for number, (place, sentence) in enumerate(draw(options.seed, options.count), 1):
        print(f"{number:>3}. {sentence}\n     [{place}]")


if __name__ == "__main__":
    main()
