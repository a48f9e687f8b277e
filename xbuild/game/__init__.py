"""The scheduling game: all states of a small multi-device program, and a page or a prompt on which it is played."""

from .level import Level as Level
from .level import level_of as level_of
from .page import Telling as Telling
from .page import level_page as level_page
from .terminal import TerminalGame as TerminalGame
