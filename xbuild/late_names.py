"""Public names of `xbuild` that are imported at their first use: who builds programs loads no reader and no check."""

from __future__ import annotations

from collections.abc import Mapping

from .running import PUBLIC

NAMESPACES = ("mesh", "shard", "tpu")
"""Modules of `xbuild` that are namespaces and are imported at their first use."""

_BY_MODULE: dict[str, tuple[str, ...]] = {
    "checking": ("Finding", "Repair", "Replication", "ScheduleError", "Verdict", "check", "replication", "schedule"),
    "costs": ("CollectiveCost", "Cost", "CostRow", "LiveArray", "Memory", "cost"),
    "differentiation.custom_rules": ("custom_vjp",),
    "differentiation.transforms.origins": ("why",),
    "differentiation.transforms.programs": ("grad", "value_and_grad", "vjp"),
    "differentiation.transforms.tangents": ("jvp",),
    "editing": (
        "Diff", "Editor", "canonical", "diff", "edit", "eliminate_dead_code", "extract", "fingerprint", "repaired",
        "same_structure",
    ),
    "explaining": ("Explanation", "explain"),
    "files.jax_functions": ("from_jax",),
    "pages": ("write_page",),
    "pictures": ("viz",),
    "running": tuple(PUBLIC),
    "stablehlo.reading.either": ("parse",),
    "stablehlo.reading.parse": ("parse_stablehlo",),
    "stablehlo.reading.several": ("parse_stablehlo_modules",),
    "stablehlo.writing.support.refusals": ("StablehloError",),
    "text.reading.reader": ("parse_hlo",),
    "text.reading.several": ("parse_hlo_modules",),
    "text.spelling.faults": ("HloParseError", "TextFault"),
    "timelines": ("Link", "Machine", "Timeline", "machine", "timeline"),
    "traces": ("Trace",),
    "variance": ("P", "shard_map"),
}  # fmt: skip

PLACES: Mapping[str, str] = {name: f"xbuild.{module}" for module, names in _BY_MODULE.items() for name in names}
"""The module that has each of these names."""
