"""Derivatives of whole programs: what may be asked of one, and the program that answers."""
