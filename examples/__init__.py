"""Example programs; `python -m examples.NAME` runs one."""
