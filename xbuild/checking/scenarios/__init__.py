"""Second stage: simulation of every enumerated choice of branches and trip counts; `conclude` is its entry."""

from .external_waits import external_wait_findings as external_wait_findings
from .stage import Conclusion as Conclusion
from .stage import conclude as conclude
