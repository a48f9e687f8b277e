"""Lessons and puzzles: questions to answer before a program runs, programs to write, and their grades."""

from __future__ import annotations

from .lesson import Claim as Claim
from .lesson import about_xbuild as about_xbuild
from .lesson import ask as ask
from .lesson import chosen as chosen
from .lesson import hangs_on_xla as hangs_on_xla
from .lesson import on_jax as on_jax
from .lesson import on_stablehlo as on_stablehlo
from .lesson import on_xla as on_xla
from .lesson import run_program as run_program
from .lesson import show as show
from .puzzle import Puzzle as Puzzle
