"""Exercises and exams drawn from a seed: the same for the same seed, other ones for another, with right answers."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import pytest

from examples import exam
from tests.commands.command_line import usage, xbuild
from xbuild.learning import exercises
from xbuild.learning.answers import answer_text

ROOT = Path(__file__).parents[2]


def test_a_seed_decides_the_exercises() -> None:
    sheets = [exercises.sheet_text(f"{seed}") for seed in range(30)]
    assert len({*sheets}) == 30
    assert exercises.sheet_text("7") == sheets[7]
    kinds = {re.sub(r"\d+", "0", each.code) for seed in range(30) for each in exercises.draw_exercises(str(seed))}
    assert len(kinds) >= len(exercises._KINDS)


def test_a_seed_gives_the_same_exercises_in_every_process() -> None:
    code = "from xbuild.learning.exercises import sheet_text; print(sheet_text('alice'), end='')"
    command = [sys.executable, "-c", code]
    assert subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout == exercises.sheet_text("alice")
    first = exercises.draw_exercises("alice")[0]
    assert first.words == "x = [6, 7, 3]. What is the result?", "the draw is part of the format: grades depend on it"


@pytest.mark.parametrize("seed", range(12))
def test_answers_are_the_results_of_numpy_or_by_hand(seed: int) -> None:
    questions = exercises.questions_of(str(seed))
    assert len(questions) == exercises.COUNT
    for exercise, question in zip(exercises.draw_exercises(str(seed)), questions, strict=True):
        if (expected := by_hand(exercise)) is not None:
            assert question.accepts(expected), (exercise, answer_text(question.truth), expected)


def by_hand(exercise: exercises.Exercise) -> object:
    """The answer without xbuild, for kinds with a short rule; else None."""
    code, inputs = exercise.code, exercise.inputs
    if "collective_permute" in code:
        pairs = re.findall(r"\((\d), (\d)\)", code)
        held = dict.fromkeys(range(4), 0) | {int(target): inputs[int(source)] for source, target in pairs}
        return [held[device] for device in range(4)]
    if "all_reduce" in code and inputs:
        groups = [tuple(map(int, pair)) for pair in re.findall(r"\((\d), (\d)\)", code)]
        return [sum(inputs[other] for group in groups if device in group for other in group) for device in range(4)]
    if "dynamic_slice" in code:
        values, start = inputs
        size = int(re.findall(r"\[(\d)\]", code)[-1])
        begin = min(max(start, 0), 6 - size)
        return values[begin : begin + size]
    if "all_to_all" in code:
        return [*zip(*inputs, strict=True)]
    if "xb.divide" in code:
        return [int(numerator / denominator) for numerator, denominator in zip(*inputs, strict=True)]
    if "conditional" in code:
        return "ok" if code.endswith("num_replicas=2)") and "return total(x)" in code else "deadlock"
    return None


def test_a_sheet_is_filled_in_and_graded(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    written = xbuild("learn", "--exercises", "alice", "-o", file)
    assert (
        written.stdout
        == f"wrote {file}: exercises; fill them in, then run xbuild learn --exercises alice --check {file}\n"
    )
    assert "0 of 10 right" in xbuild("learn", "--exercises", "alice", "--check", file).stdout
    answers = iter([answer_text(question.truth) for question in exercises.questions_of("alice")])
    file.write_text(re.sub(r"(?<=', )\.\.\.(?=, )", lambda _: repr(next(answers)), file.read_text()))
    graded = xbuild("learn", "--exercises", "alice", "--check", file)
    assert (graded.exit_code, graded.stdout.count("right  ")) == (0, 10)
    other = usage(xbuild("learn", "--exercises", "bob", "--check", file))
    assert other.endswith("contains no exercise of bob: the exercises of each student are different")
    script = subprocess.run(
        [sys.executable, file], cwd=ROOT, capture_output=True, text=True, env={"PYTHONPATH": str(ROOT)}
    )
    assert script.stdout.count("   right") == 10
    assert "already exists" in usage(xbuild("learn", "--exercises", "alice", "-o", file))
    assert "is not a seed" in usage(xbuild("learn", "--exercises", "a\nb"))
    assert "used alone" in usage(xbuild("learn", 3, "--exercises", "1"))


def test_an_exam_has_no_answers_and_its_solutions_are_apart(tmp_path: Path) -> None:
    files = exam.write(tmp_path, ["alice", "bob"])
    assert [str(file.relative_to(tmp_path)) for file in files] == [
        "exams/alice.md", "exams/bob.md", "solutions/alice.md", "solutions/bob.md",
    ]  # fmt: skip
    questions, solutions = (file.read_text() for file in files[::2])
    assert questions.count("Answer:\n") == 10
    assert "claim" not in questions
    for number, question in enumerate(exercises.questions_of("alice"), 1):
        assert f"**{number}. " in questions
        assert f"\n\n    {answer_text(question.truth)}\n" in solutions
    with pytest.raises(SystemExit, match="is not a name"):
        exam.write(tmp_path, ["../eve"])
