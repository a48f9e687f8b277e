"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from ..core.builder import Value

def batch_norm_training(
    operand: Value,
    scale: Value,
    offset: Value,
    /,
    *,
    epsilon: float,
    feature_index: int,
    name: str | None = None,
) -> Value: ...
def batch_norm_inference(
    operand: Value,
    scale: Value,
    offset: Value,
    mean: Value,
    variance: Value,
    /,
    *,
    epsilon: float,
    feature_index: int,
    name: str | None = None,
) -> Value: ...
def batch_norm_grad(
    operand: Value,
    scale: Value,
    mean: Value,
    variance: Value,
    grad_output: Value,
    /,
    *,
    epsilon: float,
    feature_index: int,
    name: str | None = None,
) -> Value: ...
