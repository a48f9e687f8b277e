"""The 23 workloads and two training steps, against NumPy, XLA:CPU and JAX without jit; `python -m benchmarks.eval`."""
