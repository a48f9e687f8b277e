"""Functions of arrays with the names of NumPy and jax.nn, composed of ops: sums and means, softmax, activations."""

from .activations import (  # fmt: skip
    elu,
    gelu,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    logsumexp,
    one_hot,
    relu,
    relu6,
    sigmoid,
    silu,
    softmax,
    softplus,
    swish,
)
from .reductions import all, amax, amin, any, argmax, argmin, mean, prod, std, sum, var
from .views import expand_dims, squeeze, swapaxes

__all__ = [
    "all", "amax", "amin", "any", "argmax", "argmin", "elu", "expand_dims", "gelu", "leaky_relu", "log_sigmoid",
    "log_softmax", "logsumexp", "mean", "one_hot", "prod", "relu", "relu6", "sigmoid", "silu", "softmax", "softplus",
    "squeeze", "std", "sum", "swapaxes", "swish", "var",
]  # fmt: skip
