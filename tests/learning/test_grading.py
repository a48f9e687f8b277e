"""Solutions that run in a process of their own, `xbuild grade`, and solutions that attack what grades them."""

from __future__ import annotations

import csv
import io
import platform
import re
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.commands.command_line import usage, xbuild
from xbuild.learning import sandbox, shelf, submission
from xbuild.learning.child import _MACHINES
from xbuild.learning.grading import PuzzleGrade, Try, find_solutions, grades_csv
from xbuild.learning.puzzle import PuzzleJudgement
from xbuild.learning.sandbox import TRUSTED, Sandbox, bubblewrap, container
from xbuild.learning.submission import judge_source

ONE_HOT = shelf.puzzle_of(shelf.entry("puzzles", 3).path)
RIGHT = shelf.solution_of(3).read_text(encoding="utf-8")
LINUX = pytest.mark.skipif(sys.platform != "linux", reason="limits of processes on Linux")
FILTERED = pytest.mark.skipif(
    platform.machine() not in _MACHINES or not Path("/proc/sys/kernel/seccomp/actions_avail").exists(),
    reason="the kernel has no filter of system calls",
)


def fault(source: str, box: Sandbox = TRUSTED) -> str:
    return judge_source(ONE_HOT, source, "solution.py", box).fault


@pytest.mark.parametrize("number", [13, 20])
def test_a_right_solution_has_the_score_that_this_process_finds(number: int) -> None:
    puzzle, path = shelf.puzzle_of(shelf.entry("puzzles", number).path), shelf.solution_of(number)
    found = judge_source(puzzle, path.read_text(encoding="utf-8"), path.name)
    assert found == puzzle.judge(shelf.solution_in(path))
    assert found.is_solved


PATCH = """
import builtins, sys
import numpy as np
import xbuild.learning.puzzle as puzzle
from xbuild.learning import shelf, submission
solved = puzzle.PuzzleJudgement(score={"flops": 0})
for name in ("judge", "judge_text", "_judge"):
    setattr(puzzle.Puzzle, name, lambda *arguments: solved)
puzzle._value_fault = puzzle._type_fault = puzzle.check = lambda *arguments: ""
submission.judge_source = lambda *arguments: solved
np.array_equal = lambda *arguments, **options: True
builtins.all = lambda each: True
puzzle.json.dumps = lambda each: '{"score": {}}'
def solution(x):
    return x
"""
SPECIFICATION = """
import gc, sys
def solution(x):
    from xbuild.learning.puzzle import Puzzle
    puzzles = [each for each in gc.get_objects() if isinstance(each, Puzzle)]
    frame, names = sys._getframe(), set()
    while frame:
        names |= {*frame.f_locals}
        frame = frame.f_back
    raise RuntimeError(f"{len(puzzles)} puzzles, {sorted(names & {'spec', 'puzzle', 'rows', 'expected'})}")
"""

ATTACKS = [
    ("patches the judge", PATCH, "wrong shape"),
    ("looks for the specification", SPECIFICATION, "RuntimeError: 0 puzzles, []"),
    ("ends its process", "import os; os._exit(0)", "ended without a result (exit status 0)"),
    ("writes its own answer", "import os; os.write(3, b'{\"text\": \"solved\"}'); os._exit(0)", "syntax"),
    ("writes its own score", "import os; os.write(3, b'{\"score\": {}, \"fault\": \"\"}'); os._exit(0)", "without a"),
    ("writes no JSON", "import os; os.write(3, b'[' * 90000); os._exit(0)", "ended without a result"),
    ("answers without end", "import os\nwhile True: os.write(3, b'x' * 9999)", "returned more than 1,048,576 bytes"),
    ("exits", "raise SystemExit(0)", "SystemExit: 0"),
    ("has no solution", "x = 1", "does not define a function `solution`"),
    ("does not parse", "def", "solution.py:1: SyntaxError: invalid syntax"),
    ("calls itself", "def solution(x): return solution(x)", "RecursionError"),
]  # fmt: skip


@pytest.mark.parametrize(("source", "words"), [attack[1:] for attack in ATTACKS], ids=[name for name, *_ in ATTACKS])
def test_an_attack_is_no_solution(source: str, words: str) -> None:
    assert words in fault(source)


