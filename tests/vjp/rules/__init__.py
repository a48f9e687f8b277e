"""Rules of single ops: numeric derivatives, ties, what is recorded, what is refused."""
