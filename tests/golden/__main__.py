"""Write the kept texts anew: `python -m tests.golden`; look at the difference before it is kept."""

from __future__ import annotations

from tests.golden.kept import FOLDER, TEXTS

for file, text in TEXTS.items():
    (FOLDER / file).write_text(text(), encoding="utf-8")