LIMITED = [
    ("hangs", "while True: pass", 60.0, "took more than 2 s on the processor"),
    ("waits", "import time; time.sleep(99)", 3.0, "did not finish within 3 s"),
    ("prints without end", "while True: print('x' * 9999)", 60.0, "took more than 2 s on the processor"),
    ("takes memory", "x = bytearray(8 << 30)", 60.0, "MemoryError"),
]
CONFINED = {
    "os.fork()": "PermissionError",
    "subprocess.run(['true'])": "PermissionError",
    "os.kill(os.getppid(), 9)": "PermissionError",
    "resource.prlimit(os.getppid(), resource.RLIMIT_CPU, (1, 1))": "PermissionError",
    "socket.socket()": "PermissionError",
    "os.open('written', os.O_WRONLY | os.O_CREAT)": "PermissionError",
    "open('kept', 'w')": "PermissionError",
    "open('kept', 'a')": "PermissionError",
    "os.truncate('kept', 0)": "PermissionError",
    "os.remove('kept')": "PermissionError",
    "os.rename('kept', 'moved')": "PermissionError",
    "os.symlink('kept', 'link')": "PermissionError",
    "os.mkdir('folder')": "PermissionError",
    "os.chmod('kept', 0o777)": "PermissionError",
    "open(f'/proc/{os.getppid()}/mem', 'r+b')": "PermissionError",
    "len(open('kept').read())": "done",
}
"""What a solution may not do, and the error that it gets."""


