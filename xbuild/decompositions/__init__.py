"""Decompositions of matrices, composed of ops: small named computations with loops in them."""

from .eigen import eigh
from .lu import lu
from .orthogonal import product_of_elementary_householder_reflectors, qr, qr_decomposition
from .singular import svd

__all__ = ["eigh", "lu", "product_of_elementary_householder_reflectors", "qr", "qr_decomposition", "svd"]
