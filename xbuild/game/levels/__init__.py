"""The shipped levels: small programs, from one send and one recv to groups that overlap and programs to repair."""

from ..shipped import ShippedLevel as ShippedLevel
from ..shipped import in_order as in_order
from . import asynchronous as asynchronous
from . import collectives as collectives
from . import data as data
from . import repairs as repairs
from . import transfers as transfers
