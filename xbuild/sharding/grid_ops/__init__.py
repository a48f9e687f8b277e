"""The ops of MLIR's shard dialect, each recorded as HLO ops of a program for the devices of a grid."""
