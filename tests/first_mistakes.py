"""The trial of the first mistakes: each program is run as it was typed, then as the message says.

`python -m tests.first_mistakes` writes docs/first_mistakes.md.
"""

from __future__ import annotations

import tomllib
import warnings
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from attrs import frozen

import xbuild as xb

ROOT = Path(__file__).parents[1]
LIST = ROOT / "tests" / "data" / "first_mistakes.toml"
DOCUMENT = ROOT / "docs" / "first_mistakes.md"
ARRAYS = {
    "X": np.array([[1, 2, 3], [4, 5, 6]], np.float32),
    "Y": np.array([[6, 5, 4], [3, 2, 1]], np.float32),
    "W": np.arange(12, dtype=np.float32).reshape(3, 4),
    "V": np.array([10, 20, 30], np.float32),
    "I": np.array([2, 0, 1], np.int32),
    "N": np.int32(2),
    "Z": np.array([[7, 8, 9], [1, 2, 3]], np.float32),
}


@frozen
class Mistake:
    """A program as a newcomer types it, what was meant, and how the message lets it be mended."""

    habit: str
    code: str
    meant: str
    wanted: str
    mended: str = ""
    says: tuple[str, ...] = ()
    replicas: int = 1


@frozen
class Outcome:
    """What a program gave: its result, or what was said instead of it or beside it."""

    result: Any = None
    said: str = ""

    def is_right(self, wanted: Any) -> bool:
        """Whether the result is what was meant, to the precision of half floats."""
        if self.result is None:
            return False
        pairs = zip(self.result, wanted, strict=True) if isinstance(wanted, tuple | list) else [(self.result, wanted)]
        return all(_is_same(given, meant) for given, meant in pairs)


def _is_same(given: Any, meant: Any) -> bool:
    if isinstance(meant, str):
        return bool(given == meant)
    return np.shape(given) == np.shape(meant) and bool(np.allclose(given, meant, rtol=1e-3, atol=1e-6))


@cache
def _list() -> dict[str, Any]:
    return tomllib.loads(LIST.read_text(encoding="utf-8"))


def mistakes() -> list[Mistake]:
    return [Mistake(**{**each, "says": tuple(each.get("says", ()))}) for each in _list()["mistake"]]


def wanted(mistake: Mistake) -> Any:
    """What was meant, in NumPy."""
    return eval(mistake.wanted, {"np": np, **ARRAYS})


def outcome(code: str, replicas: int) -> Outcome:
    """The result of a program after the prelude; an error, or a warning beside a result, is what was said."""
    space: dict[str, Any] = dict(ARRAYS)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        try:
            exec(compile(_list()["prelude"] + code, "<typed>", "exec"), space)
            return Outcome(_computed(space["builder"], space["result"], replicas), _warned(caught))
        except Exception as error:
            return Outcome(said=f"{type(error).__name__}: {error}")


def _warned(caught: list[warnings.WarningMessage]) -> str:
    return "\n".join(f"{each.category.__name__}: {each.message}" for each in caught)


def _computed(builder: xb.Builder, result: Any, replicas: int) -> Any:
    """A result; of a value the number of a run on all replicas, of which the first is taken."""
    if not isinstance(result, xb.Value):
        return result
    entry = builder.build(result)
    arguments = [*ARRAYS.values()][: len(entry.parameters)]
    module = xb.Module("typed", entry, num_replicas=replicas)
    return xb.execute(module, [arguments] * replicas)[0]


@frozen
class Trial:
    """A mistake with what it gave, and what its mending gave."""

    mistake: Mistake
    outcome: Outcome
    mended: Outcome | None

    @property
    def is_right(self) -> bool:
        """Whether the program gave what was meant, and nothing had to be said."""
        return not self.outcome.said and self.outcome.is_right(wanted(self.mistake))

    @property
    def is_mendable(self) -> bool:
        """Whether the message holds the words that mend the program, and the mended program is right."""
        if self.mended is None or self.mended.said or not self.mended.is_right(wanted(self.mistake)):
            return False
        return bool(self.mistake.says) and all(words in self.outcome.said for words in self.mistake.says)


def tried(mistake: Mistake) -> Trial:
    """The trial of one mistake."""
    mended = outcome(mistake.mended, mistake.replicas) if mistake.mended else None
    return Trial(mistake, outcome(mistake.code, mistake.replicas), mended)


_HEAD = """# First mistakes

This page lists {count} programs as people with NumPy, JAX and XlaBuilder habits would type them. We chose sixty before
trying any of them; a later trial found the rest. Either a program does what was meant, or its message says what to
type instead: {right} of the {count} are right as typed, {mendable} can be fixed by following only the message, and
{silent} silently compute a different number. `python -m tests.first_mistakes` writes this page, and a test checks that
it is up to date. [array_functions.md](array_functions.md) lists the names that xbuild shares with NumPy and jax.nn, and
the rules for types.

The programs begin with these lines. If the result is a value, its program is built and run.

```python
{prelude}
```
"""


def document() -> str:
    """The text of docs/first_mistakes.md: each mistake, what xbuild says, and what to type."""
    trials = [tried(mistake) for mistake in mistakes()]
    counts = {
        "right": sum(trial.is_right for trial in trials),
        "mendable": sum(trial.is_mendable for trial in trials),
        "silent": sum(not trial.is_right and not trial.outcome.said for trial in trials),
        "count": len(trials),
    }
    head = _HEAD.format(prelude=_list()["prelude"].strip(), **counts)
    table = ["| | mistake | xbuild says | type |", "|---|---|---|---|"]
    return "\n".join([head, *table, *(_row(number, trial) for number, trial in enumerate(trials, 1)), ""])


def _row(number: int, trial: Trial) -> str:
    mistake = trial.mistake
    said = "right as typed" if trial.is_right else "<br>".join(map(_escaped, _decisive(trial)))
    mended = "" if trial.is_right else _code(mistake.mended)
    return f"| {number} | {_code(mistake.code)}<br>*{mistake.meant}* | {said} | {mended} |"


def _decisive(trial: Trial) -> list[str]:
    """The first line of a message, and the lines with the words that mend."""
    first, *rest = trial.outcome.said.splitlines()
    return [first, *(line.strip() for line in rest if any(words in line for words in trial.mistake.says))]


def _code(text: str) -> str:
    return "<br>".join(f"`{_piped(line)}`" for line in text.replace("    ", "\u00a0\u00a0").splitlines())


def _piped(text: str) -> str:
    return text.replace("|", "\\|")


def _escaped(text: str) -> str:
    """Text of a message in a cell of a table."""
    for mark in "\\`*_<":
        text = text.replace(mark, f"\\{mark}")
    return _piped(text)


if __name__ == "__main__":
    DOCUMENT.write_text(document(), encoding="utf-8")
