"""Writes the folder of mode "report": a page about all programs, a page and the text of each, and the facts as JSON.

The folder of a guard has:

    DIR/index.html            the programs of all processes of the run, in the order in which each compiled them
    DIR/index.json            the same facts for scripts
    DIR/process_N/MODULE.hlo.gz, MODULE.html
    DIR/process_N/index.json  the programs of process N of `jax.distributed`, or of process 0 without it

If several processes of a run have the same number, such as a script and those it starts, the second one writes
process_N.2. A folder that is older than the run is replaced.
"""

from __future__ import annotations

import errno
import gzip
import itertools
import json
import os
import re
import shutil
import threading
import time
from collections import Counter
from collections.abc import Callable
from importlib.resources import files
from pathlib import Path
from typing import Any

from shape_inference.escaping import filled, in_html, policy, printable

from ..costs import cost
from ..costs.report import short
from ..files.arrays import ArchiveError, new_folder, read_text, replacing
from ..pictures import viz
from ..pictures.html import page
from ..pictures.time_lanes import memory_svg, time_picture, time_svg
from ..process.limits import DeadlineError, within
from ..text.reader import parse_hlo
from ..timelines import timeline
from ..timelines.report import duration
from .programs import SECONDS, Guard, GuardedProgram, summarize

_FACTS = "index.json"
_WRITER = "xbuild guard"
_MOST_FACTS = 1 << 26
_OF_PROCESS = re.compile(r"process_(\d{1,9})(?:\.(\d{1,9}))?", re.ASCII)
_NO_NAME = re.compile(r"[^\w.-]+", re.ASCII)


def write_folder(guard: Guard, folder: Path, process: int = 0, machine: str = "h100") -> Path:
    """Write the programs of a guard, and the page about all programs of the run so far, which is the result.

    What an earlier run wrote there is replaced, and so is what this guard wrote before: of that, the pages that still
    hold are kept. Raises FileExistsError if the folder has other things under these names, and OSError if it cannot be
    written; nothing is left half-written.
    """
    for each in _places(folder):
        if 0 <= _time(each) < guard.since:
            shutil.rmtree(each)
    place = folder / f"new_{os.getpid()}_{threading.get_ident()}"
    programs = [*guard.programs]  # other threads may add to them meanwhile
    with new_folder(place) as made:
        known = (
            {} if guard.written is None else {row["order"]: row for row in _facts(guard.written).get("programs", [])}
        )
        rows = [
            _keep(program, known.get(program.number), guard.written, made, process)
            or _write_program(program, name, made, process, machine)
            for program, name in zip(programs, _names(programs), strict=True)
        ]
        facts = {"written_by": _WRITER, "process": process, "machine": machine, "time": time.time(), "programs": rows}
        (made / _FACTS).write_text(json.dumps(facts, indent=1), encoding="ascii")
    if guard.written is not None:
        shutil.rmtree(guard.written, ignore_errors=True)
    guard.written = _name(place, process, guard.since)
    done: list[Path] = []
    while done != (places := _places_of_run(folder, guard.since)):  # until no other process has written meanwhile
        done = places
        _write_index(folder, machine, {each.name: _rows(each) for each in places})
    return folder / "index.html"


def _keep(
    program: GuardedProgram, row: dict[str, Any] | None, written: Path | None, made: Path, process: int
) -> dict[str, Any] | None:
    """The row of a program, with copies of its files, if this guard has written them; None if its verdict is newer."""
    if row is None or written is None or row["verdict"] != program.kind:
        return None
    paths = [row[key] for key in ("text", "page") if key in row]
    if not all((written / each).is_file() for each in paths):
        return None
    for each in paths:
        shutil.copyfile(written / each, made / each)
    return {**row, "process": process}


def _name(new: Path, process: int, since: float) -> Path:
    """Give a new folder its name: process_N, or process_N.2 if a process of this run has taken that; the result."""
    for number in itertools.count(1):
        place = new.with_name(f"process_{process}" if number == 1 else f"process_{process}.{number}")
        try:
            os.rename(new, place)
        except OSError as error:
            if _time(place) >= since:
                continue
            shutil.rmtree(new)
            if place.exists() or place.is_symlink():
                raise FileExistsError(errno.EEXIST, os.strerror(errno.EEXIST), str(place)) from error
            raise
        return place
    raise AssertionError


def _places(folder: Path) -> list[Path]:
    """The folders of processes, by process and number."""
    found = [(match, each) for each in folder.glob("process_*") if (match := _OF_PROCESS.fullmatch(each.name))]
    return [each for _, each in sorted(found, key=lambda pair: (int(pair[0][1]), int(pair[0][2] or 1)))]


def _places_of_run(folder: Path, since: float) -> list[Path]:
    return [each for each in _places(folder) if _time(each) >= since]


def _rows(place: Path) -> list[dict[str, Any]]:
    """The rows of a folder, with the paths of their files from the folder above."""
    paths = ("text", "page")
    rows: list[dict[str, Any]] = _facts(place)["programs"]
    return [{key: f"{place.name}/{fact}" if key in paths else fact for key, fact in row.items()} for row in rows]


def _facts(place: Path) -> dict[str, Any]:
    """The facts of a folder that a guard wrote; empty for any other."""
    try:
        facts = json.loads(read_text(place / _FACTS, _MOST_FACTS))
    except (ArchiveError, ValueError, RecursionError):
        return {}
    is_own = not place.is_symlink() and isinstance(facts, dict) and facts.get("written_by") == _WRITER
    return facts if is_own else {}


def _time(place: Path) -> float:
    """When a guard wrote a folder; 0 if the folder does not say, -1 if no guard wrote it."""
    facts = _facts(place)
    when = facts.get("time", 0.0)
    return -1.0 if not facts else when if isinstance(when, float) and isinstance(facts.get("programs"), list) else 0.0


