"""Finds the dumps among files and folders, and reads each with the reader of its format."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

from ..files.arrays import ArchiveError, read_text, regular
from .flight_recorder import is_flight_recorder, read_flight_recorder
from .guard_messages import leave_out_shutdown
from .logs import read_log
from .nccl import add_inspected, is_inspector, is_ras, is_ras_text, read_inspector, read_ras, read_ras_text
from .plain_pickles import MOST_BYTES, check_plain, read_plain_pickle
from .records import DumpError, RankRecord, StuckJob

MOST_FILES = 100_000
MOST_ITEMS = 4_000_000
_RANK = re.compile(r"rank[_-]?(\d{1,7})(?!\d)", re.IGNORECASE)
_JSON = re.compile(rb"\s*(?:\{\s*[\"}]|\[\s*[\[{\]])")
"""The beginning of an object or a list of JSON; a line of a log may begin with `[` as well."""
_PROGRAM = re.compile(rb"\s*(?:HloModule\s|(?:#loc[^\n]*\n\s*)*module\s*(?:@\S+\s*)?(?:attributes\s*)?\{)")
"""The beginning of a program as HLO or StableHLO."""
_LAST_NUMBER = re.compile(r"(\d{1,7})(?=\D*$)")


def read_job(paths: Sequence[str | os.PathLike[str]]) -> StuckJob:
    """Read the dumps of a stuck job: files, and all files of folders.

    Raises DumpError for a file of no known format, damaged, hostile or too large, and if no file is a dump.
    """
    job = StuckJob()
    files = [*_files(paths)]
    if not files:
        raise DumpError(f"no files in {', '.join(map(str, paths))}; name the dumps, or the folder that holds them")
    unread: list[Path] = []
    for place, path in enumerate(files):
        if _is_program(path):
            job.programs.append(str(path))
        elif not _read_file(job, path, place):
            unread.append(path)
    add_inspected(job)
    leave_out_shutdown(job)
    job.ranks = {rank: job.ranks[rank] for rank in sorted(job.ranks)}
    if not job.formats and job.programs:
        target = find_program(job, paths)
        holds = "holds programs, not dumps" if Path(target).is_dir() else "is a program, not a dump"
        raise DumpError(
            f"{target} {holds} of a stuck job: `xbuild check {target}` says whether it can hang; with a log or dumps, "
            f"`xbuild hang LOG --program {target}` says where each rank is"
        )
    if not job.formats:
        first = repr(str(files[0]))
        none = f"{first} is not" if len(files) == 1 else f"none of the {len(files):,} files, such as {first}, is"
        raise DumpError(f"{none} a dump; docs/hangs.md lists the formats")
    folders = {Path(each).parent for each in job.programs}
    unread = [each for each in unread if folders.isdisjoint(each.parents)]  # XLA writes more than programs to a dump
    if unread:
        job.add_limit(f"{len(unread):,} files are of no known format and were not read, such as {unread[0].name}")
    return job


def find_program(job: StuckJob, paths: Sequence[str | os.PathLike[str]]) -> str:
    """The target of the programs among the files: one that was given itself, else the folder that holds them."""
    given = {str(Path(each)) for each in paths}
    return next(
        (each for each in job.programs if each in given), os.path.commonpath(map(os.path.dirname, job.programs))
    )


def _is_program(path: Path) -> bool:
    """Whether a file is the text of a program: HLO or StableHLO."""
    try:
        with regular(path) as file:
            return _PROGRAM.match(file.read(4096)) is not None
    except ArchiveError as error:
        raise DumpError(str(error)) from None


def _files(paths: Sequence[str | os.PathLike[str]]) -> Iterator[Path]:
    count = 0
    for path in map(Path, paths):
        found = sorted(each for each in path.rglob("*") if each.is_file()) if path.is_dir() else [path]
        for each in found:
            count += 1
            if count > MOST_FILES:
                raise DumpError(f"more than {MOST_FILES:,} files")
            yield each


def _read_file(job: StuckJob, path: Path, place: int) -> bool:
    """Read a file into the job; False if it is of no known format."""
    try:
        with regular(path) as file:
            head = file.read(4096)
        if head[:2] == b"\x1f\x8b" and path.suffix != ".gz":
            head = b""
        data = read_text(path, MOST_BYTES)
    except ArchiveError as error:
        raise DumpError(str(error)) from None
    if not data:
        job.add_limit(f"{path.name} is empty")
        return True
    name = path.name.removesuffix(".gz")
    try:
        if data[:1] == b"\x80":
            found = read_plain_pickle(data, MOST_ITEMS)
        elif _JSON.match(data):
            found = _read_json(data)
        else:
            return _read_text(job, data, name)
        return _read_data(job, found, path, place)
    except DumpError as error:
        raise DumpError(f"{path.name}: {error.args[0]}") from None


def _read_json(data: bytes) -> Any:
    """The value of a JSON text, or the values of its lines."""
    try:
        text = data.decode("utf-8")
        try:
            found = json.loads(text)
        except json.JSONDecodeError:
            lines = [line for line in text.splitlines() if line.strip()]
            found = [json.loads(line) for line in lines]
    except RecursionError:
        raise DumpError("the JSON is nested too deeply") from None
    except ValueError as error:
        raise DumpError(f"the JSON is damaged: {error}") from None
    check_plain(found, MOST_ITEMS)
    return found


def _read_data(job: StuckJob, data: Any, path: Path, place: int) -> bool:
    name = path.name.removesuffix(".gz")
    if is_flight_recorder(data):
        rank = _rank_of(path, place)
        _keep_newest(job, data, rank, name)
    elif is_ras(data):
        read_ras(job, data, name)
    elif is_inspector(data):
        read_inspector(job, data, name)
    else:
        return False
    return True


def _keep_newest(job: StuckJob, data: Any, rank: int, name: str) -> None:
    """Read a dump of the Flight Recorder unless a newer one of the same rank was read."""
    before = job.ranks.get(rank)
    record = read_flight_recorder(job, data, rank, name)
    job.formats["Flight Recorder"] = job.formats.get("Flight Recorder", 0) + 1
    if before is not None:
        job.add_limit(f"several dumps of one rank, such as rank {rank}: the newest is used")
        if _progress(before) > _progress(record):
            job.ranks[rank] = before


def _progress(record: RankRecord) -> tuple[int, int]:
    return record.newest, sum(each.is_done for each in record.operations)


def _read_text(job: StuckJob, data: bytes, name: str) -> bool:
    if b"\0" in data[:4096]:
        return False
    text = data.decode("utf-8", "replace")
    if is_ras_text(text):
        read_ras_text(job, text, name)
        return True
    return read_log(job, text, name)


def _rank_of(path: Path, place: int) -> int:
    """The rank in the name of a file or of its folder: the number after `rank`, else the last number.

    Without a number it is the place among the files.
    """
    for name in (path.name, path.parent.name):
        match = _RANK.search(name) or _LAST_NUMBER.search(name.partition(".")[0])
        if match is not None:
            return int(match[1])
    return place
