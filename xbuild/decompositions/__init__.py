"""Matrix decompositions, built from ops: each is a call of a named computation with loops."""

from .jacobi import eigh, svd
from .triangular import lu, product_of_elementary_householder_reflectors, qr, qr_decomposition

__all__ = ["eigh", "lu", "product_of_elementary_householder_reflectors", "qr", "qr_decomposition", "svd"]
