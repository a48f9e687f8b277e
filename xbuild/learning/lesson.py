"""`ask` and `show`, of which lessons are made: a question that is answered before its program runs, and a picture."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cached_property
from typing import Any, Protocol

import attrs

from shape_inference import refuse
from shape_inference.escaping import in_html

from .. import running
from ..core.graph import Computation, Module, ModuleGroup
from ..traces import Trace
from .answers import is_right, mismatch, shown
from .claims import Claim, module_of, on_xla, outcome_of, rows_of

_DRAWN = (Computation, Module, ModuleGroup)

OPEN = ...
"""The guess of a question that is not answered yet, as lessons are handed out."""


@attrs.define(eq=False, slots=False)
class Question:
    """A question of a lesson, the guess, what computes the answer, and who decides it."""

    words: str
    guess: Any
    compute: Callable[[], Any] = attrs.field(repr=False)
    claim: Claim
    choices: tuple[str, ...] = ()

    @cached_property
    def truth(self) -> Any:
        """The answer: the program runs when it is asked for the first time."""
        return self.compute()

    @property
    def is_open(self) -> bool:
        return self.guess is OPEN

    def takes(self, guess: Any) -> bool:
        """Whether this guess is right."""
        return is_right(guess, self.truth, self.choices)

    def mismatch(self, guess: Any) -> str:
        """Why this guess is not of the kind or the count that is asked for; "" where it is."""
        return mismatch(guess, self.truth, self.choices)


class Session(Protocol):
    """What a lesson is done in: a terminal, a notebook, a page, the judging of a file."""

    def ask(self, question: Question) -> None:
        """Handle a question where the lesson has it."""

    def show(self, thing: Any) -> None:
        """Show a program, a verdict or a run."""


class Printed:
    """The session of a script or notebook: a guess is judged in print, and pictures are those of the notebook."""

    def __init__(self) -> None:
        self._waits = False

    def ask(self, question: Question) -> None:
        self._waits = question.is_open
        print(told(question))

    def show(self, thing: Any) -> None:
        """Show a thing, unless the question before it has no guess yet."""
        if self._waits:
            print("  (and a picture, once there is a guess)")
            return
        ipython = sys.modules.get("IPython")
        if ipython is None or ipython.get_ipython() is None:
            print(as_text(thing))
        else:
            from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]

            display(HTML(as_html(thing)))  # type: ignore[no-untyped-call,unused-ignore]


_PRINTED = Printed()
_session: ContextVar[Session] = ContextVar("session", default=_PRINTED)


@contextmanager
def asked_in(session: Session) -> Iterator[None]:
    """Inside, `ask` and `show` go to this session."""
    token = _session.set(session)
    try:
        yield
    finally:
        _session.reset(token)


def ask(
    question: str,
    guess: Any,
    truth: Any,
    *inputs: Any,
    of: Callable[[Any], Any] | None = None,
    claim: Claim | None = None,
    choices: Sequence[str] = (),
) -> None:
    """Ask a question; once there is a guess, compute the answer, judge the guess and say who decides.

    `truth` is a Computation with its arguments as `inputs`; a Module or ModuleGroup with the arguments of each device;
    HLO text, whose answer is "accepted" or "refused"; or a function, called with the inputs, which must have a `claim`.
    Of a program the claim is that XLA:CPU gives the same. `of` picks from the result what is asked for. `guess` is
    `...` until the question is answered. Raises: invalid_attribute where a function comes without a claim.

    >>> import xbuild as xb
    >>> double = xb.computation(xb.f32[2])(lambda x: x + x)
    >>> ask("[1, 2] doubled?", [2, 4], double, [1.0, 2.0])
    [1, 2] doubled?
      yours  [2, 4]   right
      XLA:CPU gives the same.
    """
    if claim is None:
        if not isinstance(truth, Computation | Module | ModuleGroup | str):
            refuse("invalid_attribute", "ask: an answer that no program gives wants a claim: claim=about_xbuild(...)")
        claim = on_xla(truth, *inputs)
    pick = of or (lambda result: result)
    _session.get().ask(Question(question, guess, lambda: pick(_answer(truth, inputs)), claim, tuple(choices)))


def show(thing: Any) -> None:
    """Show a program or a verdict as a picture, a run as a step page; in a terminal, as text. Other things are text."""
    _session.get().show(thing)


def _answer(truth: Any, inputs: tuple[Any, ...]) -> Any:
    if isinstance(truth, str):
        return outcome_of(truth)
    if isinstance(truth, Computation):
        return running.evaluate(truth, *inputs)
    if isinstance(truth, Module | ModuleGroup):
        return running.execute(module_of(truth), rows_of(truth, inputs))
    return truth(*inputs)


def told(question: Question) -> str:
    """The question and the guess, judged; of an open question how to answer it."""
    lines = [question.words, *lettered(question)]
    if question.is_open:
        return "\n".join([*lines, "  no guess yet: put one in place of the three dots, and run this again"])
    right = question.takes(question.guess)
    why = "" if right else question.mismatch(question.guess)
    lines.append(f"  yours  {shown(question.guess)}   {'right' if right else 'not so'}{why and f': {why}'}")
    return "\n".join([*lines, *([] if right else [f"  the answer  {shown(question.truth)}"]), f"  {question.claim}"])


def lettered(question: Question) -> list[str]:
    """The choices of a question, each with its letter."""
    return [f"  {chr(ord('a') + number)}) {choice}" for number, choice in enumerate(question.choices)]


def as_text(thing: Any) -> str:
    """What is shown, for a terminal: a program as a tree, a verdict as its report, a run by what each device did."""
    from ..pictures import viz

    if isinstance(thing, Trace):
        return f"{thing}\n(the page of this lesson, by --page, shows the run step by step)"
    return str(viz(thing)).rstrip() if isinstance(thing, _DRAWN) else str(thing)


def as_html(thing: Any) -> str:
    """What is shown, for a page: a picture, or a step page in a frame."""
    from ..checking import Verdict
    from ..pages import framed
    from ..pictures import viz

    if isinstance(thing, Trace):
        return framed(thing)
    return viz(thing)._repr_html_() if isinstance(thing, (*_DRAWN, Verdict)) else f"<pre>{in_html(str(thing))}</pre>"
