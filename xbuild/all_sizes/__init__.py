"""The check for all numbers of devices: schemes, which hold for any number, and proofs that none of them deadlocks."""

from .check import SizesProof as SizesProof
from .check import SizesVerdict as SizesVerdict
from .check import check_all as check_all
from .schemes import Scheme as Scheme
from .schemes import SchemeDevice as SchemeDevice
from .sizes import Size as Size
