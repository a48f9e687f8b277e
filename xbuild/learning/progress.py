"""What a learner has done, in the user's data folder: the questions answered rightly, and the puzzles solved."""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from attrs import define, field

from ..files.results import replacing


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

    def note(self, lesson: str, question: str) -> None:
        """Keep that a question of a lesson was answered rightly."""
        known = self.answered.setdefault(lesson, [])
        if question not in known:
            known.append(question)
            self._keep()

    def solve(self, puzzle: str, score: dict[str, int]) -> None:
        """Keep the score of a solution of a puzzle."""
        self.solved[puzzle] = score
        self._keep()

    def _keep(self) -> None:
        text = json.dumps({"lessons": self.answered, "puzzles": self.solved}, indent=1, ensure_ascii=False)
        try:
            self.file.parent.mkdir(parents=True, exist_ok=True)
            with replacing(self.file) as file:
                file.write(f"{text}\n".encode())
        except OSError as error:
            self.trouble = f"{self.file}: {error.strerror or error}; what you have done is not kept"


def progress() -> Progress:
    """The progress as it is kept; empty where there is none yet."""
    found = Progress(data_folder() / "progress.json")
    try:
        kept: Any = json.loads(found.file.read_text(encoding="utf-8"))
        found.answered = {str(name): [*map(str, words)] for name, words in kept["lessons"].items()}
        found.solved = {
            str(name): {str(k): int(v) for k, v in score.items()} for name, score in kept["puzzles"].items()
        }
    except FileNotFoundError:
        pass
    except (OSError, ValueError, KeyError, TypeError, AttributeError):
        found.trouble = f"{found.file} cannot be read; what you do now is written over it"
    return found
