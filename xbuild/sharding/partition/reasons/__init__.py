"""Why the partitioner inserts a collective: records, and the sentences that are made of them."""

from .carried import AllAgree as AllAgree
from .carried import BranchResult as BranchResult
from .carried import Decides as Decides
from .carried import DrawnOnce as DrawnOnce
from .carried import IntoShard as IntoShard
from .carried import LoopState as LoopState
from .carried import OtherDevices as OtherDevices
from .carried import Output as Output
from .carried import WholeOperand as WholeOperand
from .communication import Communication as Communication
from .neighbours import Neighbours as Neighbours
from .obstacles import Alternative as Alternative
from .obstacles import Chosen as Chosen
from .operands import Operand as Operand
from .operands import Result as Result
from .partial import Partial as Partial
from .reason import Move as Move
from .reason import Reason as Reason
from .reason import Use as Use
from .story import Story as Story
