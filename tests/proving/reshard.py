"""A gradient that is a partial sum over all data axes, resharded to one that is sharded and replicated (xla#40034).

Each device multiplies its rows of the batch. The sum over the axes `dp` and `fsdp` becomes sharded along `fsdp`, by a
reduce-scatter, and replicated along `dp`, by an all-reduce. XLA left out the all-reduce on 4,096 devices.
`python -m tests.proving.reshard [DP FSDP TP]` proves both programs, and prints verdicts, seconds and peak memory.
"""

from __future__ import annotations

import re
import resource
import sys
import time
from typing import Any

import xbuild as xb


def programs(dp: int, fsdp: int, tp: int) -> tuple[xb.Module, xb.Module, xb.Module]:
    """The global program, that of each device, and the latter without its all-reduce."""
    mesh, rows = f"mesh['dp'={dp},'fsdp'={fsdp},'tp'={tp}]", 2 * dp * fsdp
    whole = xb.parse_hlo(f"""HloModule grad, num_partitions={dp * fsdp * tp}
    ENTRY e {{
      x = f32[{rows},{2 * fsdp}] parameter(0), sharding={{{mesh}, [{{'dp','fsdp'}}, {{}}]}}
      dy = f32[{rows},{2 * tp}] parameter(1), sharding={{{mesh}, [{{'dp','fsdp'}}, {{'tp'}}]}}
      g = f32[{2 * fsdp},{2 * tp}] dot(x, dy), lhs_contracting_dims={{0}}, rhs_contracting_dims={{0}},
        sharding={{{mesh}, [{{}}, {{'tp'}}], unreduced={{'dp','fsdp'}}}}
      ROOT r = f32[{2 * fsdp},{2 * tp}] copy(g), sharding={{{mesh}, [{{'fsdp'}}, {{'tp'}}]}}
    }}""")
    text = xb.shard.partition(whole).module.to_hlo()
    assert len(re.findall(r" (?:reduce-scatter|all-reduce)\(", text)) == 2
    return whole, xb.parse_hlo(text), xb.parse_hlo(re.sub(r"all-reduce\((\S+)\),[^\n]*", r"copy(\1)", text))


def main(sizes: list[int]) -> int:
    """Print what is proved; gives 1 if a verdict is wrong."""
    whole, right, wrong = programs(*sizes)
    kinds = []
    for name, module in (("correct", right), ("without the all-reduce", wrong)):
        begun = time.perf_counter()
        proof: Any = xb.prove(whole, module)
        kinds.append(proof.kind)
        seconds, peak = time.perf_counter() - begun, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 2**20
        print(
            f"{right.num_devices} devices, {name}: {seconds:.0f} s, peak of the process {peak:.2f} GiB\n{proof}",
            flush=True,
        )
    return int(kinds != ["equal", "different"])


if __name__ == "__main__":
    sys.exit(main([*map(int, sys.argv[1:])] or [2, 64, 32]))
