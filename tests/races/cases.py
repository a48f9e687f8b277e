"""Races by hand: a scheduled text each, with the instructions that a report names, and correct versions without one.

The first name is the instruction that overwrites, the second the one that reads, or writes at the same time.
"""

from __future__ import annotations

from attrs import frozen

HEAD = "HloModule m, is_scheduled=true, replica_count=2"
ADD = "add { a = f32[] parameter(0)\n b = f32[] parameter(1)\n ROOT c = f32[] add(a, b) }"
MADE = "new = f32[1] constant({7})\n at = s32[] constant(1)"
WRAPPED = "wrapped { x = f32[4] parameter(0)\n n = f32[1] parameter(1)\n i = s32[] parameter(2)\n" + (
    " ROOT d = f32[4] dynamic-update-slice(x, n, i) }"
)
PAIRS = "source_target_pairs={{0,1},{1,0}}"
CONTEXT = "((f32[4], f32[1], s32[]), f32[4], s32[])"


@frozen
class Case:
    """A program, by the lines of its entry and its other computations, and the two instructions that its race names."""

    name: str
    lines: str
    races: tuple[tuple[str, str], ...] = ()
    header: str = ""
    others: str = ""
    runs: bool = True

    @property
    def text(self) -> str:
        header = f"{HEAD}{', ' if self.header else ''}{self.header}"
        entry = f"ENTRY main {{\n x = f32[4] parameter(0)\n {MADE}\n{self.lines}\n}}"
        return "\n".join((header, ADD, WRAPPED, self.others, entry))


PAIR = {
    "all-reduce": ("s = f32[4] all-reduce-start(x), to_apply=add", "f32[4] all-reduce-done(s)"),
    "all-gather": ("s = (f32[4], f32[8]) all-gather-start(x), dimensions={0}", "f32[8] all-gather-done(s)"),
    "collective-permute": (
        f"s = (f32[4], f32[4]) collective-permute-start(x), {PAIRS}", "f32[4] collective-permute-done(s)",
    ),
    "copy": ("s = (f32[4], f32[4], u32[]) copy-start(x)", "f32[4] copy-done(s)"),
}  # fmt: skip

WRITERS = {
    "dynamic-update-slice": "w = f32[4] dynamic-update-slice(x, new, at)",
    "scatter": "i = s32[1,1] constant({{1}})\n w = f32[4] scatter(x, i, new), update_window_dims={}, "
    "inserted_window_dims={0}, scatter_dims_to_operand_dims={0}, index_vector_dim=1, to_apply=add",
    "fusion": "w = f32[4] fusion(x, new, at), kind=kLoop, calls=wrapped",
    "stated fusion": "w = f32[4] fusion(x, new, at), kind=kLoop, calls=wrapped, "
    "output_to_operand_aliasing={{}: (0, {})}",
    "async-start": f"w = {CONTEXT} async-start(x, new, at), calls=wrapped\n v = f32[4] async-done(w), calls=wrapped",
    "call": "w = f32[4] call(x, new, at), to_apply=wrapped",
}
INSIDE = {"call": "d"}
"""The instruction in a callee that a report names."""


def cases() -> list[Case]:
    return [*_written_in_flight(), *_others()]


def _written_in_flight() -> list[Case]:
    """Each pair with each op that writes in place: between start and done, and after the done."""
    found = []
    for kind, (start, done) in PAIR.items():
        for name, write in WRITERS.items():
            guilty = INSIDE.get(name, "w")
            end = f"ROOT t = {done.split()[0]} copy(r)"
            found.append(Case(f"{name} in flight of {kind}", f"{start}\n{write}\nr = {done}\n{end}", ((guilty, "s"),)))
            found.append(Case(f"{name} after {kind}", f"{start}\nr = {done}\n{write}\n{end}"))
            copied = write.replace("(x,", "(c,")
            found.append(
                Case(
                    f"{name} of a copy in flight of {kind}", f"c = f32[4] copy(x)\n{start}\n{copied}\nr = {done}\n{end}"
                )
            )
    return found


