"""`prove`: programs that XLA compiles, right and wrong, and the passes that make them wrong."""

from pathlib import Path

ROOT = Path(__file__).parents[2]
