"""Reduction: the smallest program for which a condition still holds, found by removing parts and trying again."""

from .conditions import FORMS as FORMS
from .conditions import read_condition as read_condition
from .minimizing import Minimum as Minimum
from .minimizing import NotHeldError as NotHeldError
from .minimizing import ReducedText as ReducedText
from .minimizing import minimize as minimize
from .minimizing import minimize_text as minimize_text
