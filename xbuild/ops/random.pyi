"""Made by `make stubs` from the declarations; the words stand in the source beside it."""

from typing import Literal

from shape_inference import PrimitiveType, Shape

from ..core.builder import Builder, Value

def rng(
    a: Value,
    b: Value,
    /,
    *,
    shape: Shape | PrimitiveType,
    distribution: Literal["rng_uniform", "rng_normal"],
    name: str | None = None,
) -> Value: ...
def rng_bit_generator(
    state: Value,
    /,
    *,
    algorithm: Literal["rng_default", "rng_three_fry", "rng_philox"],
    shape: Shape | PrimitiveType,
    name: str | None = None,
) -> Value: ...
def rng_get_and_update_state(
    builder: Builder,
    *,
    delta: int,
    shape: Shape | PrimitiveType,
    name: str | None = None,
) -> Value: ...
