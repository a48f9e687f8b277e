"""The programs of HLO text in tests/data/hlo: all whose ops are there, and those of them that are read."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from xbuild.core.op import OPS

HLO = Path(__file__).parents[1] / "data" / "hlo"
SPELLINGS = {schema.spelling for schema in OPS.values()}


def is_within(entry: dict[str, Any]) -> bool:
    """Whether all its ops are there; a custom call of LAPACK is to be refused by name."""
    lapack = {"custom-call"} if any(target.startswith("lapack_") for target in entry["custom_call_targets"]) else set()
    return entry["opcodes"].keys() <= SPELLINGS | lapack


MANIFEST = [entry for entry in json.loads((HLO / "manifest.json").read_text()) if is_within(entry)]
READ = [entry for entry in MANIFEST if not entry["custom_call_targets"]]
