"""`PYTHON -m tests.proving.recompile FROM.jsonl.gz TO.jsonl.gz`: compile programs of several devices by another jaxlib.

PYTHON is an interpreter with that jaxlib. FROM has programs as `tests.conformance.jax` reads them; TO has the same,
with the text that this jaxlib compiles from each. A child process compiles them, since jaxlib may end its process.
"""

from __future__ import annotations

import gzip
import json
import os
import subprocess
import sys
from typing import Any

CHILD = "--child"


def compile_all(source: str, target: str) -> None:
    """Write each program that compiles; print the others, and counts."""
    counts = [0, 0]
    child: Any = None
    flags = {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    with gzip.open(source, "rt") as lines, gzip.open(target, "wt") as out:
        for case in filter(lambda each: each["devices"] > 1 and each["hlo"], map(json.loads, lines)):
            if child is None or child.poll() is not None:
                child = subprocess.Popen(
                    [sys.executable, "-m", "tests.proving.recompile", CHILD], env={**os.environ, **flags}, text=True,
                    stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL,
                )  # fmt: skip
            child.stdin.write(f"{json.dumps(case)}\n")
            child.stdin.flush()
            answer = json.loads(child.stdout.readline() or '{"error": "the process ended"}')
            counts[0] += 1
            if "error" in answer:
                print(case["id"], answer["error"].partition("\n")[0], flush=True)
                continue
            counts[1] += 1
            out.write(f"{json.dumps({**case, 'hlo': answer['hlo']})}\n")
    print(f"{counts[1]} of {counts[0]} programs compiled")


def answer_as_child() -> None:
    for line in sys.stdin:
        try:
            answer = {"hlo": compiled(json.loads(line))}
        except Exception as error:  # what jaxlib refuses
            answer = {"error": f"{type(error).__name__}: {error}"}
        print(json.dumps(answer), flush=True)


def compiled(case: Any) -> str:
    """The text that XLA compiles from the StableHLO of a program."""
    import jax
    import numpy as np
    from jax._src.interpreters import mlir
    from jax._src.lib import xla_client
    from jax._src.lib.mlir import ir

    extent = case["replicas"], case["partitions"]
    options = xla_client.CompileOptions()
    build = options.executable_build_options
    options.num_replicas, options.num_partitions = build.num_replicas, build.num_partitions = extent
    build.use_spmd_partitioning, build.use_shardy_partitioner = True, bool(case["shardy"])
    places = np.arange(extent[0] * extent[1])
    build.device_assignment = xla_client.DeviceAssignment.create(places.reshape(extent))
    with mlir.make_ir_context():
        code = mlir.module_to_bytecode(ir.Module.parse(case["stablehlo"]))
    devices = jax.devices()[: places.size]
    loaded = devices[0].client.compile_and_load(code, xla_client.DeviceList(tuple(devices)), options)
    return str(loaded.hlo_modules()[0].to_string())


if __name__ == "__main__":
    if sys.argv[1:] == [CHILD]:
        answer_as_child()
    else:
        compile_all(*sys.argv[1:])
