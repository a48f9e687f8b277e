"""Commands on a program on a mesh: its types in text, the check, and random arguments that fit its types."""

from __future__ import annotations

from pathlib import Path

from click.testing import CliRunner, Result

from xbuild.cli import main

ON_A_MESH = """
import xbuild as xb
def loss(x, w):
    return xb.mesh.psum(xb.reduce(x * w, 0.0, xb.add), "i")
mapped = xb.shard_map(loss, xb.Mesh(i=2), (xb.P("i"), xb.P()), xb.P())
program = mapped(xb.f32[6], xb.f32[3])
"""


def test_a_program_on_a_mesh_is_a_target(tmp_path: Path) -> None:
    path = tmp_path / "on_a_mesh.py"
    path.write_text(ON_A_MESH)
    assert "parameter.1 = f32[3]{V:i} parameter(0)" in xbuild("show", f"{path}:program", "--style", "typed").stdout
    assert xbuild("check", f"{path}:program").stdout.startswith("ok")
    strict = xbuild("run", f"{path}:program", "--random", "0", "--strict")
    assert (strict.exit_code, strict.stderr) == (0, "")


def test_random_arguments_agree_where_types_say_so(tmp_path: Path) -> None:
    path = tmp_path / "on_a_mesh.py"
    path.write_text(
        ON_A_MESH.replace("(x, w)", "(w, x)")
        .replace('(xb.P("i"), xb.P())', '(xb.P(), xb.P("i"))')
        .replace("xb.f32[6], xb.f32[3]", "xb.f32[3], xb.f32[6]")
    )
    strict = xbuild("run", f"{path}:program", "--random", "3", "--strict")
    assert (strict.exit_code, strict.stderr) == (0, "")


def xbuild(*arguments: str) -> Result:
    return CliRunner().invoke(main, arguments)
