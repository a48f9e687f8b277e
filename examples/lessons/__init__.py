"""Lessons: `xbuild learn` lists them, `xbuild learn 7` takes one."""
