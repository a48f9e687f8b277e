"""What a lesson says about wrong answers: a hint for each question, and a sentence for each typical wrong answer."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from functools import cache
from types import MappingProxyType

from attrs import field, frozen

from ..files.shipped import folder


@frozen
class Feedback:
    """The hint of a question, and by wrong answer what a learner thought who gave it."""

    hint: str = ""
    wrong: Mapping[str, str] = field(factory=dict)


def feedback_on(words: str) -> Feedback:
    """The feedback on a question of a lesson, by its words; empty for a question without feedback."""
    return _feedback().get(words, Feedback())


@cache
def _feedback() -> Mapping[str, Feedback]:
    """The feedback of all lessons, from the files in `examples/lessons/feedback`."""
    questions = (
        question
        for path in sorted((folder() / "lessons" / "feedback").glob("*.toml"))
        for question in tomllib.loads(path.read_text(encoding="utf-8"))["question"]
    )
    return MappingProxyType({each["words"]: Feedback(each["hint"], each["wrong"]) for each in questions})
