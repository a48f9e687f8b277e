"""Real TensorFlow builds the graphs of random calls, and xb.tpu the programs: refused alike, of one structure."""
