"""The stepper: a prompt in the terminal that moves through a recorded run, forward and back."""

from .shell import Shell

__all__ = ["Shell"]
