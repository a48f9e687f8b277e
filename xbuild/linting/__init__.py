"""Lint: valid code that is costly or surprising, with the user's line and a fix.

Files, in the order of reading: `rules.py` (the table of rules), `facts.py` and `flow.py` (what a rule asks of a
program), then the rules by family: `communication.py`, `layouts.py` with `rematerialization.py`, `precision.py` and
`host.py`; `comments.py` (`# xbuild: allow RULE`), and `linter.py` (`lint` and its report).
"""

from __future__ import annotations

from . import communication as communication
from . import layouts as layouts
from . import precision as precision

from . import host as host  # isort: skip
from .linter import LintReport as LintReport
from .linter import lint as lint
from .rules import RULES as RULES
from .rules import Rule as Rule
