"""The grammar of MLIR text as StableHLO programs use it: parses text into plain trees of operations."""
