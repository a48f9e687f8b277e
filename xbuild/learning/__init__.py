"""Lessons and puzzles: questions asked before a program runs, programs to be written, and how both are judged."""

from __future__ import annotations

from .claims import Claim as Claim
from .claims import about_xbuild as about_xbuild
from .claims import chosen as chosen
from .claims import hangs_on_xla as hangs_on_xla
from .claims import on_jax as on_jax
from .claims import on_stablehlo as on_stablehlo
from .claims import on_xla as on_xla
from .lesson import ask as ask
from .lesson import show as show
from .puzzle import Puzzle as Puzzle
