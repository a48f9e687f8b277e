"""Races: two accesses to one buffer, of which one writes, and which no done puts in order."""

from .finding import BufferFrame as BufferFrame
from .finding import ProgramMemory as ProgramMemory
from .finding import may_race as may_race
from .finding import race_findings as race_findings
from .finding import value_text as value_text
from .memory import arrays_of as arrays_of
from .memory import is_view as is_view
from .memory import states_aliases as states_aliases
