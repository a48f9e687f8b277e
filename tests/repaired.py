"""A program after the repair that a verdict offers: each entry in the order that it says."""

from __future__ import annotations

import xbuild as xb


def repaired(program: xb.Module | xb.ModuleGroup, verdict: xb.Verdict) -> xb.ModuleGroup:
    """Every device with its entry in the order of the repair, which binds."""
    assert verdict.repair is not None, str(verdict)
    modules = {}
    for device, order in verdict.repair.schedule.items():
        module = program if isinstance(program, xb.Module) else program.modules[device]
        entry = xb.Computation(module.entry.name, order, module.entry.root)
        counts = {"num_replicas": module.num_replicas, "num_partitions": module.num_partitions}
        modules[device] = xb.Module(module.name, entry, **counts, is_scheduled=True)
    return xb.ModuleGroup(modules)
