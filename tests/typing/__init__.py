"""Programs for type checkers to read."""
