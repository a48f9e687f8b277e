"""Runtimes: records of how a runtime makes devices wait, and the machine that waits by such a record."""
