"""Helpers of these tests: dumps unpacked from the archives of real jobs, drawn jobs as dumps, and their diagnosis."""

from __future__ import annotations

import tarfile
from pathlib import Path
from typing import Any

from tests.hangs import recorded_jobs
from xbuild.hangs import Diagnosis, diagnose, read_job

DATA = Path(__file__).parents[1] / "data" / "hangs"


def unpack(archive: str, folder: Path) -> Path:
    """Unpack an archive of dumps into a folder."""
    with tarfile.open(DATA / archive) as file:
        file.extractall(folder, filter="data")
    return folder


def record(job: dict[str, Any], folder: Path, form: str = "pickle") -> Path:
    """Write the synthetic dumps of a drawn job, with the log of a launcher if a rank dies."""
    recorded_jobs.write(recorded_jobs.run(job), folder, form)
    if job["fault"] == "dies":
        rank = job["truth"]["ranks"][0]
        (folder / "launcher.log").write_text(
            f"Root Cause (first observed failure):\n  rank      : {rank} (local_rank: 0)\n  exitcode  : -9 (pid: 7)\n"
        )
    return folder


def find(*paths: Path) -> Diagnosis:
    return diagnose(read_job(paths))


def found(diagnosis: Diagnosis) -> tuple[list[int], list[str]]:
    """The ranks at fault, and their kinds."""
    return [root.rank for root in diagnosis.roots], sorted({root.kind for root in diagnosis.roots})
