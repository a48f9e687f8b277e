"""The guard against slowdowns: this tree against the commit in `benchmarks/baseline`; `python -m benchmarks.quick`."""
