"""Strict runs, which check each result for clamped, dropped, out-of-range and undefined values, NaN and infinity."""

from . import checks as checks  # importing the module registers the checks with the compiler
from .findings import StrictFailure as StrictFailure
from .findings import StrictFinding as StrictFinding
from .findings import StrictReport as StrictReport
from .ledger import Ledger as Ledger
from .ledger import check_promises as check_promises

Finding = StrictFinding
"""Its name in `interpreter`; in `xbuild`, which has findings of the check, it is `StrictFinding`."""
