"""Functions of whole arrays by the names of NumPy and jax.nn, composed of ops: sums and means, softmax, activations."""

from .activations import (
    elu,
    gelu,
    leaky_relu,
    log_sigmoid,
    relu,
    relu6,
    sigmoid,
    silu,
    softplus,
    swish,
)  # fmt: skip
from .normalized import log_softmax, logsumexp, one_hot, softmax
from .reductions import all, amax, amin, any, argmax, argmin, prod, sum
from .statistics import mean, std, var
from .views import expand_dims, squeeze, swapaxes

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "elu", "expand_dims", "gelu", "leaky_relu", "log_sigmoid",
    "log_softmax", "logsumexp", "mean", "one_hot", "prod", "relu", "relu6", "sigmoid", "silu", "softmax", "softplus",
    "squeeze", "std", "sum", "swapaxes", "swish", "var",
]  # fmt: skip
