"""Programs to read and run, each with `python -m examples.NAME`."""
