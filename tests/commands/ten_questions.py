"""Ten questions about a training step, each answered by one command: `python -m tests.commands.ten_questions` writes
docs/ten_questions.md, and a test compares what the commands print with it."""

from __future__ import annotations

import os
import re
import shlex
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

from tests.commands.command_line import xbuild

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "ten_questions.md"
PROGRAM = "examples/transformer_step.py"
KEPT = ("step", "unstable", "left_out")
QUESTIONS = (
    ("Where does the first NaN come from?", "xbuild trace runs/unstable",
     "The trace follows the first NaN back, element by element: the scores are so large that exp returns infinity."),
    ("Which device differs, and where does the difference start?", "xbuild trace runs/left_out --differ",
     "A sum of gradients leaves out one of the eight devices. From then on, the weights of this device differ."),
    ("Why is this number what it is?", "xbuild trace runs/step --of new_scale --element 3",
     "The answer shows one element of the new weights and, two ops back, the numbers from which it was computed."),
    ("Why does it have this shape?", f"xbuild explain {PROGRAM}:step --of all-gather.93",
     "The answer shows how the shape is computed, the users of the value, its dependencies, and its type on the mesh."),
    ("Which device waits for which?", f"xbuild check {PROGRAM}:crossed",
     "In this variant, device 5 sums two gradients in the opposite order. xbuild refuses the program before it runs."),
    ("How can it be fixed?", f"xbuild check {PROGRAM}:crossed --repair runs/fixed",
     "`--repair` applies the fix from the report and writes programs that run."),
    ("Where does this instruction come from?", f"xbuild why {PROGRAM}:step dot.38.vjp",
     "The instruction is part of the gradient. The answer names the instruction that it differentiates, and its line."),
    ("What changed between these two programs?", f"xbuild diff {PROGRAM}:step {PROGRAM}:unstable",
     "The two programs are the step and its variant with large scores."),
    ("Which device sent this?", "xbuild trace runs/step --of all-gather.93 --element 0,2,40 --device 0 --depth 1",
     "Element 40 of the gathered scores on device 0 was computed by device 1, as its own element 8."),
    ("What does this op do?", "xbuild explain reduce-scatter",
     "`xbuild explain` explains any op, function, error kind, attribute, or word of a report."),
)  # fmt: skip

HEAD = """# Ten questions about a training step

One command answers each question. The program is [examples/transformer_step.py](../examples/transformer_step.py). On
eight devices (a 4-by-2 mesh), it computes the loss of a transformer block, the gradients of this loss, and the
updated weights. The file also defines three variants of the step, each with a fault. First record three runs:

    xbuild run examples/transformer_step.py:step --random 0 --trace runs/step
    xbuild run examples/transformer_step.py:unstable --random 0 --trace runs/unstable
    xbuild run examples/transformer_step.py:left_out --random 0 --trace runs/left_out

`python -m tests.commands.ten_questions` writes this page. A test runs the commands and compares their output with it.
"""


def kept_runs(folder: Path) -> None:
    """Run the step and two variants, and keep the runs in a folder."""
    for name in KEPT:
        result = xbuild("run", f"{PROGRAM}:{name}", "--random", "0", "--trace", folder / name)
        assert result.exit_code == 0, result.output


def answer(command: str, folder: Path) -> str:
    """What a command prints, with `runs` for the folder of the runs."""
    words = [word.replace("runs", str(folder)) if word.startswith("runs/") else word for word in shlex.split(command)]
    result = xbuild(*words[1:])
    assert result.exit_code in (0, 1), result.output
    return rounded(f"{result.stdout}{result.stderr}".replace(str(folder), "runs").rstrip())


def rounded(text: str) -> str:
    """The text with three digits of each number that has more, so that machines agree on it."""
    return re.sub(r"-?\d+\.\d+(?:e[-+]\d+)?", lambda found: f"{float(found[0]):.3g}", text)


def page(folder: Path) -> Iterator[str]:
    """The parts of the document."""
    yield HEAD
    for number, (question, command, about) in enumerate(QUESTIONS, 1):
        yield f"## {number}. {question}\n\n{about}\n\n```\n$ {command}\n{answer(command, folder)}\n```\n"


def main() -> None:
    os.chdir(ROOT)
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name) / "runs"
        folder.mkdir()
        kept_runs(folder)
        PAGE.write_text("\n".join(page(folder)))
    sys.stdout.write(f"{PAGE}\n")


if __name__ == "__main__":
    main()
