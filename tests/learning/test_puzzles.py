"""Each puzzle: the stub fails, the solution that ships passes with the score as stated, wrong solutions are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from xbuild.learning import Puzzle, shelf
from xbuild.learning.puzzle import told

PUZZLES = shelf.entries("puzzles")
NUMBERS = [*PUZZLES]


def stated(number: int) -> Puzzle:
    return shelf.puzzle_of(PUZZLES[number].path)


def solution(number: int) -> Any:
    return shelf.solution_in(shelf.solution_of(number))


def test_there_are_twenty() -> None:
    assert [*range(1, 21)] == NUMBERS


@pytest.mark.parametrize("number", NUMBERS)
def test_form(number: int) -> None:
    puzzle = PUZZLES[number]
    assert puzzle.cells[0].text.startswith(f"# {number}. ")
    assert "solutions" not in puzzle.path.read_text()


@pytest.mark.parametrize("number", NUMBERS)
def test_the_stub_is_no_solution(number: int) -> None:
    found = stated(number).judged(shelf.solution_in(PUZZLES[number].path))
    assert not found.is_solved
    assert told(stated(number), found).startswith("not yet: ")


@pytest.mark.parametrize("number", NUMBERS)
def test_the_solution_has_the_best_score(number: int) -> None:
    puzzle = stated(number)
    found = puzzle.judged(solution(number))
    assert found.lacks == ""
    assert {name: found.score[name] for name in puzzle.best} == puzzle.best
    assert told(puzzle, found).startswith("solved")


def other(value: Any) -> Any:
    """A result of the same shape with other numbers."""
    if isinstance(value, tuple | list):
        return type(value)(other(each) for each in value)
    return value + xb.constant(value.builder, value.shape.dtype.dtype.type(1))


@pytest.mark.parametrize("number", [n for n in NUMBERS if n < 19])
def test_a_wrong_solution_is_refused(number: int) -> None:
    """One more than the right numbers is refused: for its values where add is allowed, else for its ops."""
    found = stated(number).judged(lambda *values: other(solution(number)(*values)))
    assert not found.is_solved
    assert "spec" in found.lacks or "not among the ops of this puzzle" in found.lacks


@pytest.mark.parametrize("number", [n for n in NUMBERS if n < 19])
def test_wrong_values_are_refused_by_the_spec(number: int) -> None:
    """The same without the list of ops, so that the values decide."""
    puzzle = stated(number)
    free = Puzzle(spec=puzzle.spec, shapes=puzzle.shapes, devices=puzzle.devices, draw=puzzle.draw)
    found = free.judged(lambda *values: other(solution(number)(*values)))
    assert "  yours  " in found.lacks
    assert "  spec   " in found.lacks


OTHER_WRONG = [
    (14, lambda x: xb.all_reduce(x, xb.add), "all_reduce: not among the ops"),
    (17, lambda x: xb.slice(xb.all_gather(x, 0, 4), [0, 0], [4, 1], [1, 1]), "  spec   "),
    (19, lambda: (0, "send to 1", "send to 2"), "deadlock"),
    (19, lambda: (1, "send to 0", "recv from 0"), "deadlock"),
    (20, lambda number: [f"{kind}{batch}" for batch in range(4) for kind in "FB"], "never holds 2"),
    (20, lambda number: [f"{kind}{batch}" for kind in "FB" for batch in range(4)], "at most 2"),
    (20, lambda number: ["F0", "F1", "B0", "F2", "B1", "F3", "B2", "B3"] if number == 0
     else [f"{kind}{batch}" for batch in range(4) for kind in "FB"], "deadlock"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "attempt", "words"), OTHER_WRONG)
def test_what_is_wrong_is_said(number: int, attempt: Any, words: str) -> None:
    assert words in stated(number).judged(attempt).lacks


def test_a_send_before_the_recv_deadlocks_in_the_swap() -> None:
    def attempt(x: Any) -> Any:
        both = [(0, 1), (1, 0)]
        sent = xb.send(x, channel_id=1, source_target_pairs=both)
        posted = xb.recv(xb.send_done(sent, channel_id=1), x.shape, channel_id=1, source_target_pairs=both)
        return xb.recv_done(posted, channel_id=1)[0]

    assert "deadlock" in stated(18).judged(attempt).lacks


def test_too_many_bytes_are_told_with_the_limit() -> None:
    def attempt(x: Any) -> Any:
        whole = xb.all_gather(x, 0, 4)
        me = xb.convert(xb.replica_id(x.builder), xb.s32)
        return xb.dynamic_slice(whole, [0, me], [4, 1])

    puzzle = stated(17)
    loose = Puzzle(
        spec=puzzle.spec, shapes=puzzle.shapes, devices=4, limits={"link_bytes": 11}, best={"link_bytes": 99}
    )
    assert loose.judged(attempt).lacks == "right, and 48 bytes sent; at most 11 are asked for"


def test_a_better_score_is_told() -> None:
    puzzle = Puzzle(spec=lambda x: x + x, shapes=[xb.s32[4]], best={"flops": 5})
    assert told(puzzle, puzzle.judged(lambda x: x + x)) == (
        "solved: 4 FLOPs (better than the best known: 5 FLOPs)"
    )  # fmt: skip
    worse = puzzle.judged(lambda x: (x + x) + np.int32(0))
    assert told(puzzle, worse) == "solved: 8 FLOPs (best known: 5 FLOPs)"


def test_a_result_that_is_no_value_is_told() -> None:
    puzzle = Puzzle(spec=lambda x: x, shapes=[xb.s32[()]])
    assert "not yet" in told(puzzle, puzzle.judged(lambda x: "no value"))


def test_an_exception_of_the_solution_is_told_with_its_place() -> None:
    puzzle = Puzzle(spec=lambda x: x, shapes=[xb.s32[()]])
    found = puzzle.judged(lambda x: undefined)  # type: ignore[name-defined]  # noqa: F821
    assert "test_puzzles.py:" in found.lacks
    assert found.lacks.endswith("NameError: name 'undefined' is not defined")
