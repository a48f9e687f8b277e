"""The cost of recording an op, against the last Python XlaBuilder (jaxlib 0.6.0), in an environment of its own."""

from __future__ import annotations

import os
import statistics
import subprocess
import sys
import venv
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

import xbuild as xb

HERE = Path(__file__).parent
ENVIRONMENT = Path(os.environ.get("XBUILD_XLABUILDER_VENV", HERE.parent / ".venv-xlabuilder"))
OPS = 2000
ROUNDS = 25
MIX = ("add", "reduce", "dot", "broadcast")


def calls() -> dict[str, Callable[[], Any]]:
    """Each records one op on values of one builder, like `xlabuilder_child.py`."""
    builder = xb.Builder("mix")
    x = xb.parameter(builder, number=0, shape=xb.f32[4, 4])
    zero = xb.parameter(builder, number=1, shape=xb.f32[()])
    adder = xb.computation(xb.f32[()], xb.f32[()])(xb.ops.add)
    return {
        "add": lambda: xb.add(x, x),
        "reduce": lambda: xb.reduce((x,), (zero,), to_apply=adder, dimensions=(1,)),
        "dot": lambda: xb.ops.dot(x, x, lhs_contracting_dims=(1,), rhs_contracting_dims=(0,)),
        "broadcast": lambda: xb.broadcast_in_dim(zero, (4, 4), ()),
        "strict add": lambda: xb.ops.add(x, x),
        "strict reduce": lambda: xb.ops.reduce((x,), (zero,), to_apply=adder, dimensions=(1,)),
        "strict broadcast": lambda: xb.ops.broadcast(zero, sizes=(4, 4), dimensions=()),
    }


@pytest.fixture(scope="module")
def python() -> Path:
    """The Python of an environment with jaxlib 0.6.0, created once."""
    found = ENVIRONMENT / ("Scripts" if os.name == "nt" else "bin") / "python"
    if not found.exists():
        venv.create(ENVIRONMENT, with_pip=True, clear=True)
    if subprocess.run([found, "-c", "import jaxlib.xla_client"], capture_output=True, check=False).returncode:
        install = [found, "-m", "pip", "install", "-q", "--disable-pip-version-check", "jaxlib==0.6.0"]
        if subprocess.run(install, capture_output=True, check=False).returncode:
            pytest.skip(
                f"jaxlib 0.6.0 cannot be installed for Python {sys.version_info.major}.{sys.version_info.minor}"
            )
    return found


@pytest.fixture(scope="module")
def xla_builder(python: Path) -> Iterator[Callable[[str], float]]:
    """Seconds per op of a kind, recorded now by a process that idles in between."""
    command = [python, HERE / "xlabuilder_child.py"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as child:
        assert child.stdin is not None
        assert child.stdout is not None
        asked, answers = child.stdin, child.stdout

        def seconds(kind: str) -> float:
            print(kind, OPS, file=asked, flush=True)
            return float(answers.readline())

        yield seconds
        asked.close()


def test_record_mix(benchmark: Any, rows: list[Any], xla_builder: Callable[[str], float]) -> None:
    """All four kinds, one after the other; the reference is the sum of its times."""
    from benchmarks.conftest import Row

    reference: list[float] = []

    def setup() -> tuple[tuple[list[Callable[[], Any]]], dict[str, Any]]:
        reference.append(sum(map(xla_builder, MIX)))
        made = calls()
        return ([made[kind] for kind in MIX],), {}

    def record(mix: list[Callable[[], Any]]) -> None:
        for _ in range(OPS):
            for call in mix:
                call()

    benchmark.pedantic(record, setup=setup, rounds=ROUNDS, warmup_rounds=2)
    rows.append(Row("record one of each", benchmark.stats.stats.median / OPS, statistics.median(reference)))


@pytest.mark.parametrize("kind", calls())
def test_record(kind: str, benchmark: Any, rows: list[Any], xla_builder: Callable[[str], float]) -> None:
    from benchmarks.conftest import Row

    reference: list[float] = []

    def setup() -> tuple[tuple[Callable[[], Any]], dict[str, Any]]:
        reference.append(xla_builder(kind.removeprefix("strict ")))
        return (calls()[kind],), {}

    def record(call: Callable[[], Any]) -> None:
        for _ in range(OPS):
            call()

    benchmark.pedantic(record, setup=setup, rounds=ROUNDS, warmup_rounds=2)
    rows.append(Row(f"record {kind}", benchmark.stats.stats.median / OPS, statistics.median(reference)))
