"""The custom call for products of a sparse matrix in compressed row format."""

from __future__ import annotations

import numpy as np

from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

from .table import target


@target("cpu_csr_sparse_dense_ffi")
def csr_times_dense(instruction: Instruction, elements: Array, ends: Array, columns: Array, dense: Array) -> Array:
    """The product of a sparse and a dense matrix; row i has the elements from ends[i] to ends[i + 1]."""
    product = np.zeros((len(ends) - 1, *dense.shape[1:]), dense.dtype)
    count = int(ends[-1])
    rows = np.repeat(np.arange(len(product)), np.diff(ends))
    np.add.at(product, rows, (elements[:count] * dense[columns[:count]].T).T)
    return product
