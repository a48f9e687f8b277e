"""Random global programs: every op, in every element type, alone and in a row, inside of loops, branches and calls."""

from .making import random_program as random_program
