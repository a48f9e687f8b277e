"""Programs on other engines than this interpreter, and how their results compare."""

from .comparison import Compared as Compared
from .comparison import compare as compare
from .refusal import EngineError as EngineError
from .xla import execute_here as execute_here
from .xla import execute_on_xla as execute_on_xla
