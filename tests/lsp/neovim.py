"""Neovim, without a window, drives the language server with its own client.

    python -m tests.lsp.neovim FILE...

Prints a line for each file: seconds to the first diagnostics, what was asked, and what came back.
"""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from tests.lsp.client import ROOT, read

SCRIPT = Path(__file__).with_suffix(".lua")


def drive(paths: list[Path], folder: Path, seconds: float = 600) -> list[dict[str, Any]]:
    """What Neovim got for each file; compressed files are unpacked in the folder."""
    files = []
    for path in paths:
        file = folder / path.name.removesuffix(".gz")
        file.write_text(read(path))
        files.append(str(file))
    results = folder / "results.jsonl"
    environment = {
        **os.environ,
        "PYTHON": sys.executable,
        "FILES": "\n".join(files),
        "RESULTS": str(results),
        "ROOT": str(ROOT),
        "XDG_STATE_HOME": str(folder),
        "XDG_DATA_HOME": str(folder),
    }
    command = ["nvim", "--headless", "-u", "NONE", "-i", "NONE", "-n", "+luafile " + str(SCRIPT)]
    subprocess.run(command, env=environment, cwd=ROOT, timeout=seconds, check=True, capture_output=True)
    return [json.loads(line) for line in results.read_text().splitlines()]


def main() -> None:
    if shutil.which("nvim") is None:
        raise SystemExit("this needs Neovim: apt-get install neovim")
    with tempfile.TemporaryDirectory() as folder:
        found = drive(list(map(Path, sys.argv[1:])), Path(folder))
    names = ("faults", "references", "symbols", "folds", "renamed")
    print(f"{'file':58} {'first':>7} {'broken':>7} {' '.join(f'{name:>10}' for name in names)} hover")
    for each in found:
        cells = " ".join(f"{each[name]:>10,}" for name in names)
        hover = each["hover"].replace("\n", " ")[:60]
        print(f"{Path(each['file']).name:58} {each['seconds']:>6.2f}s {each['broken']:>7} {cells} {hover}")


if __name__ == "__main__":
    main()
