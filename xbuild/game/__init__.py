"""The game of schedules: all states of a small program of several devices, and a page to move through them."""

from .level import Level as Level
from .level import level_of as level_of
from .page import Telling as Telling
from .page import level_page as level_page
