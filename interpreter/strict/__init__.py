"""The strict reading of a run: what it lost, moved, dropped or made up, and where."""

from . import checks as checks  # supplies the compiler with the checks
from .findings import Finding as Finding
from .findings import StrictFailure as StrictFailure
from .findings import StrictReport as StrictReport
from .ledger import Ledger as Ledger
from .promises import check_promises as check_promises
