"""Draw jobs with what is at fault in them, write them down, and run them under torchrun."""

from __future__ import annotations

import dataclasses
import json
import os
import random
import signal
import subprocess
import time
from pathlib import Path
from typing import Any

from . import messages
from .faults import KINDS, draw_job
from .jobs import Call, Fault, Job, Phase, Role
from .scripts import write_script

ROOT = Path(__file__).parents[2]
Trial = dict[str, Any]  # name, job or plans, fault, truth
QUIET = 4.0  # seconds without a new dump after which a job is stuck, if its ranks were awake this often meanwhile
BEATS = 15


def draw(seed: int) -> list[Trial]:
    """24 jobs of collectives and 6 of messages, in a fixed order."""
    trials: list[Trial] = []
    for number, kind in enumerate(KINDS):
        job, truth = draw_job(random.Random(f"{seed} {number}"), kind)
        trials.append({"name": f"{number:02d}_{kind}", "truth": truth, "job": dataclasses.asdict(job)})
    for number, kind in enumerate(messages.KINDS, start=len(KINDS)):
        drawn = messages.draw_messages(random.Random(f"{seed} {number}"), kind)
        trials.append({"name": f"{number:02d}_{kind}", **drawn})
    return trials


def read(path: Path) -> list[Trial]:
    return [json.loads(line) for line in path.read_text().splitlines()]


def read_job(data: dict[str, Any]) -> Job:
    def phase(each: dict[str, Any]) -> Phase:
        return Phase(each["name"], each["steps"], tuple(Call(**call) for call in each["calls"]))

    fault = data["fault"]
    change = tuple((key, value) for key, value in fault["change"])
    return Job(
        **{
            **data,
            "roles": {name: Role(**role) for name, role in data["roles"].items()},
            "setup": data["setup"] and phase(data["setup"]),
            "phases": tuple(map(phase, data["phases"])),
            "fault": Fault(fault["kind"], tuple(fault["ranks"]), tuple(fault["at"]), change),
        }
    )


def run(trial: Trial, folder: Path, python: str, limit: float = 300.0) -> str:
    """Runs one job until it ends or writes nothing new for a while; returns what happened."""
    (folder / "dumps").mkdir(parents=True)
    environment = {
        **os.environ,
        "PYTHONPATH": str(ROOT),
        "PYTHONWARNINGS": "ignore",
        "OMP_NUM_THREADS": "1",
        "TRIAL_FOLDER": str(folder),
    }
    if "job" in trial:
        job = read_job(trial["job"])
        world = job.world
        script = folder / "train.py"
        script.write_text(write_script(job))
        program = [str(script)]
        environment |= {"TORCH_FR_BUFFER_SIZE": str(job.ring), "TRIAL_DUMP_NAME": job.dump_name}
    else:
        world = trial["world"]
        (folder / "plans.json").write_text(json.dumps(trial["plans"]))
        program = ["-m", "tests.hang_trials.messages", str(folder / "plans.json")]
    command = [python, "-m", "torch.distributed.run", "--standalone", f"--nproc-per-node={world}", *program]
    with (folder / "dumps" / "launcher.log").open("wb") as log:
        process = subprocess.Popen(command, cwd=ROOT, env=environment, stdout=log, stderr=log, start_new_session=True)
        outcome = _watch(process, folder, world, limit)
        if process.poll() is None:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(60)
            except subprocess.TimeoutExpired:
                os.killpg(process.pid, signal.SIGKILL)
                process.wait()
    return outcome


def _watch(process: subprocess.Popen[bytes], folder: Path, world: int, limit: float) -> str:
    """Waits until the job has ended or is stuck."""
    start = last = time.monotonic()
    seen = None
    beats: dict[str, int] = {}
    while time.monotonic() - start < limit:
        if process.poll() is not None:
            return f"ended with exit status {process.returncode}"
        dumps = [each for each in (folder / "dumps").rglob("*") if each.is_file()]
        marks = [each for each in (folder / "marks").glob("*") if not each.name.startswith("beat")]
        state = {(str(each), each.stat().st_mtime_ns) for each in dumps + marks}
        awake = {each.name: int(each.read_text() or 0) for each in (folder / "marks").glob("beat_*")}
        ready = len(list((folder / "marks").glob("ready_*"))) == world
        if state != seen or not ready:
            seen, last, beats = state, time.monotonic(), awake
        moved = [count - beats.get(name, 0) for name, count in awake.items() if count > beats.get(name, 0)]
        if time.monotonic() - last > QUIET and moved and min(moved) >= BEATS:
            return "stuck"
        time.sleep(0.25)
    return "limit"
