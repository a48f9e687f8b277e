"""Check of a command's files: no output is an input or another output, whatever links and spellings are used."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping
from pathlib import Path

import click

from ...files import npz
from ...files.results import replacing
from ...files.targets import file_of


def distinct(inputs: Mapping[str, str | None], outputs: Mapping[str, str | None]) -> None:
    """A usage error where an output is an input or another output: the same file, by any link or spelling of its path.

    Both map the role of a file on the command line to its path; each file in an input folder is an input.
    """
    read = [(what, each) for what, path in inputs.items() if path for each in _files(path)]
    written: list[tuple[str, str]] = []
    for option, path in outputs.items():
        if not path or _is_no_file(path):
            continue
        for what, other in (*read, *written):
            if _is_same(path, other):
                does = "reads" if (what, other) in read else "writes"
                raise click.UsageError(f"{option} {path} is what the command {does} as {what}; another path is wanted")
        written.append((option, path))


def target_of(target: str) -> dict[str, str | None]:
    """The file of a target, as an input for `distinct`."""
    return {f"TARGET, {target}": file_of(target)}


def text_of(path: str) -> str:
    """The text of a small file that is given as data."""
    try:
        return npz.read_text(Path(path), _MOST_DATA).decode("utf-8")
    except npz.ArchiveError as error:
        raise click.UsageError(str(error)) from None


_MOST_DATA = 1 << 30


def write_whole(target: Path, content: str) -> None:
    """Write a text file whole or not at all; one that cannot be written ends the command with a sentence."""
    try:
        with replacing(target) as file:
            file.write(content.encode())
    except OSError as error:
        raise click.ClickException(f"{target} cannot be written: {error.strerror}") from None


def _files(path: str) -> Iterator[str]:
    yield path
    if os.path.isdir(path):
        with os.scandir(path) as entries:
            yield from (entry.path for entry in entries)


def _is_no_file(path: str) -> bool:
    """Whether a path is a device or a pipe, to which any number of outputs may be written."""
    return os.path.exists(path) and not os.path.isfile(path) and not os.path.isdir(path)


def _is_same(path: str, other: str) -> bool:
    try:
        return os.path.samefile(path, other)
    except (OSError, ValueError):  # one of the files does not exist yet
        return os.path.normcase(os.path.realpath(path)) == os.path.normcase(os.path.realpath(other))
