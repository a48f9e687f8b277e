"""The scheduling game: all states of a small multi-device program, and a page on which a reader moves the devices."""

from .level import Level as Level
from .level import level_of as level_of
from .page import Telling as Telling
from .page import level_page as level_page
