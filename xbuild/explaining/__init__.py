"""What is known about an instruction without a run: why it has its shape, where it is, what it depends on."""

from .explanation import Explanation as Explanation
from .explanation import explain as explain
