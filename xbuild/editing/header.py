"""Header annotations of a module that describe the entry; after an edit, those that still hold are kept."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from typing import Any

from shape_inference import AnyShape, TupleShape, compatible

from ..core.graph import Computation
from ..text.codecs.header import LAYOUT
from ..text.spelling.notes import Raw

# {out_index}: (parameter, {index}, kind), and (parameter, {index})
_ALIAS = re.compile(r"\{\s*([\d,\s]*)\}\s*:\s*\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}[^()]*\)")
_DONOR = re.compile(r"\(\s*(\d+)\s*,\s*\{([\d,\s]*)\}\s*\)")
_PARAMETERS, _OUTPUT = (f"allow_spmd_sharding_propagation_to_{word}" for word in ("parameters", "output"))


def kept_annotations(annotations: Mapping[str, Any], before: Computation, after: Computation) -> Mapping[str, Any]:
    """The annotations that hold for the new entry: those about parameters and results whose shapes are unchanged."""
    if before is after or not annotations:
        return annotations
    shapes = [parameter.shape for parameter in after.parameters]
    was = [parameter.shape for parameter in before.parameters]
    is_same = [compatible(new, old) for new, old in zip(shapes, was, strict=False)]
    same_parameters = len(shapes) == len(was) and all(is_same)
    same_result = compatible(before.root.shape, after.root.shape)
    if same_parameters and same_result:
        return annotations

    def is_donor(number: str) -> bool:
        return int(number) < len(is_same) and is_same[int(number)]

    def is_alias(output: str, number: str) -> bool:
        return is_donor(number) and _same_at(output, before.root.shape, after.root.shape)

    kept = dict(annotations)
    _filter(kept, "input_output_alias", _ALIAS, is_alias)
    _filter(kept, "buffer_donor", _DONOR, is_donor)
    kept.pop(LAYOUT, None)
    for key, holds in ((_PARAMETERS, same_parameters), (_OUTPUT, same_result)):
        if not holds and str(kept.get(key, "")).startswith("{"):
            kept.pop(key)
    return kept


def _filter(kept: dict[str, Any], key: str, entry: re.Pattern[str], holds: Callable[..., bool]) -> None:
    """Remove the entries of an annotation that no longer hold, and the annotation if no entry is left."""
    if key not in kept:
        return
    found = list(entry.finditer(kept[key]))
    left = [match[0] for match in found if holds(*match.groups()[: entry.groups - 1])]
    if len(left) < len(found):
        kept.pop(key)
        if left:
            kept[key] = Raw(f"{{ {', '.join(left)} }}")


def _same_at(index: str, before: AnyShape, after: AnyShape) -> bool:
    """Whether both results have the same shape at an index such as `0,1`."""
    for each in map(int, re.findall(r"\d+", index)):
        for shape in (before, after):
            if not isinstance(shape, TupleShape) or each >= len(shape):
                return False
        before, after = before.elements[each], after.elements[each]  # type: ignore[union-attr]
    return compatible(before, after)
