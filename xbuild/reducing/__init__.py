"""Reduction: the smallest program for which a condition still holds, found by removing parts and trying again."""

from .conditions import FORMS as FORMS
from .conditions import read_condition as read_condition
from .minimize import NotHeldError as NotHeldError
from .minimize import Reduction as Reduction
from .minimize import TextReduction as TextReduction
from .minimize import minimize as minimize
from .minimize import minimize_text as minimize_text
