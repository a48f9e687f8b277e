"""The command line: a module for each group of commands; importing a module enters its commands into `main`."""

from . import check as check
from . import completion as completion
from . import cost as cost
from . import edit as edit
from . import examples as examples
from . import play as play
from . import reference as reference
from . import run as run
from . import shard as shard
from . import show as show
from . import step as step
from . import trace as trace
from . import viz as viz
from . import why as why
from .group import main as main
