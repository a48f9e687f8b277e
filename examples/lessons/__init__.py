"""Lessons: `xbuild learn` lists them, `xbuild learn 7` starts lesson 7."""
