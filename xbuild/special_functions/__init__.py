"""Special functions, built from ops: each is a call of a named computation."""

from .angle import atan
from .bessel import bessel_i0e, bessel_i1e
from .beta import regularized_incomplete_beta
from .bits import is_inf, is_nan, is_neg_inf, is_neg_zero, is_pos_inf, next_after
from .error_function import erf_inv, erfc
from .gamma import digamma, lgamma
from .gamma_gradients import igamma_grad_a, random_gamma_grad
from .incomplete_gamma import igamma, igammac
from .zeta import polygamma, zeta

__all__ = [
    "atan", "bessel_i0e", "bessel_i1e", "digamma", "erf_inv", "erfc", "igamma", "igamma_grad_a", "igammac", "is_inf",
    "is_nan", "is_neg_inf", "is_neg_zero", "is_pos_inf", "lgamma", "next_after", "polygamma", "random_gamma_grad",
    "regularized_incomplete_beta", "zeta",
]  # fmt: skip
