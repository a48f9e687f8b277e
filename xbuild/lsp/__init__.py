"""The language server for HLO and MLIR text: diagnostics, hover, definitions, rename and outline in any editor."""
