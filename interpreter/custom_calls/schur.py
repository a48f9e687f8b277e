"""The custom call of LAPACK for Schur decompositions, computed by SciPy, which is installed with JAX."""

from __future__ import annotations

from typing import Any

import numpy as np

from shape_inference import XbuildError
from xbuild.core.attributes import Array
from xbuild.core.graph import Instruction

from .stacks import names, results, stacked
from .table import letter, target


@target(*names("gees"))
def gees(instruction: Instruction, operand: Array) -> tuple[Any, ...]:
    """The Schur form, the Schur vectors, the eigenvalues (of real matrices in two parts), how many sorted, and info.

    Raises XbuildError (missing_extra) where SciPy is not installed.
    """
    try:
        from scipy.linalg.lapack import get_lapack_funcs
    except ImportError as error:
        raise XbuildError(
            "missing_extra",
            f"a Schur decomposition needs SciPy, which comes with JAX: pip install 'xbuild-hlo[xla]' ({error}) "
            "[missing_extra]",
        ) from error
    routine = get_lapack_funcs("gees", (operand,))
    wants_vectors = letter(instruction, "mode", "V") == "V"

    def decompose(matrix: Array) -> tuple[Any, ...]:
        form, _, *values, vectors, _, info = routine(lambda *_: None, matrix, compute_v=int(wants_vectors), sort_t=0)
        return form, vectors if wants_vectors else np.zeros_like(matrix), *values, 0, info

    return stacked(decompose, results(instruction), operand)
