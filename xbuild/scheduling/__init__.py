"""The verdict before the run: may these programs deadlock, in which order can they run, and what would mend them."""

from .check import ScheduleError as ScheduleError
from .check import check as check
from .check import schedule as schedule
from .verdict import Finding as Finding
from .verdict import Repair as Repair
from .verdict import Verdict as Verdict
