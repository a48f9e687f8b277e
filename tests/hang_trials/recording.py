"""What runs on a rank of a trial: groups, collectives that leave a dump when they are launched, and how a rank ends.

Needs torch and nothing of xbuild. A dump is written after each launch and from a thread, because gloo ends a rank that
receives too many bytes.
"""

from __future__ import annotations

import json
import os
import random
import signal
import sys
import threading
import time
import traceback
from collections.abc import Callable
from pathlib import Path
from typing import Any, NoReturn

import torch
import torch.distributed as dist

FOLDER = Path(os.environ.get("TRIAL_FOLDER", "."))
RANK = int(os.environ.get("RANK", "0"))
_TARGET = FOLDER / "dumps" / os.environ.get("TRIAL_DUMP_NAME", "trace_rank_{}").format(RANK)
_lock = threading.Lock()
_started: list[Any] = []
_uneven_calls: dict[str, int] = {}
_last = b""


def connect(roles: dict[str, tuple[str, list[list[int]]]], freeze: bool = False) -> list[Any]:
    """Makes all groups on all ranks, and returns the group of this rank for each role, or None."""
    dist.init_process_group("gloo")
    found: list[Any] = []
    names = {}
    for role, (description, groups) in roles.items():
        mine = None
        for ranks in groups:
            if role == "world":
                group = dist.group.WORLD
            else:
                group = dist.new_group(ranks, group_desc=None if description == "undefined" else description)
            if RANK in ranks:
                mine = group
                names[role] = [group.group_name, group.group_desc, ranks]
        found.append(mine)
    _mark("ready", json.dumps(names))
    if freeze:
        time.sleep(1000)
    watch(dump)
    return found


def watch(write: Callable[[], None]) -> None:
    """Writes from a thread, which also shows that this rank is awake."""
    threading.Thread(target=_write_often, args=(write,), daemon=True).start()


def _mark(what: str, text: str = "") -> None:
    (FOLDER / "marks").mkdir(exist_ok=True)
    (FOLDER / "marks" / f"{what}_{RANK}").write_text(text)


def dump(data: bytes | None = None) -> None:
    """Writes the dump of this rank, if it has changed."""
    global _last
    with _lock:
        data = torch._C._distributed_c10d._dump_fr_trace() if data is None else data
        if data == _last:
            return
        _TARGET.parent.mkdir(parents=True, exist_ok=True)
        partial = FOLDER / f"partial_{RANK}"
        partial.write_bytes(data)
        partial.replace(_TARGET)
        _last = data


def _write_often(write: Callable[[], None]) -> None:
    beats = 0
    while True:
        write()
        _mark("beat", str(beats := beats + 1))
        time.sleep(0.2)


def load() -> None:
    """Stands for the loader and the computation."""
    time.sleep(random.random() * 0.01)


def meet(op: str, group: Any, numel: int = 0, dtype: str = "float32") -> None:
    """Launches a collective and waits for it."""
    if group is not None:
        _wait([_launch(op, group, numel, dtype)])


def start(op: str, group: Any, numel: int = 0, dtype: str = "float32") -> None:
    """Launches a collective; `finish` waits for it."""
    if group is not None:
        _started.append(_launch(op, group, numel, dtype))


def finish() -> None:
    _wait(_started)
    _started.clear()


def _wait(works: list[Any]) -> None:
    try:
        for work in works:
            work.wait()
    except RuntimeError:
        hold()


def hold() -> NoReturn:
    """After a failed collective the rank stays, as one whose peers wait on a device, until the job is killed."""
    traceback.print_exc()
    dump()
    time.sleep(1000)
    raise SystemExit(1)


def _launch(op: str, group: Any, numel: int, dtype: str) -> Any:
    with _lock:  # a dump during a launch would wait for the interpreter, and the launch for the recorder
        work = _enqueue(op, group, numel, getattr(torch, dtype))
    dump()
    return work


def _enqueue(op: str, group: Any, n: int, dtype: torch.dtype) -> Any:
    ranks = dist.get_process_group_ranks(group)
    size, first, last = len(ranks), ranks[0], ranks[-1]

    def new(numel: int) -> torch.Tensor:
        return torch.ones(numel, dtype=dtype)

    match op:
        case "all_reduce":
            return dist.all_reduce(new(n), group=group, async_op=True)
        case "broadcast":
            return dist.broadcast(new(n), first, group=group, async_op=True)
        case "broadcast_back":
            return dist.broadcast(new(n), last, group=group, async_op=True)
        case "reduce":
            return dist.reduce(new(n), first, group=group, async_op=True)
        case "all_gather":
            return dist.all_gather_into_tensor(new(n * size), new(n), group=group, async_op=True)
        case "all_gather_list":
            return dist.all_gather([new(n) for _ in ranks], new(n), group=group, async_op=True)
        case "reduce_scatter":
            return dist.reduce_scatter_tensor(new(n), new(n * size), group=group, async_op=True)
        case "gather":
            outputs = [new(n) for _ in ranks] if first == RANK else None
            return dist.gather(new(n), outputs, first, group=group, async_op=True)
        case "scatter":
            inputs = [new(n) for _ in ranks] if first == RANK else None
            return dist.scatter(new(n), inputs, first, group=group, async_op=True)
        case "barrier":
            return dist.barrier(group=group, async_op=True)
        case "all_to_all":
            return dist.all_to_all_single(new(n * size), new(n * size), group=group, async_op=True)
        case "all_to_all_uneven":
            count = _uneven_calls[group.group_name] = _uneven_calls.get(group.group_name, 0) + 1
            sent = [1 + (5 * RANK + 3 * other + 7 * count) % (n + 7) for other in ranks]
            received = [1 + (5 * other + 3 * RANK + 7 * count) % (n + 7) for other in ranks]
            return dist.all_to_all_single(
                new(sum(received)), new(sum(sent)), received, sent, group=group, async_op=True
            )
    raise ValueError(op)


def stall() -> NoReturn:
    """A loader or a computation that takes forever."""
    time.sleep(1000)
    raise SystemExit(1)


def die(by: str) -> NoReturn:
    if by == "SIGKILL":
        os.kill(os.getpid(), signal.SIGKILL)
    if by == "SIGSEGV":
        os.kill(os.getpid(), signal.SIGSEGV)
    if by == "exception":
        try:
            raise ValueError("loss is nan")
        except ValueError:
            traceback.print_exc()
            sys.stderr.flush()
            os._exit(1)
    os._exit(3)


def end() -> NoReturn:
    """The end of the script; what was sent last still reaches the peers."""
    _mark("end")
    time.sleep(3)
    dump()
    os._exit(0)
