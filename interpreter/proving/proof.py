"""`prove`: whether the program that a compiler made computes the function of the program that it was given."""

from __future__ import annotations

import os
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attrs import frozen

from shape_inference import refuse
from xbuild.core.graph import Computation, Module, ModuleGroup
from xbuild.core.issues import Issue
from xbuild.core.report_text import MORE, WIDTH, Line, LineReport, folded, indented, more_line
from xbuild.files import targets
from xbuild.files.jax_functions import lowered_and_compiled
from xbuild.files.programs import is_of_jax
from xbuild.properties.mesh import Mesh
from xbuild.sharding.hlo_text import hlo_text
from xbuild.sharding.sharding import Sharding
from xbuild.variance import P

from ..fields import Equivalence, equivalent
from ..fields.draws import shapes_of
from ..fields.layouts import shardings_of_specs
from ..rules.limits import Limits
from .pairs import ProgramPair, Shardings, pair_of, program_of, stated_mesh
from .result_layouts import ResultLayouts


@frozen(kw_only=True, eq=False)
class Proof(LineReport):
    """The verdict of `xb.prove`.

    `verdict` is the verdict of `xb.equivalent`: equal, different or undecided, with its assumptions and the place where
    the programs differ. `layouts` has one sentence for each result whose layout is not stated in any text and had to be
    determined with runs.
    """

    verdict: Equivalence
    layouts: tuple[str, ...] = ()

    def __bool__(self) -> bool:
        """Whether the programs are equal."""
        return bool(self.verdict)

    @property
    def kind(self) -> str:
        """The verdict in one word: equal, different or undecided."""
        return self.verdict.kind

    @property
    def issues(self) -> tuple[Issue, ...]:
        """The verdict as an issue: an error if the programs are different, a warning if it is undecided."""
        return self.verdict.issues

    def lines(self, all: bool = False, width: int = WIDTH, more: str = MORE) -> Iterator[Line]:
        """Return the lines of the report: those of the verdict, then the layouts that were determined with runs."""
        yield from self.verdict.lines(all, width, more)
        sentences, hidden = folded(self.layouts, all)
        for sentence in sentences:
            yield from indented(sentence, width, "dim")
        if hidden:
            yield more_line(hidden, more)

    def to_dict(self) -> dict[str, Any]:
        """Return the verdict as plain data."""
        return {**self.verdict.to_dict(), "layouts": list(self.layouts)}


def prove(
    program: Any,
    *given: Any,
    in_specs: Any = None,
    out_specs: Any = None,
    mesh: Mesh | None = None,
    domain: Mapping[int, Any] | None = None,
    seed: int = 0,
    limits: Limits | None = None,
    kwargs: Mapping[str, Any] | None = None,
    **named: Any,
) -> Proof:
    """Prove that a compiler preserved what a program computes, or show an input on which the results differ.

    `xb.prove(function, *arguments)` takes a JAX function, plain or jitted, with arguments or their shapes, such as
    xb.f32[2, 3]; `named` and `kwargs` are its keyword arguments. JAX lowers and compiles the function, but does not run
    it. The lowered program is compared with the compiled one. A Traced or Lowered needs no arguments.

    `xb.prove(before, after)` takes two programs of any form that `xb.equivalent` takes: a global program and a
    per-device program, two global programs, or two per-device programs. `xb.prove(dump)` takes a dump folder with one
    module, and compares its first text with its last.

    The layout of each array on the devices is taken from the shardings of the compiled function, or from the texts.
    `in_specs` and `out_specs` state different layouts. Each is one P for all arrays, or a list with one entry for each
    array: a P, a Sharding, or the slices for each device. A P contains axes of `mesh`, which defaults to the mesh of
    the program. If nothing states how results are sharded, runs show which part each device holds. A program with
    per-device parts (`jax.shard_map`) is partitioned by `xb.shard.partition`.

    `domain`, `seed` and `limits` are passed to `xb.equivalent`, which decides. The proof is true if the programs are
    equal. docs/proving.md explains what a proof rests on.

    Raises TypeError if the arguments are none of these. Raises invalid_attribute if specs do not fit the program or the
    mesh, and any error that `xb.equivalent`, `xb.shard.partition` or JAX raises.

    >>> import xbuild as xb
    >>> before = xb.parse_hlo('''HloModule before, num_partitions=2
    ... ENTRY e {
    ...   x = f32[8] parameter(0), sharding={devices=[2]<=[2]}
    ...   ROOT y = f32[8] add(x, x), sharding={devices=[2]<=[2]}
    ... }''')
    >>> after = '''HloModule after, num_partitions=2
    ... ENTRY e_spmd {
    ...   x = f32[4] parameter(0), sharding={devices=[2]<=[2]}
    ...   two = f32[4] constant({2, 2, 2, 2})
    ...   ROOT y = f32[4] multiply(x, two)
    ... }'''
    >>> xb.prove(before, after).kind, xb.prove(before, after.replace("multiply", "add")).kind
    ('equal', 'different')

    Source: docs/equivalence.md; JAX, Ahead-of-time lowering and compilation.
    """
    before, after = _programs(program, given, {**named, **(kwargs or {})})
    inputs = _layouts(in_specs, before, after, "in_specs", mesh)
    outputs = _layouts(out_specs, before, after, "out_specs", mesh)
    names = None if given and before is program else ("the lowered program", "the compiled program")
    return prove_pair(pair_of(before, after, inputs, outputs), domain=domain, seed=seed, limits=limits, names=names)