def _others() -> list[Case]:
    donated = "input_output_alias={ {}: (0, {}, may-alias) }"
    asynchronous = f"w = {CONTEXT} async-start(x, new, at), calls=wrapped"
    loop = (
        "body { p = (f32[4], s32[]) parameter(0)\n a = f32[4] get-tuple-element(p), index=0\n"
        " n = s32[] get-tuple-element(p), index=1\n one = s32[] constant(1)\n m = s32[] add(n, one)\n"
        " u = f32[1] constant({1})\n"
        "%s\n ROOT t = (f32[4], s32[]) tuple(b, m) }\n"
        "condition { p = (f32[4], s32[]) parameter(0)\n n = s32[] get-tuple-element(p), index=1\n"
        " k = s32[] constant(2)\n ROOT c = pred[] compare(n, k), direction=LT }"
    )
    whole = (
        "zero = s32[] constant(0)\n i = (f32[4], s32[]) tuple(x, zero)\n"
        " l = (f32[4], s32[]) while(i), condition=condition, body=body"
    )
    update = "b = f32[4] dynamic-update-slice(a, u, n)"
    gather = "s = (f32[4], f32[8]) all-gather-start(x), dimensions={0}"
    return [
        Case(
            "two pairs write to one buffer",
            f"{asynchronous}\ns = {CONTEXT} async-start(x, new, at), calls=again\n"
            "v = f32[4] async-done(w), calls=wrapped\nr = f32[4] async-done(s), calls=again\n"
            "ROOT t = f32[4] add(v, r)",
            (("w", "s"),),
            others=WRAPPED.replace("wrapped", "again"),
        ),
        Case(
            "two pairs, one after the other",
            f"{asynchronous}\nv = f32[4] async-done(w), calls=wrapped\n"
            f"s = {CONTEXT} async-start(v, new, at), calls=again\n"
            "ROOT r = f32[4] async-done(s), calls=again",
            others=WRAPPED.replace("wrapped", "again"),
        ),
        Case(
            "two pairs read one buffer",
            f"{gather}\nq = (f32[4], f32[4], u32[]) copy-start(x)\nr = f32[8] all-gather-done(s)\n"
            "v = f32[4] copy-done(q)\nROOT t = (f32[8], f32[4]) tuple(r, v)",
        ),
        Case(
            "read while a pair writes",
            f"{asynchronous}\ny = f32[4] negate(x)\nv = f32[4] async-done(w), calls=wrapped\nROOT t = f32[4] add(v, y)",
            (("w", "y"),),
        ),
        Case(
            "donated and then used",
            "a = f32[4] negate(x)\ny = f32[4] multiply(x, a)\nROOT t = (f32[4], f32[4]) tuple(a, y)",
            (("a", "y"),),
            header="input_output_alias={ {0}: (0, {}, may-alias) }",
        ),
        Case("donated and used before", "y = f32[4] negate(x)\nROOT a = f32[4] add(x, y)", header=donated),
        Case(
            "donated, and read by a pair under way",
            f"{gather}\na = f32[4] constant({{1, 2, 3, 4}})\nw = f32[4] negate(a)\nr = f32[8] all-gather-done(s)\n"
            "ROOT t = (f32[4], f32[8]) tuple(w, r)",
            (("w", "s"),),
            header="input_output_alias={ {0}: (0, {}, must-alias) }",
        ),
        Case(
            "donated arguments that change places",
            "y = f32[4] parameter(1)\nROOT t = (f32[4], f32[4]) tuple(y, x)",
            (("y", "x"),),
            header="input_output_alias={ {0}: (0, {}), {1}: (1, {}) }",
            runs=False,
        ),
        Case(
            "an argument that is returned in its place",
            "ROOT t = (f32[4]) tuple(x)",
            header="input_output_alias={ {0}: (0, {}) }",
        ),
        Case(
            "a custom call that states it",
            'w = f32[4] custom-call(x), custom_call_target="f", output_to_operand_aliasing={{}: (0, {})}\n'
            "ROOT t = f32[4] add(w, x)",
            (("w", "t"),),
            runs=False,
        ),
        Case(
            "a permutation in place",
            "z = f32[4] negate(x)\nzero = s32[] constant(0)\no = (s32[]) tuple(zero)\n"
            f"s = (f32[4], f32[4], u32[], u32[]) collective-permute-start(x, z, o, o), {PAIRS}, slice_sizes={{{{4}}}}\n"
            "y = f32[4] negate(z)\nr = f32[4] collective-permute-done(s)\nROOT t = f32[4] add(r, y)",
            (("s", "y"),),
            runs=False,
        ),
        Case(
            "in a loop, between start and done",
            f"{whole}\nROOT t = f32[4] get-tuple-element(l), index=0",
            (("b", "s"),),
            others=loop % f"s = (f32[4], f32[4], u32[]) copy-start(a)\n{update}\n r = f32[4] copy-done(s)",
        ),
        Case(
            "in a loop, after the done",
            f"{whole}\nROOT t = f32[4] get-tuple-element(l), index=0",
            others=loop % f"s = (f32[4], f32[4], u32[]) copy-start(a)\n r = f32[4] copy-done(s)\n{update}",
        ),
        Case(
            "a loop that updates its state while a pair reads that",
            f"{gather}\n{whole}\nr = f32[8] all-gather-done(s)\nv = f32[4] get-tuple-element(l), index=0\n"
            "ROOT t = (f32[8], f32[4]) tuple(r, v)",
            (("b", "s"),),
            others=loop % update,
        ),
        Case(
            "a loop that computes its state anew while a pair reads that",
            f"{gather}\n{whole}\nr = f32[8] all-gather-done(s)\nv = f32[4] get-tuple-element(l), index=0\n"
            "ROOT t = (f32[8], f32[4]) tuple(r, v)",
            others=loop % "b = f32[4] negate(a)",
        ),
        Case(
            "a branch that updates while a pair reads",
            f"choice = pred[] constant(true)\n{gather}\nl = f32[4] conditional(choice, x, x), true_computation=one, "
            "false_computation=other\nr = f32[8] all-gather-done(s)\nROOT t = (f32[8], f32[4]) tuple(r, l)",
            (("d", "s"),),
            others="one { x = f32[4] parameter(0)\n n = f32[1] constant({1})\n i = s32[] constant(0)\n"
            " ROOT d = f32[4] dynamic-update-slice(x, n, i) }\nother { ROOT x = f32[4] parameter(0) }",
        ),
        Case(
            "the result of a loop in donated memory that is read later",
            f"{whole}\nv = f32[4] get-tuple-element(l), index=0\ny = f32[4] negate(x)\n"
            "ROOT t = (f32[4], f32[4]) tuple(v, y)",
            (("l", "y"),),
            header="input_output_alias={ {0}: (0, {}) }",
            others=loop % "b = f32[4] negate(a)",
        ),
        Case(
            "an update whose operand is read later, which is left to the compiler",
            "w = f32[4] dynamic-update-slice(x, new, at)\nROOT t = f32[4] add(w, x)",
        ),
        Case(
            "an update of what nothing reads while nothing is under way",
            f"w = f32[4] dynamic-update-slice(x, new, at)\n{gather.replace('(x)', '(w)')}\n"
            "ROOT r = f32[8] all-gather-done(s)",
        ),
    ]
