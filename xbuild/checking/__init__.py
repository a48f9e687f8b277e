"""The static check for deadlock: `check` returns a verdict on programs, `schedule` an order in which they run."""

from .model.verdict import Finding as Finding
from .model.verdict import Refused as Refused
from .model.verdict import Repair as Repair
from .model.verdict import Verdict as Verdict
from .replicated_values import Replication as Replication
from .replicated_values import replication as replication
from .stages import ScheduleError as ScheduleError
from .stages import check as check
from .stages import schedule as schedule
