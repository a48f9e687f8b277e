"""A learner's progress in the user's data folder: correctly answered questions and solved puzzles."""

from __future__ import annotations

import errno
import itertools
import json
import os
import stat
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attrs import define, field

from shape_inference.escaping import Harmless

from ..files.arrays import kind_of, replacing
from ..process.locking import locked

PATIENCE = 10.0
"""The number of seconds to wait for another command that writes the progress."""

MOST_BYTES = 1 << 20
"""The size of the largest progress file that is read; all lessons and puzzles together need a fiftieth of it."""

MOST = 1 << 63

_SAFE_FLAGS = getattr(os, "O_NOFOLLOW", 0) | getattr(os, "O_NONBLOCK", 0) | getattr(os, "O_BINARY", 0)
"""The flags that open a file without following a link or waiting for a pipe."""


class InvalidProgress(Harmless):
    """Raised with the cause if a progress file is not valid."""


def data_folder() -> Path:
    """The folder `xbuild` in the user's data folder: XDG_DATA_HOME if it is set, otherwise the platform's folder."""
    home, stated = Path.home(), os.environ.get("XDG_DATA_HOME", "")
    if stated and Path(stated).is_absolute():
        return Path(stated) / "xbuild"
    if sys.platform == "darwin":
        return home / "Library" / "Application Support" / "xbuild"
    if sys.platform == "win32":
        return Path(os.environ.get("LOCALAPPDATA") or home / "AppData" / "Local") / "xbuild"
    return home / ".local" / "share" / "xbuild"


@define(eq=False)
class Progress:
    """The correctly answered questions by lesson and the scores by puzzle, saved after each answer.

    The file is untrusted: `Progress` renames a file that it would not have written itself. `trouble` is a message for
    the user if this happens, or if the file cannot be read or written; learning continues without the file.
    """

    file: Path
    answered: dict[str, list[str]] = field(factory=dict)
    solved: dict[str, dict[str, int]] = field(factory=dict)
    trouble: str = ""

    def note(self, lesson: str, *questions: str) -> None:
        """Save questions of a lesson as correctly answered, merged with the progress that other commands saved."""
        self._update(lambda: self._add_answers(lesson, questions))

    def solve(self, puzzle: str, score: dict[str, int]) -> None:
        """Save the score of a puzzle's solution, merged with the progress that other commands saved."""
        self._update(lambda: self.solved.update({puzzle: score}))

    def _add_answers(self, lesson: str, questions: tuple[str, ...]) -> None:
        known = self.answered.get(lesson, [])
        self.answered[lesson] = [*dict.fromkeys([*known, *questions])]

    def _update(self, change: Callable[[], object]) -> None:
        """Read the file again under its lock, merge its content, apply a change, and write the file."""
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with _hold_lock(self.file.with_suffix(".lock")):
                self._merge()
                change()
                self._write()
        except OSError as error:
            change()
            self.trouble = f"{self.file}: {error.strerror or error}; your progress was not saved"

    def _merge(self) -> None:
        """Merge the current content of the file; rename an invalid file."""
        try:
            answered, solved = _read(self.file)
        except FileNotFoundError:
            return
        except InvalidProgress as reason:
            self.set_aside(reason)
            return
        for lesson, questions in answered.items():
            self._add_answers(lesson, tuple(questions))
        self.solved.update(solved)

    def set_aside(self, reason: InvalidProgress) -> None:
        """Rename the invalid file, so that learning continues and no data are lost."""
        aside = next(name for name in _numbered_names(self.file) if not os.path.lexists(name))
        os.rename(self.file, aside)
        self.trouble = f"{self.file} is not a valid progress file: {reason}; xbuild renamed the file to {aside.name}"

    def _write(self) -> None:
        with replacing(self.file) as file:
            file.write(_to_json({"lessons": self.answered, "puzzles": self.solved}))


@contextmanager
def _hold_lock(path: Path) -> Iterator[None]:
    """Hold the lock of a file; raises OSError if another process holds it for longer than PATIENCE."""
    with os.fdopen(os.open(path, os.O_WRONLY | os.O_CREAT | _SAFE_FLAGS, 0o666), "wb") as file:
        if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
            raise OSError(errno.EINVAL, "the lock file is not a regular file")
        end = time.monotonic() + PATIENCE
        while locked(file.fileno()) == "taken":
            if time.monotonic() > end:
                raise OSError(errno.EAGAIN, "another command holds the lock on this file")
            time.sleep(0.01)
        yield


def _to_json(content: Any) -> bytes:
    return f"{json.dumps(content, indent=1, ensure_ascii=False)}\n".encode()


def _numbered_names(file: Path) -> Iterator[Path]:
    return (file.with_name(f"{file.name}.{number}") for number in itertools.count(1))


def _read(file: Path) -> tuple[dict[str, list[str]], dict[str, dict[str, int]]]:
    """The content of a progress file; raises InvalidProgress or FileNotFoundError."""
    mode = os.lstat(file).st_mode
    if not stat.S_ISREG(mode):
        raise InvalidProgress(f"expected a regular file, got {'a link' if stat.S_ISLNK(mode) else kind_of(file)}")
    with os.fdopen(os.open(file, os.O_RDONLY | _SAFE_FLAGS), "rb") as opened:
        text = opened.read(MOST_BYTES + 1)
    if len(text) > MOST_BYTES:
        raise InvalidProgress(f"the file has more than {MOST_BYTES:,} bytes")
    try:
        content = json.loads(text)
        _to_json({"lessons": content})  # check that its strings can be written again
    except (ValueError, RecursionError):
        raise InvalidProgress("the file is not JSON, or some of its text is not Unicode") from None
    lessons = _section(content, "lessons", "list of questions", _is_questions)
    puzzles = _section(content, "puzzles", "score of integers", _is_score)
    return lessons, puzzles


def _section(content: Any, name: str, expected: str, is_valid: Callable[[Any], bool]) -> dict[str, Any]:
    """The lessons or puzzles of a progress file by name; raises InvalidProgress if an entry is not valid."""
    section = content.get(name) if isinstance(content, dict) else None
    if not isinstance(section, dict):
        raise InvalidProgress(f"the file has no object named {name!r}")
    for key, value in section.items():
        if not is_valid(value):
            raise InvalidProgress(f"{key[:60]!r} in {name!r} is not a {expected}")
    return section


def _is_questions(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(words, str) for words in value)


def _is_score(value: Any) -> bool:
    return isinstance(value, dict) and all(type(number) is int and 0 <= number < MOST for number in value.values())


def read_progress() -> Progress:
    """The saved progress; empty if no file exists yet, or if the file was invalid and is now renamed."""
    progress = Progress(data_folder() / "progress.json")
    try:
        try:
            progress.answered, progress.solved = _read(progress.file)
        except FileNotFoundError:
            pass
        except InvalidProgress as reason:
            progress.set_aside(reason)
    except OSError as error:
        progress.trouble = f"cannot read {progress.file}: {error.strerror or error}"
    return progress
