"""Each puzzle: the stub fails, the solution that ships passes with the score as stated, wrong solutions are refused."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import xbuild as xb
from tests.learning.wrong_solutions import TYPE, WRONG
from xbuild.learning import Puzzle, shelf
from xbuild.learning.puzzle import judgement_text

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
    found = stated(number).judge(shelf.solution_in(PUZZLES[number].path))
    assert not found.is_solved
    assert judgement_text(stated(number), found) == "not solved yet: the solution is not filled in yet"


@pytest.mark.parametrize("number", NUMBERS)
def test_the_solution_has_the_best_score(number: int) -> None:
    puzzle = stated(number)
    found = puzzle.judge(solution(number))
    assert found.fault == ""
    assert {name: found.score[name] for name in puzzle.best} == puzzle.best
    assert judgement_text(puzzle, found).startswith("solved")


def other(value: Any) -> Any:
    """A result of the same shape with other numbers."""
    if isinstance(value, tuple | list):
        return type(value)(other(each) for each in value)
    return value + xb.constant(value.builder, value.shape.dtype.dtype.type(1))


@pytest.mark.parametrize("number", [n for n in NUMBERS if n < 19])
def test_a_wrong_solution_is_refused(number: int) -> None:
    """One more than the right numbers is refused: for its values where add is allowed, else for its ops."""
    found = stated(number).judge(lambda *values: other(solution(number)(*values)))
    assert not found.is_solved
    assert "spec" in found.fault or "this puzzle does not allow" in found.fault


@pytest.mark.parametrize("number", [n for n in NUMBERS if n < 19])
def test_wrong_values_are_refused_by_the_spec(number: int) -> None:
    """The same without the list of ops, so that the values decide."""
    puzzle = stated(number)
    free = Puzzle(spec=puzzle.spec, shapes=puzzle.shapes, devices=puzzle.devices, draw=puzzle.draw)
    found = free.judge(lambda *values: other(solution(number)(*values)))
    assert "  yours  " in found.fault
    assert "  spec   " in found.fault


@pytest.mark.parametrize("number", NUMBERS)
def test_solutions_that_learners_get_wrong_are_refused(number: int) -> None:
    puzzle = stated(number)
    assert len(WRONG[number]) >= 5
    for place, (attempt, words) in enumerate(WRONG[number]):
        found = puzzle.judge(attempt)
        assert found.fault, place
        assert words in found.fault, place
        assert (TYPE in found.fault) == (words == TYPE), place


@pytest.mark.parametrize("number", [n for n in NUMBERS if n < 19])
def test_a_result_of_another_type_is_refused(number: int) -> None:
    """The right numbers as pred, f32 or bf16, as one element of a tuple, or with one more dimension."""
    puzzle = stated(number)
    free = Puzzle(spec=puzzle.spec, shapes=puzzle.shapes, devices=puzzle.devices, draw=puzzle.draw)
    kind = xb.f32 if puzzle.shapes[0].dtype is xb.s32 else xb.s32
    for change in (
        lambda y: xb.convert(y, xb.pred), lambda y: xb.convert(y, kind), lambda y: xb.convert(y, xb.bf16),
        lambda y: xb.tuple_([y]), lambda y: xb.reshape(y, [1, *y.shape.dims]),
    ):  # fmt: skip
        found = free.judge(lambda *values, change=change: change(solution(number)(*values)))
        assert "wrong shape or type" in found.fault


def test_a_wrong_shape_is_reported_as_two_shapes() -> None:
    puzzle = Puzzle(spec=lambda x: x.reshape(8, 30), shapes=[xb.f32[240]])
    assert puzzle.judge(lambda x: xb.reshape(x, [30, 8])).fault == (
        "the result has the wrong shape or type:\n  yours  f32[30,8]\n  spec   f32[8,30]"
    )
    found = puzzle.judge(lambda x: xb.reshape(x + 1.0, [8, 30]))
    assert "240 of 240 numbers are wrong; the first is element [0, 0]:" in found.fault
    assert len(found.fault) < 120


WRONG_PLACES = [
    (Puzzle(spec=lambda x: x, shapes=[xb.s32[2, 2]]), lambda x: x + 1, "[0, 0], [0, 1]"),
    (Puzzle(spec=lambda xs: xs, shapes=[xb.s32[()]], devices=2), lambda x: x + 1, "device 0, device 1"),
    (Puzzle(spec=lambda xs: xs, shapes=[xb.s32[1]], devices=2), lambda x: x + 1, "device 0 [0], device 1 [0]"),
    (Puzzle(spec=lambda x: (x, x), shapes=[xb.s32[1]]), lambda x: xb.tuple_(x, x + 1), "result 1 [0]"),
    (Puzzle(spec=lambda x: x, shapes=[xb.s32[9]]), lambda x: x + 1, "[0], [1], [2], [3], [4], [5] and 3 more"),
    (Puzzle(spec=lambda x: x / x, shapes=[xb.f32[3]], draw=lambda _: [[np.float32([np.nan, 1, 2])]]),
     lambda x: x, "[2]"),
]  # fmt: skip


@pytest.mark.parametrize(("puzzle", "attempt", "places"), WRONG_PLACES)
def test_the_places_of_wrong_numbers_are_listed(puzzle: Puzzle, attempt: Any, places: str) -> None:
    last = puzzle.judge(attempt).fault.splitlines()[-1]
    assert last.startswith(f"  wrong  {places}")


def test_one_wrong_number_has_no_place() -> None:
    found = Puzzle(spec=lambda x: x, shapes=[xb.s32[()]]).judge(lambda x: x + 1).fault
    assert found.splitlines()[-1].startswith("  spec   ")


def test_a_text_for_other_devices_or_arguments_is_refused() -> None:
    puzzle = Puzzle(spec=lambda xs: [sum(xs) for _ in xs], shapes=[xb.s32[2]], devices=2)
    text = puzzle.task.write(xb.cross_replica_sum)
    assert puzzle.judge_text(text).is_solved
    assert "runs on 4 replicas and 1 partitions; expected 2 and 1" in puzzle.judge_text(
        text.replace("replica_count=2", "replica_count=4")
    ).fault  # fmt: skip
    assert "takes f32[2]; expected s32[2]" in puzzle.judge_text(text.replace("s32", "f32")).fault
    assert "syntax" in puzzle.judge_text("no program").fault


def test_a_report_about_a_text_names_the_lines_of_the_learner() -> None:
    puzzle = stated(18)
    text = puzzle.task.write(WRONG[18][0][0])
    assert "wrong_solutions.py:" in puzzle.judge_text(text).fault
    assert "<hlo>:" not in puzzle.judge_text(text).fault


OTHER_WRONG = [
    (14, lambda x: xb.all_reduce(x, xb.add), "this puzzle does not allow all_reduce"),
    (17, lambda x: xb.slice(xb.all_gather(x, 0, 4), [0, 0], [4, 1], [1, 1]), "  spec   "),
    (19, lambda: (0, "send to 1", "send to 2"), "deadlock"),
    (19, lambda: (1, "send to 0", "recv from 0"), "deadlock"),
    (19, lambda: (0, "send to 1", "recv from 2"), "'recv from 2' is not an edge of device 0: its chain is"),
    (19, lambda: (0, "recv from 1", "send to 2"), "'recv from 1' to 'send to 2' is not an edge of device 0"),
    (19, lambda: (3, "send to 0", "recv from 0"), "device 3 does not exist: expected 0, 1 or 2"),
    (19, lambda: (1, "send to 0"), "is not an edge: return (device, earlier, later)"),
    (20, lambda number: [f"{kind}{batch}" for batch in range(4) for kind in "FB"], "never holds 2"),
    (20, lambda number: [f"{kind}{batch}" for kind in "FB" for batch in range(4)], "at most 2"),
    (20, lambda number: ["F0", "F1", "B0", "F2", "B1", "F3", "B2", "B3"] if number == 0
     else [f"{kind}{batch}" for batch in range(4) for kind in "FB"], "deadlock"),
]  # fmt: skip


@pytest.mark.parametrize(("number", "attempt", "words"), OTHER_WRONG)
def test_what_is_wrong_is_said(number: int, attempt: Any, words: str) -> None:
    assert words in stated(number).judge(attempt).fault


def argmax(function: Any, start: int = -(2**31)) -> Any:
    """A solution of puzzle 6 by a function of two pairs."""
    return lambda x: xb.reduce(
        [x, xb.iota(x.builder, xb.s32[8], 0)], [np.int32(start), np.int32(8)], function, [0]
    )[1]  # fmt: skip


def taken(first: Any, a: Any, i: Any, b: Any, j: Any) -> Any:
    return xb.select(first, a, b), xb.select(first, i, j)


def first_of_equal(a: Any, i: Any, b: Any, j: Any) -> Any:
    return taken(xb.or_(xb.gt(a, b), xb.and_(xb.eq(a, b), xb.lt(i, j))), a, i, b, j)


FOLDS = [
    (argmax(lambda a, i, b, j: taken(xb.ge(a, b), a, i, b, j), -(2**31)), ""),
    (argmax(lambda a, i, b, j: taken(xb.gt(a, b), a, i, b, j)), ""),
    (argmax(lambda a, i, b, j: taken(xb.le(a, b), b, j, a, i)), ""),
    (argmax(first_of_equal, 0), "  spec   "),
    (argmax(first_of_equal, -100), "  spec   "),
    (argmax(lambda a, i, b, j: (xb.maximum(a, b), xb.select(xb.gt(b, a), j, i))), ""),
]


@pytest.mark.parametrize(("attempt", "words"), FOLDS)
def test_an_argmax_of_one_order_is_refused(attempt: Any, words: str) -> None:
    found = stated(6).judge(attempt)
    assert words in found.fault
    assert "  spec   " in found.fault or "in any order" in found.fault


def test_a_fold_that_is_right_in_one_order_is_told_with_two_elements() -> None:
    """Of s32 above its smallest, `keep a unless b is larger` is right from the left, and only from there."""
    puzzle = Puzzle(spec=lambda x: np.int32(np.argmax(x)), shapes=[xb.s32[8]], any_order=True)
    found = puzzle.judge(argmax(lambda a, i, b, j: taken(xb.ge(a, b), a, i, b, j)))
    assert ": XLA reduces in any order" in found.fault
    assert puzzle.judge(argmax(first_of_equal)).is_solved
    plain = Puzzle(spec=lambda x: np.int32(3 * x[0]), shapes=[xb.s32[1]], any_order=True)
    by_halves = plain.judge(lambda x: xb.reduce(x, np.int32(0), lambda a, b: (a + b) * 3, [0]))
    assert "from the left" in by_halves.fault


def test_a_send_before_the_recv_deadlocks_in_the_swap() -> None:
    def attempt(x: Any) -> Any:
        both = [(0, 1), (1, 0)]
        sent = xb.send(x, channel_id=1, source_target_pairs=both)
        posted = xb.recv(xb.send_done(sent, channel_id=1), x.shape, channel_id=1, source_target_pairs=both)
        return xb.recv_done(posted, channel_id=1)[0]

    assert "deadlock" in stated(18).judge(attempt).fault


def test_too_many_bytes_are_told_with_the_limit() -> None:
    def attempt(x: Any) -> Any:
        whole = xb.all_gather(x, 0, 4)
        me = xb.convert(xb.replica_id(x.builder), xb.s32)
        return xb.dynamic_slice(whole, [0, me], [4, 1])

    puzzle = stated(17)
    loose = Puzzle(
        spec=puzzle.spec, shapes=puzzle.shapes, devices=4, limits={"link_bytes": 11}, best={"link_bytes": 99}
    )
    assert loose.judge(attempt).fault == "the result is right, but 48 bytes sent exceed the limit of 11"


def test_a_better_score_is_judgement_text() -> None:
    puzzle = Puzzle(spec=lambda x: x + x, shapes=[xb.s32[4]], best={"flops": 5})
    assert judgement_text(puzzle, puzzle.judge(lambda x: x + x)) == (
        "solved: 4 FLOPs (better than the best known: 5 FLOPs)"
    )  # fmt: skip
    worse = puzzle.judge(lambda x: (x + x) + np.int32(0))
    assert judgement_text(puzzle, worse) == "solved: 8 FLOPs (best known: 5 FLOPs)"


def test_a_result_that_is_no_value_is_judgement_text() -> None:
    puzzle = Puzzle(spec=lambda x: x, shapes=[xb.s32[()]])
    assert "not solved yet" in judgement_text(puzzle, puzzle.judge(lambda x: "no value"))


def test_an_exception_of_the_solution_is_told_with_its_place() -> None:
    puzzle = Puzzle(spec=lambda x: x, shapes=[xb.s32[()]])
    found = puzzle.judge(lambda x: undefined)  # type: ignore[name-defined]  # noqa: F821
    assert "test_puzzles.py:" in found.fault
    assert found.fault.endswith("NameError: name 'undefined' is not defined")
