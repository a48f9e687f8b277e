"""The guard in scripts of JAX, in each way of starting it; each script runs in a process of its own."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("jax")
pytestmark = [pytest.mark.oracle, pytest.mark.slow]

HEAD = """
import os, sys
os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=2"
"""
SCRIPT = """
import jax, jax.numpy as jnp, numpy as np
from jax.sharding import Mesh, PartitionSpec as P
from jax import lax

def step(x):
    is_first = lax.axis_index("data") == 0
    return lax.cond(is_first, lambda: lax.psum(x.sum(), "data"), lambda: jnp.float32(0))  # line 8

mesh = Mesh(np.array(jax.devices()), ("data",))
mapped = jax.jit(jax.shard_map(step, mesh=mesh, in_specs=P("data"), out_specs=P(), check_vma=False))
print(jnp.ones(3) + len(sys.argv))
if "ok" not in sys.argv:
    compiled = mapped.lower(np.ones((4, 4), np.float32)).compile()
    if "run" in sys.argv:
        compiled(np.ones((4, 4), np.float32))
print("end", *sys.argv[1:])
"""
WAYS = {
    "command": ("", ["-m", "xbuild", "guard"]),
    "module": ("", ["-m", "xbuild.guard"]),
    "installed": ("import xbuild as xb\nxb.guard.install()\n", []),
    "block": ("import xbuild as xb\n(entered := xb.guard.active()).__enter__()\n", []),
}


def run(
    folder: Path, words: list[str], given: list[str], before: str = "", script: str = SCRIPT, **variables: str
) -> tuple[int, str, str]:
    (folder / "script.py").write_text(f"{HEAD}{before}{script}")
    environment = {k: v for k, v in os.environ.items() if not k.startswith(("XBUILD_GUARD", "XLA_FLAGS"))}
    environment |= {"PYTHONPATH": os.pathsep.join(filter(None, [str(Path.cwd()), os.environ.get("PYTHONPATH", "")]))}
    done = subprocess.run(
        [sys.executable, *words, "script.py", *given],
        cwd=folder, env=environment | variables, capture_output=True, text=True, timeout=300, check=False,
    )  # fmt: skip
    return done.returncode, done.stdout, done.stderr


@pytest.mark.parametrize("way", WAYS)
def test_each_way_of_starting_it_stops_a_deadlock(way: str, tmp_path: Path) -> None:
    before, words = WAYS[way]
    status, out, said = run(tmp_path, words, ["run"], before)
    assert status == 1, said
    assert "end" not in out
    assert "xbuild guard: jit_step is refused; it was stopped before it ran\ndeadlock: device 1 never" in said
    assert "script.py:" in said
    assert "Traceback" not in said


def test_the_environment_guards_a_script(tmp_path: Path) -> None:
    status, out, said = run(tmp_path, [], ["run"], XBUILD_GUARD="stop")
    assert (status, "end" in out) == (1, False)
    assert "jit_step is refused" in said
    status, out, said = run(tmp_path, [], ["a", "b"], XBUILD_GUARD="warn")
    assert (status, out.splitlines()[-1]) == (0, "end a b")
    assert "jit_step is refused; it runs anyway" in said
    status, out, said = run(tmp_path, [], ["ok"], XBUILD_GUARD="loud")
    assert (status, out.splitlines()[-1]) == (0, "end ok")
    assert "xbuild guard: not installed: guard: mode is 'loud'; expected one of stop, strict, warn, report" in said


def test_without_a_guard_nothing_is_imported(tmp_path: Path) -> None:
    status, out, said = run(
        tmp_path, [], ["ok"], 'import atexit\natexit.register(lambda: print("xbuild" in sys.modules))\n'
    )
    assert (status, out.splitlines()[-1]) == (0, "False"), said


def test_programs_of_the_persistent_cache_are_seen(tmp_path: Path) -> None:
    always = {
        "JAX_COMPILATION_CACHE_DIR": str(tmp_path / "cache"),
        "JAX_PERSISTENT_CACHE_MIN_COMPILE_TIME_SECS": "0",
        "JAX_PERSISTENT_CACHE_MIN_ENTRY_SIZE_BYTES": "-1",
    }
    seen = []
    for name in ("cold", "warm"):
        words = ["-m", "xbuild", "guard", "--report", name]
        status, _, said = run(tmp_path, words, [], **always)
        assert status == 0, said
        facts = json.loads((tmp_path / name / "index.json").read_text())
        seen.append([(each["name"], each["verdict"]) for each in facts["programs"]])
    assert list((tmp_path / "cache").iterdir())
    assert seen[0] == seen[1]
    assert ("jit_step", "deadlock") in seen[0]
    assert ("jit_add", "ok") in seen[0]


@pytest.mark.parametrize("words", [["-m", "xbuild", "guard", "--report", "out"], []])
def test_a_report_has_the_programs_of_the_processes_that_a_script_starts(words: list[str], tmp_path: Path) -> None:
    script = """
