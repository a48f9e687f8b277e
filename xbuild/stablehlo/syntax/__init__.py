"""The grammar of MLIR text, as far as StableHLO programs use it: from text to plain trees of operations."""
