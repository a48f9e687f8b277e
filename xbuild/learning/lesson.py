"""The parts of lessons: `ask`, a question to answer before its program runs; `show`, a picture; and claims.

Sections:

    Claims: who decides an answer
    Feedback: what a lesson says about wrong answers
    Questions
"""

from __future__ import annotations

import contextlib
import io
import sys
import tomllib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from functools import cache, cached_property
from types import MappingProxyType
from typing import Any, Literal, Protocol, TypeAlias

import attrs
from attrs import frozen

from shape_inference import XbuildError, refuse
from shape_inference.escaping import in_html

from .. import running
from ..core.graph import Computation, Module, ModuleGroup
from ..files.shipped import folder
from ..text.reader import parse_hlo
from ..traces import Trace
from .answers import answer_text, is_right, is_same_answer, mismatch
from .changing import Changeable

# ----------------------------------------------------------------------------
# Claims: who decides an answer

ACCEPTED, REFUSED = "accepted", "refused"
"""The two answers to the question whether xbuild accepts HLO text."""

Engine: TypeAlias = Literal["xla", "stablehlo", "hang", "jax", "choice", "xbuild"]
"""Who decides an answer: an engine that agrees, a choice that the documentation leaves open, or xbuild itself."""

_SENTENCES = {
    "xla": "XLA:CPU agrees.",
    "stablehlo": "StableHLO's reference interpreter agrees.",
    "hang": "XLA:CPU waits for devices that never arrive, then aborts its process.",
    "jax": "JAX agrees.",
    "choice": "The documentation leaves this open; xbuild chose {}.",
    "xbuild": "{}.",
}


@frozen
class Claim:
    """Who decides an answer; an engine runs `program` on `inputs`, a row of arguments for each device.

    If the program is HLO text, the claim is that the engine accepts or refuses the text as xbuild does.
    """

    engine: Engine
    words: str = ""
    program: Module | ModuleGroup | str | None = None
    inputs: tuple[tuple[Any, ...], ...] = ()

    def __str__(self) -> str:
        sentence = _SENTENCES[self.engine].format(self.words)
        if isinstance(self.program, str):
            return f"XLA:CPU {'accepts' if outcome_of(self.program) == ACCEPTED else 'refuses'} the program too."
        return f"{sentence} XLA:CPU agrees." if self.engine == "choice" and self.program is not None else sentence

    @property
    def is_of_an_engine(self) -> bool:
        """Whether a test runs the program on another engine."""
        return self.program is not None


def on_xla(program: Computation | Module | ModuleGroup | str, *inputs: Any) -> Claim:
    """The claim that XLA:CPU agrees on these inputs: the arguments of a computation, or a row for each device."""
    return _engine_claim("xla", program, inputs)


def on_stablehlo(program: Computation | Module | ModuleGroup | str, *inputs: Any) -> Claim:
    """The claim that StableHLO's reference interpreter agrees, for programs that XLA:CPU does not run."""
    return _engine_claim("stablehlo", program, inputs)


def on_jax() -> Claim:
    """The claim that JAX agrees, for answers that JAX decides before it makes an XLA program."""
    return Claim("jax")


def hangs_on_xla(program: Module, *inputs: Any) -> Claim:
    """The claim that XLA:CPU starts this program on these inputs and never finishes."""
    return _engine_claim("hang", program, inputs)


def chosen(words: str, program: Computation | Module | ModuleGroup | None = None, *inputs: Any) -> Claim:
    """The statement that the documentation leaves the answer open: what xbuild and, for a program, XLA:CPU chose."""
    return Claim("choice", words) if program is None else _engine_claim("choice", program, inputs, words)


def about_xbuild(words: str) -> Claim:
    """The statement that the answer is about xbuild itself, such as a number that it counts or text that it prints."""
    return Claim("xbuild", words.rstrip("."))


def _engine_claim(engine: Engine, program: Any, inputs: tuple[Any, ...], words: str = "") -> Claim:
    if isinstance(program, str):
        return Claim(engine, words, program)
    return Claim(engine, words, module_of(program), rows_of(program, inputs))


def outcome_of(text: str) -> str:
    """Whether xbuild accepts HLO text: ACCEPTED or REFUSED."""
    try:
        parse_hlo(text)
    except XbuildError:
        return REFUSED
    return ACCEPTED


def module_of(program: Computation | Module | ModuleGroup) -> Module | ModuleGroup:
    """The program as a module; a computation is the program of one device."""
    return Module(program.name, program) if isinstance(program, Computation) else program


