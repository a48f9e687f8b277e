"""What a learner has done, in the user's data folder: the questions answered rightly, and the puzzles solved."""

from __future__ import annotations

import errno
import json
import os
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from attrs import define, field

from ..files.results import replacing
from ..process.locking import locked

PATIENCE = 10.0
"""Seconds to wait for another command that writes the progress."""

_UNREADABLE = (OSError, ValueError, KeyError, TypeError, AttributeError)


def data_folder() -> Path:
    """The folder of xbuild in the user's data folder: XDG_DATA_HOME where it is set, else the platform's."""
    home, given = Path.home(), os.environ.get("XDG_DATA_HOME", "")
    if given and Path(given).is_absolute():
        return Path(given) / "xbuild"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "xbuild"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "xbuild"
    return home / ".local" / "share" / "xbuild"


@define(eq=False)
class Progress:
    """Words that were answered rightly, by lesson, and scores, by puzzle; kept after each answer.

    `trouble` is the sentence to tell where the file could not be read or written; learning goes on without it.
    """

    file: Path
    answered: dict[str, list[str]] = field(factory=dict)
    solved: dict[str, dict[str, int]] = field(factory=dict)
    trouble: str = ""

    def note(self, lesson: str, *questions: str) -> None:
        """Keep that questions of a lesson were answered rightly, beside what other commands have kept meanwhile."""
        self._keep(lambda: self._answer(lesson, questions))

    def solve(self, puzzle: str, score: dict[str, int]) -> None:
        """Keep the score of a solution of a puzzle, beside what other commands have kept meanwhile."""
        self._keep(lambda: self.solved.update({puzzle: score}))

    def _answer(self, lesson: str, questions: tuple[str, ...]) -> None:
        known = self.answered.get(lesson, [])
        self.answered[lesson] = [*dict.fromkeys([*known, *questions])]

    def _keep(self, change: Callable[[], object]) -> None:
        """Read the file again under its lock, merge, change, and write it."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with _alone(self.file.with_suffix(".lock")):
                self._merge()
                change()
                self._write()
        except OSError as error:
            change()
            self.trouble = f"{self.file}: {error.strerror or error}; what you have done is not kept"

    def _merge(self) -> None:
        """Take in what the file has by now; a file that cannot be read is written over."""
        with suppress(*_UNREADABLE):
            answered, solved = _read(self.file)
            for lesson, questions in answered.items():
                self._answer(lesson, tuple(questions))
            self.solved.update(solved)

    def _write(self) -> None:
        text = json.dumps({"lessons": self.answered, "puzzles": self.solved}, indent=1, ensure_ascii=False)
        with replacing(self.file) as file:
            file.write(f"{text}\n".encode())


@contextmanager
def _alone(path: Path) -> Iterator[None]:
    """Hold the lock of a file; raises OSError where another process holds it for longer than PATIENCE."""
    with path.open("ab") as file:
        end = time.monotonic() + PATIENCE
        while locked(file.fileno()) == "taken":
            if time.monotonic() > end:
                raise OSError(errno.EAGAIN, "another command holds its lock")
            time.sleep(0.01)
        yield


def _read(file: Path) -> tuple[dict[str, list[str]], dict[str, dict[str, int]]]:
    kept: Any = json.loads(file.read_text(encoding="utf-8"))
    answered = {str(name): [*map(str, words)] for name, words in kept["lessons"].items()}
    solved = {str(name): {str(k): int(v) for k, v in score.items()} for name, score in kept["puzzles"].items()}
    return answered, solved


def progress() -> Progress:
    """The progress as it is kept; empty where there is none yet."""
    found = Progress(data_folder() / "progress.json")
    try:
        found.answered, found.solved = _read(found.file)
    except FileNotFoundError:
        pass
    except OSError as error:
        found.trouble = f"{found.file} cannot be read: {error.strerror or error}"
    except _UNREADABLE:
        found.trouble = f"{found.file} cannot be read; what you do now is written over it"
    return found
