"""Shardings as texts: HLO, Shardy, the shard dialect of MLIR, and others."""
