"""Programs of JAX with the shardings that people state: `PROGRAMS` of `listed.py`. Importing it loads JAX."""
