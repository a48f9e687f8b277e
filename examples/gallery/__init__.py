"""All pictures in the documentation, drawn by one command: `python -m examples.gallery`."""
