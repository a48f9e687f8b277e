"""Writes the folder of mode "report": a page about all programs, a page and the text of each, and the facts as JSON.

The folder of a guard has:

    DIR/index.html            the programs of this process (of process 0 in a job of several), as they were compiled
    DIR/index.json            the same facts for scripts
    DIR/process_N/MODULE.hlo.gz, MODULE.html
    DIR/process_N/index.json  the programs of process N, in a job of several processes
"""

from __future__ import annotations

import gzip
import json
import re
import shutil
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
from .programs import SECONDS, Guard, GuardedProgram

_FACTS = "index.json"
_WRITER = "xbuild guard"
_MOST_FACTS = 1 << 26
_NO_NAME = re.compile(r"[^\w.-]+", re.ASCII)


def write_folder(guard: Guard, folder: Path, process: int = 0, machine: str = "h100") -> Path:
    """Write the programs of a guard; the result is the page, or the folder of a process other than 0.

    What an earlier guard wrote there is replaced. Raises FileExistsError if the folder has other things under these
    names, and OSError if it cannot be written; nothing is left half-written.
    """
    place = folder / f"process_{process}"
    _remove_own(place)
    names = _names(guard.programs)
    rows = []
    with new_folder(place) as made:
        for program, name in zip(guard.programs, names, strict=True):
            (made / f"{name}.hlo.gz").write_bytes(gzip.compress(program.text.encode(), mtime=0))
            rows.append(_write_program(program, name, made, place.name, process, machine))
        facts = {"written_by": _WRITER, "process": process, "machine": machine, "programs": rows}
        text = json.dumps(facts, indent=1)
        (made / _FACTS).write_text(text, encoding="ascii")
    if process:
        return place
    with replacing(folder / _FACTS) as file:
        file.write(text.encode("ascii"))
    with replacing(folder / "index.html") as file:
        file.write(_index_page(guard, rows, machine).encode())
    return folder / "index.html"


def _remove_own(place: Path) -> None:
    """Remove a folder that an earlier guard wrote; leave any other, which is then refused."""
    try:
        facts = json.loads(read_text(place / _FACTS, _MOST_FACTS))
    except (ArchiveError, ValueError, RecursionError):
        return
    if not place.is_symlink() and isinstance(facts, dict) and facts.get("written_by") == _WRITER:
        shutil.rmtree(place)


def _names(programs: list[GuardedProgram]) -> list[str]:
    """File names: those of the modules, the second of a name with .2."""
    seen: Counter[str] = Counter()
    names = []
    for program in programs:
        plain = _NO_NAME.sub("_", program.name).lstrip(".")[:100] or "module"
        seen[plain] += 1
        names.append(plain if seen[plain] == 1 else f"{plain}.{seen[plain]}")
    return names


def _write_program(
    program: GuardedProgram, name: str, made: Path, folder: str, process: int, machine: str
) -> dict[str, Any]:
    """Write the page of a program and give its row; costs that cannot be computed in time are left out."""
    row: dict[str, Any] = {
        "order": program.number,
        "name": program.name,
        "process": process,
        "devices": [each.id for each in program.devices],
        "processes": sorted({each.process for each in program.devices}),
        "verdict": program.kind,
        "refused": program.is_refused,
        "problem": program.problem,
        "seconds": round(program.seconds, 4),
        "text": f"{folder}/{name}.hlo.gz",
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
    return row | {"page": f"{folder}/{name}.html"}


# ----------------------------------------------------------------------------
# The page: a table with one line for each program.


def _index_page(guard: Guard, rows: list[dict[str, Any]], machine: str) -> str:
    refused = sum(row["refused"] for row in rows)
    parts = {
        "policy": policy(),
        "style": (files(__package__) / "assets" / "index.css").read_text(encoding="utf-8"),
        "state": "refused" if refused else "ok",
        "summary": in_html(guard.summary()),
        "machine": in_html(machine),
        "rows": "\n".join(map(_table_row, rows)),
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
        (_known(short, row.get("peak_bytes"), "B"), "number"),
        (_known(duration, row.get("machine_seconds")), "number"),
    ]
    line = "".join(f'<td class="{kind}">{text}</td>' if kind else f"<td>{text}</td>" for text, kind in cells)
    problem = in_html(printable(row["problem"]))
    return f"<tr>{line}</tr>" + (f'<tr class="problem"><td></td><td colspan="8">{problem}</td></tr>' if problem else "")


def _known(write: Callable[..., str], number: float | None, *unit: str) -> str:
    """A number as `write` formats it; empty if it is not known."""
    return "" if number is None else write(number, *unit)
