"""One process, which joins the other, runs the program with the arguments of its devices and prints the results."""

from __future__ import annotations

import json
import sys

import jax

import xbuild as xb
from examples.two_processes.model import DEVICES_EACH, PROCESSES, inputs, program


def main(address: str, process: int) -> dict[int, list[float]]:
    """The new weights of this process's devices, by device number."""
    jax.config.update("jax_num_cpu_devices", DEVICES_EACH)
    jax.distributed.initialize(
        address,
        num_processes=PROCESSES,
        process_id=process,
        coordinator_bind_address=address,  # otherwise the service binds all addresses
    )
    mine = {replica: row for replica, row in inputs().items() if replica // DEVICES_EACH == process}
    try:
        return {replica: result.tolist() for replica, result in xb.engines.execute_here(program(), mine).items()}
    finally:
        jax.distributed.shutdown()


if __name__ == "__main__":
    print(json.dumps(main(sys.argv[1], int(sys.argv[2]))))
