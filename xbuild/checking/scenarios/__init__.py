"""The scenario stage of the check: simulates every enumerated choice of branches and trip counts (`conclude`).

The rest is what the game of schedules reads: the scenarios, and the events of each device in each of them.
"""

from .scenarios import Scenarios as Scenarios
from .scenarios import Traces as Traces
from .search import order_parts as order_parts
from .simulate import ALL as ALL
from .simulate import MOST_EVENTS as MOST_EVENTS
from .simulate import EventKey as EventKey
from .simulate import SimulatedEvent as SimulatedEvent
from .simulate import TooLongError as TooLongError
from .stage import Conclusion as Conclusion
from .stage import conclude as conclude
from .stage import external_wait_findings as external_wait_findings
