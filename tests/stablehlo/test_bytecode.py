"""MLIR bytecode, serialized exports and HLO protos: jaxlib turns them to text, or a message says it is missing."""

from __future__ import annotations

import gzip
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
from xbuild.stablehlo.reading.either import MAGIC, as_text, bytecode_in, module_proto_in

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
    with pytest.raises(xb.HloParseError, match="jaxlib cannot read this MLIR bytecode: "):
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


_PROTO = """
import json, sys
from base64 import b64encode
try:
    from jaxlib import _hlo
except ImportError:
    from jaxlib import _jax as _hlo
print(b64encode(_hlo.hlo_module_from_text(sys.stdin.read()).as_serialized_hlo_module_proto()).decode())
"""
_MANY = ", ".join(map(str, range(40)))
_FLAT = "use_global_device_ids=true"
_HLO = f"""HloModule gather, entry_computation_layout={{(s32[40]{{0}})->s32[80]{{0}}}}, num_partitions=2

ENTRY main {{
  x = s32[40]{{0}} parameter(0)
  c = s32[40]{{0}} constant({{{_MANY}}})
  y = s32[40]{{0}} add(x, c)
  ROOT g = s32[80]{{0}} all-gather(y), channel_id=1, replica_groups={{{{0,1}}}}, dimensions={{0}}, {_FLAT}
}}
"""


def _field(number: int, content: bytes) -> bytes:
    length = len(content)
    return bytes([number << 3 | 2, length & 0x7F | 0x80, length >> 7]) + content


@pytest.fixture(scope="module")
def proto() -> bytes:
    """A HloModuleProto."""
    pytest.importorskip("jaxlib")
    child = subprocess.run([sys.executable, "-c", _PROTO], input=_HLO, capture_output=True, text=True, check=True)
    return b64decode(child.stdout)


def test_protos_are_the_program_that_the_text_is(proto: bytes) -> None:
    wanted = xb.parse(_HLO)
    for given in (proto, _field(1, proto), _field(1, _field(1, proto)) + _field(4, b"cpu")):
        module = xb.parse(given)
        assert module.to_hlo() == wanted.to_hlo()
        assert module.entry["c"].attributes.literal.tolist() == [*range(40)]
        assert xb.parse(given.decode(errors="surrogateescape")).to_hlo() == wanted.to_hlo()


def test_commands_take_files_of_protos(proto: bytes, tmp_path: Path) -> None:
    for name, content in (("step.pb", proto), ("hlo.pb", _field(1, proto)), ("step.pb.gz", gzip.compress(proto))):
        (tmp_path / name).write_bytes(content)
        done = xbuild("check", tmp_path / name)
        assert done.exit_code == 0, done.output
        assert "1 collective" in done.output
        assert xbuild("run", "--random", "0", tmp_path / name).exit_code == 0


@pytest.mark.parametrize(
    "text", ["\n", "\nHloModule m\n", "\n" * 300, "\n\x12FullyUnrolled.163", "\n\x02ab\x12\x7fxy", ""]
)
def test_text_that_begins_with_a_newline_is_no_proto(text: str) -> None:
    assert module_proto_in(text.encode()) is None
    assert as_text(text) == text


def test_a_damaged_proto_is_refused(proto: bytes, tmp_path: Path) -> None:
    (tmp_path / "cut.pb").write_bytes(proto[: len(proto) // 2])
    done = xbuild("check", tmp_path / "cut.pb")
    assert done.exit_code
    assert "Traceback" not in done.output
    with pytest.raises(xb.HloParseError, match="jaxlib cannot read this serialized HLO module: "):
        xb.parse(_field(1, b"\x01\x02") + _field(3, b"\xff\xff\xff"), "step.pb")


def test_without_jaxlib_the_message_for_a_proto_names_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.util, "find_spec", lambda name: None)
    with pytest.raises(xb.HloParseError, match="reading a serialized HLO module needs jaxlib") as caught:
        xb.parse(_field(1, b"name") + _field(2, b"entry"))
    assert caught.value.kind == "missing_extra"
