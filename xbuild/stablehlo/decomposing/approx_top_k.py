"""JAX's custom call for approximate top-k: the first elements of a sort by its comparator, as XLA has it."""

from __future__ import annotations

from shape_inference import Shape

from ..reading.operation import Reading
from ..reading.rules import Results, Rule, around, both
from ..syntax.attributes import Record, Symbol


@around(*both("custom_call"))
def approx_top_k(op: Reading, called: Rule) -> Results:
    """The exact answer, which has every recall; the second half of the operands are starts, and not needed."""
    if op.attributes.get("call_target_name") != "ApproxTopK":
        return called(op)
    values = op.operands[: len(op.operands) // 2]
    names = op.get("called_computations", ())
    if len(names) != 1 or not isinstance(names[0], Symbol) or len(values) != len(op.shapes) or not values:
        op.fail("arity_mismatch", "ApproxTopK takes one comparator, and as many starts as arrays, which it gives")
    op.ignore(*op.attributes)
    comparator = op.scope.reader.function(op, names[0].name)
    dim = _dimension(op)
    whole = op.emit("sort", values, to_apply=comparator, dimension=dim, is_stable=False)
    parts = (whole,) if len(values) == 1 else op.elements(whole, len(values))
    kept = []
    for part, shape in zip(parts, op.shapes, strict=True):
        if not isinstance(shape, Shape) or not isinstance(part.shape, Shape) or shape.rank != part.shape.rank:
            op.fail("shape_mismatch", f"{shape} is no slice of {part.shape}")
        ends = tuple(
            size if d == dim else n for d, (n, size) in enumerate(zip(part.shape.dims, shape.dims, strict=True))
        )
        begins, ones = (0,) * shape.rank, (1,) * shape.rank
        record = op.result if len(parts) == 1 else op.emit
        kept.append(record("slice", part, start_indices=begins, limit_indices=ends, strides=ones))
    return tuple(kept)


def _dimension(op: Reading) -> int:
    """The dimension along which the largest are looked for."""
    given = op.attributes.get("mhlo.backend_config", op.attributes.get("backend_config"))
    found = given.fields.get("reduction_dim") if isinstance(given, Record) else None
    if type(found) is not int:
        op.fail("missing_attribute", "ApproxTopK: reduction_dim is missing in its backend_config")
    return found