def rows_of(program: Computation | Module | ModuleGroup, inputs: tuple[Any, ...]) -> tuple[tuple[Any, ...], ...]:
    """The arguments of each device; the row of a device with one parameter may be that argument itself."""
    if isinstance(program, Computation):
        return (inputs,)
    entries = [
        (program if isinstance(program, Module) else program.modules[device]).entry
        for device in range(program.num_devices)
    ]
    pairs = zip(entries, inputs or ((),) * len(entries), strict=True)
    return tuple((row,) if len(entry.parameters) == 1 else tuple(row) for entry, row in pairs)


# ----------------------------------------------------------------------------
# Feedback: what a lesson says about wrong answers


@frozen
class Feedback:
    """The hint of a question, and by wrong answer what a learner thought who gave it."""

    hint: str = ""
    wrong: Mapping[str, str] = attrs.field(factory=dict)


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


# ----------------------------------------------------------------------------
# Questions

_DRAWN = (Computation, Module, ModuleGroup)

OPEN = ...
"""The guess of a question without an answer, as in the shipped lessons."""


@attrs.define(eq=False, slots=False)
class Question:
    """A question of a lesson: its words, the guess, the function that computes the answer, and the claim."""

    words: str
    guess: Any
    compute: Callable[[], Any] = attrs.field(repr=False)
    claim: Claim
    choices: tuple[str, ...] = ()
    changeable: Changeable | None = None
    printed: str = attrs.field(default="", init=False)

    @property
    def feedback(self) -> Feedback:
        """The hint, and the sentences about typical wrong answers."""
        return feedback_on(self.words)

    @cached_property
    def truth(self) -> Any:
        """The answer; the program runs when this is first read. What it prints may state the answer: see `printed`."""
        with contextlib.redirect_stdout(io.StringIO()) as out:
            answer = self.compute()
        self.printed = out.getvalue().rstrip()
        return answer

    @property
    def is_open(self) -> bool:
        return self.guess is OPEN

    @property
    def is_given_up(self) -> bool:
        """Whether the guess is None, with which a learner asks for the answer."""
        return self.guess is None

    def accepts(self, guess: Any) -> bool:
        """Whether this guess is right."""
        return guess is not None and is_right(guess, self.truth, self.choices)

    def comment(self, guess: Any) -> str:
        """A sentence about a wrong guess: what the learner thought, or that it has the wrong kind or number of answers.

        It is empty if the guess is neither typical nor of the wrong kind.
        """
        wrong = self.feedback.wrong.items()
        typical = next((why for other, why in wrong if is_same_answer(guess, other, self.choices)), "")
        if typical:
            return typical
        reason = mismatch(guess, self.truth, self.choices)
        return f"{reason[0].upper()}{reason[1:]}." if reason else ""


class Session(Protocol):
    """The way in which a lesson runs: in a terminal, in a notebook, as a page, or for grading a file."""

    def ask(self, question: Question) -> None:
        """Handle a question when the lesson reaches it."""

    def show(self, thing: Any) -> None:
        """Show a program, a verdict or a run."""


class PrintSession:
    """The session of a script or notebook: it prints the grade of each guess, and shows pictures in a notebook."""

    def __init__(self) -> None:
        self._waits = False

    def ask(self, question: Question) -> None:
        self._waits = question.is_open
        print(question_text(question))

    def show(self, thing: Any) -> None:
        """Show a thing, unless the question before it has no guess yet."""
        if self._waits:
            print("  (a picture follows after you answer)")
            return
        ipython = sys.modules.get("IPython")
        if ipython is None or ipython.get_ipython() is None:
            print(as_text(thing))
        else:
            from IPython.display import HTML, display  # type: ignore[import-not-found,unused-ignore]

            display(HTML(as_html(thing)))  # type: ignore[no-untyped-call,unused-ignore]


_PRINT_SESSION = PrintSession()
_session: ContextVar[Session] = ContextVar("session", default=_PRINT_SESSION)


