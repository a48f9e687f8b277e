"""Stepping through a kept run in the terminal, forward and back."""

from .shell import Shell

__all__ = ["Shell"]
