"""Neovim's own client drives the language server; skipped on machines without Neovim."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

pytest.importorskip("pygls", reason="the language server wants pygls")

from tests.lsp.neovim import drive
from tests.lsp.programs import HLO, INLINE, MLIR


@pytest.mark.slow
@pytest.mark.skipif(shutil.which("nvim") is None, reason="needs Neovim")
def test_neovim(tmp_path: Path) -> None:
    sources = {"train.hlo": HLO, "inline.hlo": INLINE, "while.mlir": MLIR}
    (tmp_path / "given").mkdir()
    for name, source in sources.items():
        (tmp_path / "given" / name).write_text(source)
    found = drive([tmp_path / "given" / name for name in sources], tmp_path)
    train, inline, mlir = found
    assert [each["faults"] for each in found] == [0, 0, 0]
    assert all(each["broken"] for each in found)
    assert [each["symbols"] for each in found] == [4, 2, 2]
    assert train["hover"].startswith("```hlo\n%last = f32[8]{0} get-tuple-element(%loop)")
    assert "**shape** `f32[8]{0}`, 32 bytes" in train["hover"]
    assert [(each["references"], each["renamed"], each["changed"]) for each in (train, inline)] == [(2, 2, 2)] * 2
    assert inline["hover"].startswith("```hlo\nr = f32[] reduce(x, z)")
    assert mlir["definition"] == 17
    assert mlir["renamed"] == mlir["references"] == 3
