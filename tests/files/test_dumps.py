"""Dump folders of XLA, JAX and the guard: which files are texts of which module, at which stage."""

from __future__ import annotations

from pathlib import Path

import pytest

from xbuild.files.dumps import DumpedModule, modules_of_dump

DUMPS = Path(__file__).parents[1] / "data" / "dumps"


def folder_of(path: Path, *names: str) -> Path:
    for name in names:
        (path / name).parent.mkdir(parents=True, exist_ok=True)
        (path / name).write_text("")
    return path


def stages(module: DumpedModule) -> list[str]:
    return [stage.name for stage in module.stages]


@pytest.mark.parametrize("version", ["0.6.2", "0.10.2", "0.12.0.1"])
def test_the_dumps_of_three_versions(version: str) -> None:
    compiled, lowered = modules_of_dump(DUMPS / f"jax_{version}/xla"), modules_of_dump(DUMPS / f"jax_{version}/ir")
    assert [(module.key, stages(module)) for module in compiled] == [
        ("jit_step", ["before", "after"]), ("jit_summed", ["before", "after"]),
    ]  # fmt: skip
    assert [(module.key, stages(module)) for module in lowered] == [
        ("jit_step", ["lowered"]), ("jit_summed", ["lowered"]),
    ]  # fmt: skip


def test_the_text_after_a_pass() -> None:
    (module,) = modules_of_dump(DUMPS / "passes")
    assert stages(module) == ["before", "shardy-xla", "spmd-partitioning", "after"]
    found = {name: module.stage(name) for name in ("before", "after", "", "shardy-xla", "spmd-partitioner", "absent")}
    assert {name: stage and stage.name for name, stage in found.items()} == {
        "before": "before", "after": "after", "": "after", "shardy-xla": "shardy-xla",
        "spmd-partitioner": "spmd-partitioning", "absent": None,
    }  # fmt: skip


def test_names_of_other_backends_and_times(tmp_path: Path) -> None:
    folder = folder_of(
        tmp_path,
        "1732.module_0003.jit_a.b.sm_9.0_gpu_after_optimizations.txt",
        "1732.module_0003.jit_a.b.before_optimizations.txt",
        "module_0004.jit_c.tpu_after_optimizations_after_buffer_assignment.txt",
        "module_0004.jit_c.gpu_after_optimizations-buffer-assignment.txt",
        "module_0004.jit_c.autofusion.txt",
        "module_0005.jit_d.before_optimizations.hlo.pb",
    )
    assert [(module.name, stages(module)) for module in modules_of_dump(folder)] == [
        ("jit_a.b", ["before", "after"]), ("jit_c", ["after"]), ("jit_d", ["before"]),
    ]  # fmt: skip


def test_text_precedes_the_proto_of_one_stage(tmp_path: Path) -> None:
    names = [f"module_0001.jit_f.before_optimizations.{suffix}" for suffix in ("hlo.pb", "txt")]
    (module,) = modules_of_dump(folder_of(tmp_path, *names))
    assert [stage.path.name for stage in module.stages] == [names[1]]


def test_what_jax_lowers_is_the_first_stage_of_what_xla_compiles(tmp_path: Path) -> None:
    xla = [f"module_000{n}.jit_f.{stage}_optimizations.txt" for n in (1, 3) for stage in ("before", "cpu_after")]
    jax = [f"jax_ir000{n}_jit_f_compile.mlir" for n in (0, 1)] + ["jax_ir0002_jit_g_compile.mlir"]
    found = modules_of_dump(folder_of(tmp_path, *xla, *jax, "jax_000000_f.jaxpr.txt"))
    assert [(module.key, stages(module)) for module in found] == [
        ("jit_f", ["lowered", "before", "after"]), ("jit_f.2", ["lowered", "before", "after"]), ("jit_g", ["lowered"]),
    ]  # fmt: skip
    assert found[0].stages[0].path.name == jax[0]


def test_processes_of_a_guard(tmp_path: Path) -> None:
    names = ["process_0/jit_f.hlo.gz", "process_0/jit_f.html", "process_0/index.json", "process_10/jit_f.hlo.gz"]
    found = modules_of_dump(folder_of(tmp_path, *names, "index.html", "process_x/a.hlo"))
    assert [(module.key, module.process) for module in found] == [("process_0/jit_f", 0), ("process_10/jit_f", 10)]


def test_a_folder_without_programs(tmp_path: Path) -> None:
    assert modules_of_dump(folder_of(tmp_path, "notes.txt", "image.png")) == []
