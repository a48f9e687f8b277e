"""Start both processes on this machine, and compare their results with the interpreter."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys

import numpy as np

import xbuild as xb
from examples.extras import wanted
from examples.two_processes.model import PROCESSES, inputs, program

with wanted("xla"):
    import jax  # noqa: F401  (the processes need it; a missing package is reported here)

SECONDS = 120


def free_port() -> int:
    with socket.socket() as held:
        held.bind(("127.0.0.1", 0))
        port: int = held.getsockname()[1]
        return port


def run() -> dict[int, list[float]]:
    """The results of all devices, as the processes reported them."""
    address = f"127.0.0.1:{free_port()}"
    command = [sys.executable, "-m", "examples.two_processes.worker", address]
    variables = {**os.environ, "JAX_PLATFORMS": "cpu", "TF_CPP_MIN_LOG_LEVEL": "3"}
    variables.pop("XLA_FLAGS", None)  # each worker sets its own number of devices
    workers = [
        subprocess.Popen([*command, str(number)], stdout=subprocess.PIPE, env=variables, text=True)
        for number in range(PROCESSES)
    ]
    results: dict[int, list[float]] = {}
    try:
        for worker in workers:
            try:
                told, _ = worker.communicate(timeout=SECONDS)
            except subprocess.TimeoutExpired:
                raise SystemExit(f"a worker has not come to an end within {SECONDS} seconds") from None
            if worker.returncode:
                raise SystemExit(f"a worker ended with status {worker.returncode}")
            last = told.splitlines()[-1]  # the library that joins the processes prints to stdout, too
            results |= {int(replica): row for replica, row in json.loads(last).items()}
    finally:
        for worker in workers:
            with worker:
                worker.kill()
    return results


def main() -> None:
    results = run()
    expected = xb.execute(program(), inputs())
    for replica, row in sorted(results.items()):
        close = np.allclose(np.float32(row), expected[replica], rtol=1e-6)
        print(f"replica {replica}: {row}  {'equals the interpreter' if close else f'differs: {expected[replica]}'}")
        if not close:
            raise SystemExit(1)


if __name__ == "__main__":
    main()
