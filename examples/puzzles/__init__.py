"""Puzzles: `xbuild puzzle` lists them, `xbuild puzzle 7 --check FILE` grades a solution."""
