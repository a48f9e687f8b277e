"""All pictures that the documentation shows, made by one command: `python -m examples.gallery`."""
