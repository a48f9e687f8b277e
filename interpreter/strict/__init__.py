"""Strict runs: after each instruction a check for clamped, dropped, out-of-range and undefined values, NaN and inf."""

from . import checks as checks  # supplies the compiler with the checks
from .findings import Finding as Finding
from .findings import StrictFailure as StrictFailure
from .findings import StrictReport as StrictReport
from .ledger import Ledger as Ledger
from .promises import check_promises as check_promises
