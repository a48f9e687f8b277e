"""StableHLO: programs as MLIR text of the dialects stablehlo and chlo."""