def _write_index(folder: Path, machine: str, programs: dict[str, list[dict[str, Any]]]) -> None:
    """Write the facts and the page about the programs of all processes, by the folder of each."""
    facts = {"written_by": _WRITER, "machine": machine, "programs": [row for rows in programs.values() for row in rows]}
    with replacing(folder / _FACTS) as file:
        file.write(json.dumps(facts, indent=1).encode("ascii"))
    with replacing(folder / "index.html") as file:
        file.write(_index_page(programs, machine).encode())


def _names(programs: list[GuardedProgram]) -> list[str]:
    """File names: those of the modules, the second of a name with .2."""
    seen: Counter[str] = Counter()
    names = []
    for program in programs:
        plain = _NO_NAME.sub("_", program.name).lstrip(".")[:100] or "module"
        seen[plain] += 1
        names.append(plain if seen[plain] == 1 else f"{plain}.{seen[plain]}")
    return names


def _write_program(program: GuardedProgram, name: str, made: Path, process: int, machine: str) -> dict[str, Any]:
    """Write the text and the page of a program and give its row; costs that cannot be computed in time are left out."""
    (made / f"{name}.hlo.gz").write_bytes(gzip.compress(program.text.encode(), mtime=0))
    row: dict[str, Any] = {
        "order": program.number,
        "name": program.name,
        "process": process,
        "devices": [each.id for each in program.devices],
        "processes": sorted({each.process for each in program.devices}),
        "verdict": program.kind,
        "refused": program.is_refused,
        "may_hang": program.may_hang,
        "problem": program.problem,
        "seconds": round(program.seconds, 4),
        "text": f"{name}.hlo.gz",
    }
    if program.verdict is None:
        return row
    try:
        with within(SECONDS):
            module = parse_hlo(program.text, f"<{program.name}>", origins=True)
            found = cost(module)
            row |= {
                "num_replicas": module.num_replicas,
                "num_partitions": module.num_partitions,
                "flops": found.flops,
                "link_bytes": found.link_bytes,
                "collectives": sum(row.times for row in found.collectives),
                "peak_bytes": found.peak_memory,
                "reserved_bytes": found.reserved_memory,
            }
            if program.is_refused:
                row["problem"] = str(program.verdict).partition("\n")[0]
                drawn = str(viz(program.verdict).render("svg"))
                text = page(drawn, f"{program.verdict}\n\n{found}", "auto", program.name)
            else:
                laid = timeline(module, machine)
                row["machine_seconds"] = laid.seconds
                drawn = time_svg(time_picture(laid)) + memory_svg(laid.cost.memory, laid.machine.memory)
                text = page(drawn, f"{program.verdict}\n\n{laid}\n\n{laid.cost}", "auto", program.name)
    except (DeadlineError, Exception) as error:  # a report must not end the user's program with an error
        row["problem"] = row["problem"] or f"no costs: {str(error) or type(error).__name__}".splitlines()[0]
        return row
    (made / f"{name}.html").write_text(text, encoding="utf-8")
    return row | {"page": f"{name}.html"}


# ----------------------------------------------------------------------------
# The page: a table with one line for each program.


def _index_page(programs: dict[str, list[dict[str, Any]]], machine: str) -> str:
    all_rows = [row for rows in programs.values() for row in rows]
    refused = sum(row["refused"] for row in all_rows)
    hanging = sum(row["may_hang"] for row in all_rows)
    unread = sum(row["verdict"] == "unread" for row in all_rows)
    summary = summarize(len(all_rows), refused, hanging, unread, sum(row["seconds"] for row in all_rows))
    lines = []
    for place, rows in programs.items():
        if len(programs) > 1:
            lines.append(f'<tr class="process"><th></th><th colspan="8">{in_html(place)}</th></tr>')
        lines += map(_table_row, rows)
    parts = {
        "policy": policy(),
        "style": (files(__package__) / "assets" / "index.css").read_text(encoding="utf-8"),
        "state": "refused" if refused else "ok",
        "summary": in_html(f"{summary}, in {len(programs)} processes" if len(programs) > 1 else summary),
        "machine": in_html(machine),
        "rows": "\n".join(lines),
    }
    return filled((files(__package__) / "assets" / "index.html").read_text(encoding="utf-8"), parts)


def _table_row(row: dict[str, Any]) -> str:
    name = in_html(row["name"])
    link = f'<a href="{in_html(row["page"])}">{name}</a>' if "page" in row else name
    cells = [
        (str(row["order"]), "number"),
        (f'{link} <a class="text" href="{in_html(row["text"])}">text</a>', "name"),
        (
            f'<span class="verdict {"refused" if row["refused"] else in_html(row["verdict"])}">{row["verdict"]}</span>',
            "",
        ),
        (str(len(row["devices"]) or ""), "number"),
        (_known(short, row.get("collectives")), "number"),
        (_known(short, row.get("flops"), "FLOP"), "number"),
        (_known(short, row.get("link_bytes"), "B"), "number"),
        (_known(short, row.get("reserved_bytes"), "B"), "number"),
        (_known(duration, row.get("machine_seconds")), "number"),
    ]
    line = "".join(f'<td class="{kind}">{text}</td>' if kind else f"<td>{text}</td>" for text, kind in cells)
    problem = in_html(printable(row["problem"]))
    return f"<tr>{line}</tr>" + (f'<tr class="problem"><td></td><td colspan="8">{problem}</td></tr>' if problem else "")


def _known(write: Callable[..., str], number: float | None, *unit: str) -> str:
    """A number as `write` formats it; empty if it is not known."""
    return "" if number is None else write(number, *unit)
