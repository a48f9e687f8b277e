"""Write an exam for each student, with other numbers, and the solutions to a folder of their own.

`python -m examples.exam DIR STUDENT...` writes `DIR/exams/STUDENT.md` and `DIR/solutions/STUDENT.md`.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from pathlib import Path

from xbuild.files.arrays import replacing
from xbuild.learning.exercises import exam_texts


def write(into: Path, students: Sequence[str]) -> list[Path]:
    """Write the exams and their solutions; returns the files."""
    if odd := [name for name in students if not re.fullmatch(r"\w[\w.-]*", name)]:
        raise SystemExit(f"{odd[0]!r} is not a name: use letters, digits, dots, hyphens and underscores")
    files = []
    for kind, place in (("exams", 0), ("solutions", 1)):
        (into / kind).mkdir(parents=True, exist_ok=True)
        for name in students:
            files.append(into / kind / f"{name}.md")
            with replacing(files[-1]) as file:
                file.write(exam_texts(name)[place].encode())
    return files


def main() -> None:
    if len(sys.argv) < 3:
        print("python -m examples.exam DIR STUDENT... writes an exam and its solutions for each student, such as:\n")
        print(exam_texts("student")[0])
        return
    for path in write(Path(sys.argv[1]), sys.argv[2:]):
        print(path)


if __name__ == "__main__":
    main()
