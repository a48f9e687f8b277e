"""Shape inference by real XLA: the shape of the result, or the message of its refusal."""

from __future__ import annotations

import json
import os
from typing import Any

from interpreter.engines import client
from tests.fuzzing.xla import main


def judged(line: str) -> Any:
    """How far it comes (read, converted, compiled), the result's shape once it is read, and what was said."""
    import jax
    from jax._src.lib import xla_client

    text, replicas, partitions, is_read_only = json.loads(line)
    shape, stage = "", ""
    try:
        with jax.enable_x64(True):
            module = client._text_module(text)
            shape, stage = str(client._computation(module).program_shape().result_shape()), "read"
            if is_read_only:
                return stage, shape, ""
            program = client._lowered(module)
            stage = "converted"
            devices = client._devices(replicas * partitions, "cpu")
            options = client._options(devices, replicas, partitions)
            program = client._by_hand(program) if partitions > 1 else program
            devices[0].client.compile_and_load(program, xla_client.DeviceList(tuple(devices)), options)
            stage = "compiled"
    except Exception as error:
        return stage, shape, str(error)[:1500]
    return stage, shape, ""


if __name__ == "__main__":
    os.environ |= {"XLA_FLAGS": "--xla_force_host_platform_device_count=8", "JAX_PLATFORMS": "cpu"}
    main(judged)
