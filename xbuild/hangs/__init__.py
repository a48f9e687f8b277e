"""From the dumps of a stuck job to the ranks that caused it: Flight Recorder, NCCL RAS and Inspector, XLA's logs.

`read_job` reads the dumps into one form (`records.py`), and `diagnose` finds the ranks at fault:

- `reading.py` finds the format of each file. `flight_recorder.py`, `nccl.py` and `logs.py` read the formats, and
  `plain_pickles.py` reads pickles without running them.
- `waits.py` builds the wait-for graph over all groups and finds its roots.
- `diagnosis.py` has the result, as text and as plain data.
"""

from .diagnosis import Diagnosis, diagnose
from .reading import read_job
from .records import KINDS, DumpError, Root, StuckJob

__all__ = ["KINDS", "Diagnosis", "DumpError", "Root", "StuckJob", "diagnose", "read_job"]
