"""Pictures that move: pages on which a reader changes a setting and sees what follows, each in one file."""

from .page import PICTURES as PICTURES
from .page import moving_page as moving_page
