"""Matrix decompositions, built from ops: each is a call of a named computation with loops."""

from .eigen import eigh
from .lu import lu
from .orthogonal import product_of_elementary_householder_reflectors, qr, qr_decomposition
from .singular import svd

__all__ = ["eigh", "lu", "product_of_elementary_householder_reflectors", "qr", "qr_decomposition", "svd"]
