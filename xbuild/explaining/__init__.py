"""What is known of an instruction without running its program: its shape in numbers, its place, what it depends on."""

from .explanation import Explanation as Explanation
from .explanation import explain as explain