@LINUX
@pytest.mark.slow
@pytest.mark.parametrize(("name", "source", "seconds", "words"), LIMITED, ids=[name for name, *_ in LIMITED])
def test_time_and_memory_are_limited(
    name: str, source: str, seconds: float, words: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(submission, "PROCESSOR_SECONDS", 2)
    monkeypatch.setattr(submission, "SECONDS", seconds)
    assert words in fault(source)


@LINUX
@FILTERED
def test_processes_signals_sockets_and_files_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    Path("kept").write_text("text")
    source = f"""
import os, resource, socket, subprocess
found = []
for attempt in {[*CONFINED]!r}:
    try:
        eval(attempt)
        found.append("done")
    except Exception as error:
        found.append(type(error).__name__)
raise ValueError(" ".join(found))
"""
    assert f"ValueError: {' '.join(CONFINED.values())}" in fault(source)
    assert [each.name for each in tmp_path.iterdir()] == ["kept"]
    assert Path("kept").read_text() == "text"


def test_a_program_that_does_not_end_is_stopped(monkeypatch: pytest.MonkeyPatch) -> None:
    """A text is untrusted, too: its run has a limit."""
    monkeypatch.setattr(submission, "JUDGING_SECONDS", 1.0)
    gcd = shelf.puzzle_of(shelf.entry("puzzles", 11).path)
    endless = "import xbuild as xb\ndef solution(a, b): return xb.while_(a, lambda s: xb.eq(s, s), lambda s: s)"
    found = judge_source(gcd, endless, "solution.py").fault
    assert "limit" in found or "takes more than" in found or "deadlock" in found, found


def test_an_error_of_the_judge_is_a_fault_of_one_solution(monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(*arguments: Any) -> None:
        raise RecursionError("too deep")

    monkeypatch.setattr("xbuild.learning.puzzle.score_of", fail)
    assert re.fullmatch("the program of the solution cannot be judged: .*RecursionError: too deep", fault(RIGHT))


def test_a_long_solution_is_refused_before_it_runs() -> None:
    assert "the code of the solution has 2,000,000 characters" in fault("#" * 2_000_000)


@pytest.fixture(scope="module")
def box() -> Sandbox:
    found = bubblewrap()
    if found is None:
        pytest.skip("bubblewrap is not installed, or does not work here")
    return found


@pytest.mark.slow
def test_the_sandbox_hides_files_and_the_network(box: Sandbox, tmp_path: Path) -> None:
    secret = tmp_path / "secret.py"
    secret.write_text(RIGHT)
    assert fault(RIGHT, box) == ""
    assert "FileNotFoundError" in fault(f"exec(open({str(secret)!r}).read())", box)
    assert "StopIteration" in fault("from xbuild.learning import shelf; exec(shelf.solution_of(3).read_text())", box)
    assert "FileNotFoundError" in fault(f"exec(open({str(shelf.solution_of(3))!r}).read())", box)
    found = (
        "import sys, pathlib; raise ValueError([p for e in sys.path for p in pathlib.Path(e).glob('**/solutions/03*')])"
    )
    assert "ValueError: []" in fault(found, box)
    assert "Read-only file system" in fault(f"open({str(Path(shelf.__file__))!r}, 'a')", box)
    assert "KeyError" in fault("import os; os.environ['HOME']", box)


def test_a_container_is_a_sandbox_if_the_folder_is_read_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    mark = tmp_path / "mark"
    monkeypatch.setattr(sandbox, "_MARKS", (str(mark),))
    monkeypatch.setattr(sandbox.os, "access", lambda path, mode: False)
    assert container(tmp_path) is None
    mark.touch()
    assert container(tmp_path) == Sandbox("container")
    monkeypatch.setattr(sandbox.os, "access", lambda path, mode: True)
    assert container(tmp_path) is None


@pytest.fixture
def classroom(tmp_path: Path) -> Path:
    """Alice solves a puzzle at once, Bob at the second of three tries; Eve's file is a link."""
    root = tmp_path / "class"
    stub = shelf.entry("puzzles", 3).path
    tries = {
        "alice/03_one_hot.py": RIGHT,
        "bob/try1/03_one_hot.py": stub.read_text(),
        "bob/try2/03_one_hot.py": RIGHT,
        "bob/try10/03_one_hot.py": "raise ValueError('=1')",
        "eve/notes.txt": "",
        "eve/99_none.py": "",
    }
    for name, text in tries.items():
        (root / name).parent.mkdir(parents=True, exist_ok=True)
        (root / name).write_text(text)
    (root / "eve" / "03_one_hot.py").symlink_to(shelf.solution_of(3))
    return root


def test_tries_are_found_in_their_order(classroom: Path) -> None:
    found = find_solutions(classroom)
    assert {name: {n: len(files) for n, files in each.items()} for name, each in found.items()} == {
        "alice": {3: 1}, "bob": {3: 3}, "eve": {99: 1},
    }  # fmt: skip
    assert [file.parent.name for file in found["bob"][3]] == ["try1", "try2", "try10"]


def test_a_class_is_graded(classroom: Path, tmp_path: Path) -> None:
    result = xbuild("grade", classroom, "--trust")
    assert result.exit_code == 0, result.output
    rows = {row["student"]: row for row in csv.DictReader(io.StringIO(result.stdout))}
    kept = {name: [row[key] for key in ("puzzle", "first", "later", "tries", "solved_at", "flops")]
            for name, row in rows.items()}  # fmt: skip
    assert kept == {
        "alice": ["3", "solved", "", "1", "1", "40"],
        "bob": ["3", "wrong", "solved", "3", "2", "40"],
        "eve": ["3", "missing", "", "0", "", ""],
    }
    assert "3 grades of 3 students; solutions ran without a sandbox" in result.stderr
    written = xbuild("grade", classroom, "--trust", "--puzzle", 4, "-o", tmp_path / "grades.csv")
    assert (
        written.stdout == f"wrote {tmp_path / 'grades.csv'}: 3 grades of 3 students; solutions ran without a sandbox\n"
    )
    assert (tmp_path / "grades.csv").read_text().count(",missing,") == 3


def test_without_a_sandbox_nothing_runs(classroom: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox, "find_sandbox", lambda classroom: None)
    ran = classroom / "ran"
    (classroom / "alice" / "03_one_hot.py").write_text(f"open({str(ran)!r}, 'w')")
    refused = usage(xbuild("grade", classroom))
    assert refused.startswith("there is no sandbox for the code of students: install bubblewrap")
    assert refused.endswith("or pass --trust")
    assert not ran.exists()


def test_what_cannot_be_graded_is_refused(tmp_path: Path) -> None:
    assert "puzzle 99 does not exist: choose from 1 to 20" in usage(
        xbuild("grade", tmp_path, "--trust", "--puzzle", 99)
    )
    assert "has no solutions: expected STUDENT/03_one_hot.py" in usage(xbuild("grade", tmp_path, "--trust"))


def test_cells_are_no_formulas_and_have_no_control_characters() -> None:
    judged = PuzzleJudgement("=cmd()\n\x1b[2J")
    text = grades_csv([PuzzleGrade("@eve\x1b", 3, [Try(Path("x"), judged)])])
    (row,) = csv.DictReader(io.StringIO(text))
    assert row["student"] == r"'@eve\x1b"
    assert row["fault"] == r"'=cmd() \x1b[2J"
    assert "\x1b" not in text


def test_the_command_judges_what_the_process_returns(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    file = tmp_path / "03_one_hot.py"
    file.write_text(ATTACKS[1][1])
    assert xbuild("puzzle", 3, "--check", file).exit_code == 1
    shutil.copy(shelf.solution_of(3), file)
    assert xbuild("puzzle", 3, "--check", file).stdout == "solved: 40 FLOPs (the best known)\n"


def test_a_report_of_a_deadlock_names_the_lines_of_the_solution() -> None:
    swap: Any = shelf.puzzle_of(shelf.entry("puzzles", 18).path)
    source = """import xbuild as xb
def solution(x):
    both = [(0, 1), (1, 0)]
    sent = xb.send(x, channel_id=1, source_target_pairs=both)
    token = xb.send_done(sent, channel_id=1)
    return xb.recv_done(xb.recv(token, x.shape, channel_id=1, source_target_pairs=both), channel_id=1)[0]
"""
    found = judge_source(swap, source, "swap.py").fault
    assert "deadlock" in found
    assert "swap.py:5" in found or "swap.py:4" in found