import subprocess, jax
def parent(x): return x + 1
def child(x): return x * 2
if len(sys.argv) == 1:
    jax.jit(parent)(1.0)
    for number in "12":
        subprocess.run([sys.executable, __file__, number], check=True)
else:
    jax.jit(child)(1.0)
"""
    variables = {} if words else {"XBUILD_GUARD": "report", "XBUILD_GUARD_DIR": str(tmp_path / "out")}
    for _ in range(2):
        status, _, said = run(tmp_path, words, [], script=script, **variables)
        assert status == 0, said
        facts = json.loads((tmp_path / "out" / "index.json").read_text())
        assert sorted(each["name"] for each in facts["programs"]) == ["jit_child", "jit_child", "jit_parent"]


def test_what_is_compiled_past_the_wrapper_is_seen_by_the_hook(tmp_path: Path) -> None:
    pytest.importorskip("jax.extend.xla")
    past = """
import jax
jax.jit(lambda x: x + 1)(1.0)  # the first compilation registers the hook
from jax._src import compiler, xla_bridge
import xbuild.guard
lowered = jax.jit(lambda x: x * 2).lower(1.0)
from jax._src.lib import _jax
backend = xla_bridge.get_backend()
options = compiler.get_compile_options(num_replicas=1, num_partitions=1)
module = lowered.compiler_ir("stablehlo")
devices = _jax.DeviceList(tuple(jax.devices()[:1]))
compiler.backend_compile_and_load(backend, module, devices, options, [])
print([each.name for each in xbuild.guard._current.programs])
"""
    status, out, said = run(tmp_path, [], ["ok"], f"import xbuild as xb\nxb.guard.install('warn')\n{past}")
    assert status == 0, said
    assert out.splitlines()[0].count("jit__lambda") == 2, out


def test_a_serialized_program_is_checked_when_it_is_loaded(tmp_path: Path) -> None:
    loading = """
import pickle
from jax.experimental import serialize_executable
if "load" in sys.argv:
    with open("saved", "rb") as file:
        serialize_executable.deserialize_and_load(*pickle.load(file))
else:
    with open("saved", "wb") as file:
        pickle.dump(serialize_executable.serialize(compiled), file)
print("end")
"""
    save = SCRIPT.replace('print("end", *sys.argv[1:])\n', loading)
    load = save.replace('if "ok" not in sys.argv:', "if False:")
    for words, script, given, expected in (([], save, [], 0), (["-m", "xbuild", "guard"], load, ["load"], 1)):
        status, out, said = run(tmp_path, words, given, script=script)
        assert status == expected, said
        assert ("end" in out) == (expected == 0)
    assert "jit_step is refused" in said
    assert "deadlock: device 1 never" in said


def test_exit_codes_and_missing_scripts(tmp_path: Path) -> None:
    (tmp_path / "plain.py").write_text("import sys; sys.exit(len(sys.argv))")
    words = [sys.executable, "-m", "xbuild", "guard"]
    environment = {**os.environ, "PYTHONPATH": str(Path.cwd())}
    for arguments, status in ((["plain.py", "--mode", "x"], 3), (["absent.py"], 2), (["-m", "json.tool", "-h"], 0)):
        done = subprocess.run(
            [*words, *arguments], cwd=tmp_path, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, done.stderr
    assert "Traceback" not in done.stderr