@contextmanager
def session(current: Session) -> Iterator[None]:
    """Inside this context, `ask` and `show` call this session."""
    token = _session.set(current)
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
    """Ask a question; if it has a guess, compute the answer, grade the guess and print the claim.

    `truth` is one of: a Computation, with its arguments as `inputs`; a Module or ModuleGroup, with the arguments of
    each device; HLO text, whose answer is "accepted" or "refused"; a function, which is called with the inputs and
    needs a `claim`. For a program, the default claim is that XLA:CPU agrees. `of` selects the answer from the result.
    `guess` is `...` until you answer the question. Raises: invalid_attribute if a function has no claim.

    >>> import xbuild as xb
    >>> double = xb.computation(xb.f32[2])(lambda x: x + x)
    >>> ask("[1, 2] doubled?", [2, 4], double, [1.0, 2.0])
    [1, 2] doubled?
      yours  [2, 4]   right
      XLA:CPU agrees.
    """
    if claim is None:
        if not isinstance(truth, Computation | Module | ModuleGroup | str):
            refuse(
                "invalid_attribute",
                "ask: an answer that no program computes needs a claim; pass claim=about_xbuild(...)",
            )
        claim = on_xla(truth, *inputs)
    pick = of or (lambda result: result)
    changeable = _changeable(truth, inputs)
    _session.get().ask(
        Question(question, guess, lambda: pick(_answer(truth, inputs)), claim, tuple(choices), changeable)
    )


def run_program(truth: Any, *inputs: Any, of: Callable[[Any], Any] | None = None) -> None:
    """Run what a question runs, and print the value of each instruction and the result; `of` selects from the result.

    >>> import xbuild as xb
    >>> run_program(xb.computation(xb.f32[2])(lambda x: xb.add(x, x, name="sum")), [1.0, 2.0])
    parameter.1  [1, 2]
    sum          [2, 4]
    """
    changeable = _changeable(truth, inputs)
    if changeable is not None:
        print("\n".join(changeable.run(changeable.rows)))
    if changeable is None or of is not None:
        result = _answer(truth, inputs)
        print(answer_text(result if of is None else of(result)))


def _changeable(truth: Any, inputs: tuple[Any, ...]) -> Changeable | None:
    """The program that computes the answer, if it takes arrays that a learner can change."""
    program = module_of(truth) if isinstance(truth, Computation | Module) else None
    if not isinstance(program, Module) or not program.entry.parameters:
        return None
    return Changeable(program, rows_of(truth, inputs))


def show(thing: Any) -> None:
    """Show a program or a verdict as a picture, a run as a step page, other things as text; a terminal shows text."""
    _session.get().show(thing)


def _answer(truth: Any, inputs: tuple[Any, ...]) -> Any:
    if isinstance(truth, str):
        return outcome_of(truth)
    if isinstance(truth, Computation):
        return running.evaluate(truth, *inputs)
    if isinstance(truth, Module | ModuleGroup):
        return running.execute(module_of(truth), rows_of(truth, inputs))
    return truth(*inputs)


def question_text(question: Question) -> str:
    """The question, its choices and its grade."""
    return "\n".join([question.words, *lettered_choices(question), grade_text(question)])


def grade_text(question: Question) -> str:
    """The grade of a question's guess, or instructions for answering an open question."""
    if question.is_open:
        return "  not answered yet: replace the three dots with your answer, and run this again"
    if question.is_given_up:
        return "\n".join(
            [f"  the answer  {answer_text(question.truth)}", *_printed_lines(question), f"  {question.claim}"]
        )
    yours = f"  yours  {answer_text(question.guess)}"
    if question.accepts(question.guess):
        return "\n".join([f"{yours}   right", *_printed_lines(question), f"  {question.claim}"])
    lines = [
        f"{yours}   wrong",
        question.comment(question.guess),
        question.feedback.hint and f"Hint: {question.feedback.hint}",
    ]
    return "\n  ".join([*filter(None, lines), "to see the answer, replace your guess with None"])


def _printed_lines(question: Question) -> list[str]:
    return [f"  {line}".rstrip() for line in question.printed.splitlines()]


def lettered_choices(question: Question) -> list[str]:
    """The choices of a question, each with its letter."""
    return [f"  {chr(ord('a') + number)}) {choice}" for number, choice in enumerate(question.choices)]


def as_text(thing: Any) -> str:
    """A thing as text for a terminal: a program as a tree, a verdict as a report, a run as a summary."""
    from ..pictures import viz

    if isinstance(thing, Trace):
        return f"{thing}\n(to see the run step by step, write this lesson as a page: --page)"
    return str(viz(thing)).rstrip() if isinstance(thing, _DRAWN) else str(thing)


def as_html(thing: Any) -> str:
    """A thing as HTML for a page: a picture, or a step page in a frame."""
    from ..checking import Verdict
    from ..pages import framed
    from ..pictures import viz

    if isinstance(thing, Trace):
        return framed(thing)
    return viz(thing)._repr_html_() if isinstance(thing, (*_DRAWN, Verdict)) else f"<pre>{in_html(str(thing))}</pre>"