def prove_pair(pair: ProgramPair, **options: Any) -> Proof:
    """The proof of a pair of programs; if runs show several layouts of results, of the first one that is not refuted.

    `options` are those of `equivalent`.
    """
    refuted = None
    for variant, outputs in pair.variants():
        verdict = equivalent(variant.one, variant.other, inputs=variant.inputs, outputs=variant.outputs, **options)
        sentences = () if pair.unstated is None else tuple(_sentences(pair.unstated, outputs))
        if verdict.kind != "different":
            return Proof(verdict=verdict, layouts=sentences)
        refuted = refuted or Proof(verdict=verdict, layouts=sentences)
    assert refuted is not None
    difference = refuted.verdict.difference  # no output has it if types differ or the check refuses the other program
    is_located = difference is not None and difference.output is not None
    if is_located and pair.unstated is not None and not pair.unstated.is_known:
        reason = "layouts of results, which no text states and no run shows"
        return Proof(verdict=Equivalence(kind="undecided", undecided=(reason,)))
    return refuted


def _sentences(unstated: ResultLayouts, outputs: Shardings) -> Iterator[str]:
    """A sentence for each result that is split in a way that only runs showed."""
    for number, stated in enumerate(outputs or ()):
        if stated is not None:
            shape = unstated.shapes[number][0]
            how = hlo_text(stated, shape.rank) if isinstance(stated, Sharding) else "a tile of it for each device"
            yield f"no text states the layout of output {number}; runs show {how}"


# ----------------------------------------------------------------------------
# The two programs, and the layouts that specs state


def _programs(program: Any, given: Sequence[Any], named: Mapping[str, Any]) -> tuple[Any, Any]:
    """The program before and after it was compiled."""
    kind = type(program).__name__
    is_stage = is_of_jax(program) and kind in ("Traced", "Lowered")
    if (is_stage and not given) or (kind != "Compiled" and _is_function(program)):
        return lowered_and_compiled(program, given, named)
    if named:
        raise TypeError(f"prove: unexpected keyword arguments: {', '.join(named)}")
    if len(given) == 1:
        return program, given[0]
    path = os.fspath(program) if isinstance(program, str | os.PathLike) else ""
    if not given and targets.is_dump(targets.split_target(path)[0]):
        return targets.first_and_last(path)
    if not given and kind == "Compiled":
        raise TypeError("prove: a compiled function does not contain its lowered program; pass lowered and compiled")
    raise TypeError(
        f"prove: expected a JAX function with its arguments, a dump, or two programs, got {kind} and {len(given)} "
        "other arguments"
    )


def _is_function(program: Any) -> bool:
    """Whether an object is a function to lower, and not a program."""
    is_jax = is_of_jax(program) and type(program).__name__ not in ("Traced", "Lowered", "Compiled", "Exported")
    is_program = isinstance(program, Computation | Module | ModuleGroup) or hasattr(program, "module")
    return is_jax or (callable(program) and not is_program)


def _layouts(specs: Any, before: Any, after: Any, name: str, mesh: Mesh | None) -> Shardings:
    """The layouts that specs state; None without specs."""
    if specs is None:
        return None
    one = program_of(before)
    entry = (one.modules[0] if not hasattr(one, "entry") else one).entry
    shapes = shapes_of(entry.parameters if name == "in_specs" else [entry.root])
    several = [specs] * len(shapes) if _is_spec(specs) else list(specs)
    if len(several) != len(shapes):
        what = "parameters" if name == "in_specs" else "results"
        message = f"prove: {name} has {len(several)} entries, but the {what} have {len(shapes)} arrays"
        hint = "pass one spec for all arrays, or one for each; pass None if a text states the spec"
        refuse("invalid_attribute", message, hint)
    found: list[Any] = []
    for number, (spec, shape) in enumerate(zip(several, shapes, strict=True)):
        if _is_spec(spec):
            mesh = mesh or stated_mesh(one, program_of(after))
            if mesh is None:
                message = f"prove: {name} contains mesh axes, but neither program specifies a mesh"
                refuse("invalid_attribute", message, "pass the mesh, such as mesh=xb.Mesh(a=2, b=4)")
            spec = P(*spec, unreduced=getattr(spec, "unreduced", ())) if not isinstance(spec, P) else spec
            spec.check(mesh, f"{name}[{number}]")
            spec.local(mesh, shape, f"{name}[{number}]")
            (spec,) = shardings_of_specs(mesh, spec)
        found.append(spec)
    return found


def _is_spec(given: Any) -> bool:
    """Whether an object is a P, or the PartitionSpec of some version of JAX."""
    return isinstance(given, P) or type(given).__name__ in ("P", "PartitionSpec")
