"""Comparison with XLA's partitioners: programs of JAX partitioned by Shardy, by GSPMD and here."""

from .rows import Row as Row
from .rows import rows as rows
