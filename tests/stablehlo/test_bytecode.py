"""MLIR bytecode and serialized exports: jaxlib turns them to text, and where it is missing the message says so."""

from __future__ import annotations

import importlib.util
import json
import subprocess
import sys
from base64 import b64decode
from pathlib import Path
from typing import Any

import pytest

import xbuild as xb
from tests.commands.command_line import xbuild
from xbuild.stablehlo.reading.bytecode import MAGIC, bytecode_in

pytestmark = pytest.mark.oracle
_EMIT = """
import json, os
from base64 import b64encode
os.environ["JAX_PLATFORMS"] = "cpu"
import jax, jax.numpy as jnp
from jax._src.interpreters import mlir
function, shape = jax.jit(lambda x: jnp.sin(x) @ x), jax.ShapeDtypeStruct((3, 3), jnp.float32)
lowered = function.lower(shape)
portable = jax.export.export(function)(shape).mlir_module_serialized
plain = mlir.module_to_bytecode(lowered.compiler_ir("stablehlo"))
print(json.dumps([lowered.as_text(), *(b64encode(each).decode() for each in (portable, plain))]))
"""


@pytest.fixture(scope="module")
def emitted() -> list[Any]:
    """A program of JAX as text, as a portable artifact, and as bytecode of this version."""
    pytest.importorskip("jax")
    child = subprocess.run([sys.executable, "-c", _EMIT], capture_output=True, text=True, check=True)
    text, *others = json.loads(child.stdout)
    return [text, *map(b64decode, others)]


def _serialized(bytecode: bytes) -> bytes:
    """Bytecode as it stands in the buffer that jax.export serializes: after a table, with its length before it."""
    return bytes(64) + len(bytecode).to_bytes(4, "little") + bytecode + b"\x00tail"


def test_bytes_are_the_program_that_the_text_is(emitted: list[Any]) -> None:
    text, portable, plain = emitted
    wanted = xb.parse(text)
    for given in (portable, plain, _serialized(portable)):
        assert xb.same_structure(xb.parse(given), wanted)
        assert xb.same_structure(xb.parse(given.decode(errors="surrogateescape")), wanted)
        assert len(xb.parse_stablehlo_modules(given)) == 1
    assert xb.parse_stablehlo(portable).entry.root.source.file == "<string>"  # type: ignore[union-attr]


def test_commands_take_files_of_bytecode(emitted: list[Any], tmp_path: Path) -> None:
    for name in ("step.mlirbc", "step.mlir"):
        (tmp_path / name).write_bytes(emitted[1])
        done = xbuild("show", tmp_path / name)
        assert done.exit_code == 0
        assert "dot(" in done.output


@pytest.mark.parametrize("given", [MAGIC, MAGIC + b"junk", MAGIC + bytes(300)])
def test_damaged_bytecode_is_refused(given: bytes) -> None:
    pytest.importorskip("jaxlib")
    with pytest.raises(xb.HloParseError, match="jaxlib does not read this MLIR bytecode: "):
        xb.parse(given, "step.mlir")


def test_without_jaxlib_the_message_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(xb.HloParseError, match=r"pip install 'xbuild-hlo\[xla\]'") as caught:
        xb.parse(MAGIC + b"\x00")
    assert caught.value.kind == "missing_extra"


@pytest.mark.parametrize(
    ("raw", "found"),
    [
        (b"module { }", None),
        (b"// ML\xefR", None),
        (bytes(8) + MAGIC, None),
        (b"\x00\x00\x00\x00\xff\xff\xff\xff" + MAGIC, None),
        (bytes(4) + (6).to_bytes(4, "little") + MAGIC + b"abcd", MAGIC + b"ab"),
    ],
)
def test_bytecode_inside_other_bytes(raw: bytes, found: bytes | None) -> None:
    assert bytecode_in(raw) == found


def test_odd_text_is_no_bytecode() -> None:
    for text in ("\x00\ud800" + MAGIC.decode(errors="surrogateescape"), "\x00module", "\udcef"):
        with pytest.raises(xb.HloParseError):
            xb.parse(text)
