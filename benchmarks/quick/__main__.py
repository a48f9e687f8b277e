"""Compare the speed of this tree with the commit in `benchmarks/baseline`; exit status 1 if a group is slower.

Both trees alternate within one run, and each number is the ratio of their median CPU times. A group whose geometric
mean is above 1.05 is measured three times in all; it is slower if the median of the three is above 1.10.
"""

from __future__ import annotations

import argparse
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from math import exp, log
from pathlib import Path
from statistics import median

from attrs import define, field

from ..eval.children import ROOT, Child, environment, pin

NAMED = Path(__file__).parents[1] / "baseline"
EVAL = ROOT / "benchmarks" / "eval"
SUSPECT, SLOWER = 1.05, 1.10

WORKLOADS = {
    "products": ("05_conv3x3_NHWC", "06b_conv_group4_dil2", "12_while_matmul256_1000", "13_mlp_train_step"),
    "arrays": ("01_chain200_1M", "07b_reduce_custom", "08a_maxpool3x3s2", "16_map_scalar_fn_1M"),
    "many ops": ("02a_chain200_vec8", "11_while_scalar_100k", "14_transformer_fwd_bwd", "15b_dp_mlp_8rep"),
}
"""Twelve of the workloads of `benchmarks/eval`, grouped by where they spend their time."""

TASKS = {
    "check": ("check: pipeline", "check: random transfers", "check: reductions"),
    "record": ("record: chain", "record: products"),
    "read": ("read: chain", "read: products"),
    "small sums": ("run: small sums",),
    "functions": ("run: functions",),
}
"""The tasks of `tasks.py`."""

COMMANDS = {
    "start-up": {"import xbuild": ("-c", "import xbuild"), "xbuild --help": ("-m", "xbuild", "--help")},
    "small file": {
        "xbuild check": ("-m", "xbuild", "check", "{hlo}"),
        "xbuild run": ("-m", "xbuild", "run", "--random", "1", "{hlo}"),
    },
}
"""Fresh processes, without a program and for a small one."""

SMALL = """HloModule small

sum {
  a = f32[] parameter(0)
  b = f32[] parameter(1)
  ROOT total = f32[] add(a, b)
}

ENTRY main {
  x = f32[4,8] parameter(0)
  y = f32[8,4] parameter(1)
  product = f32[4,4] dot(x, y), lhs_contracting_dims={1}, rhs_contracting_dims={0}
  zero = f32[] constant(0)
  row = f32[4] reduce(product, zero), dimensions={1}, to_apply=sum
  ROOT result = f32[4] tanh(row)
}
"""

GROUPS = [*WORKLOADS, *TASKS, *COMMANDS]


@define(eq=False)
class Comparison:
    """Two trees, the baseline first, and a scratch folder with the inputs of both."""

    trees: Sequence[Path]
    scratch: Path
    texts: dict[str, Path] = field(factory=dict)

    def environment(self, number: int) -> dict[str, str]:
        return environment(self.trees[number], self.scratch / f"cache{number}")

    def lower(self) -> None:
        """Write the HLO text of each workload, which both trees read."""
        child = Child(EVAL / "child.py", ("xla", ""), self.environment(1))
        for name in [name for names in WORKLOADS.values() for name in names]:
            self.texts[name] = self.scratch / f"{name}.hlo"
            child.ask(do="lower", name=name, text=str(self.texts[name]))
        child.close()

    def measure(self, groups: Sequence[str], rounds: int) -> dict[str, dict[str, float]]:
        """For each group, the ratio of this tree to the baseline of each member."""
        found: dict[str, dict[str, float]] = {}
        workloads = {group: WORKLOADS[group] for group in groups if group in WORKLOADS}
        tasks = {group: TASKS[group] for group in groups if group in TASKS}
        if workloads:
            found |= self._of_children(workloads, rounds, ("child.py", EVAL), is_workload=True)
        if tasks:
            found |= self._of_children(tasks, rounds, ("tasks.py", Path(__file__).parent), is_workload=False)
        return found | {group: self._of_processes(COMMANDS[group], rounds) for group in groups if group in COMMANDS}

    def _of_children(
        self, groups: Mapping[str, Sequence[str]], rounds: int, script: tuple[str, Path], *, is_workload: bool
    ) -> dict[str, dict[str, float]]:
        children = []
        for number, tree in enumerate(self.trees):
            given = ("xbuild", str(tree)) if is_workload else (str(tree),)
            children.append(Child(script[1] / script[0], given, self.environment(number)))
        names = [name for each in groups.values() for name in each]
        for name in names if is_workload else ():
            for child in children:
                results = str(self.scratch / "results.npz")
                child.ask(do="prepare", name=name, text=str(self.texts[name]), results=results)
        times: dict[str, list[list[float]]] = {name: [[], []] for name in names}
        for turn in range(-1, rounds):  # the first turn warms up
            for name in names:
                for number in (0, 1) if turn % 2 else (1, 0):
                    seconds = children[number].ask(do="run", name=name, count=_count(times[name][number]))
                    times[name][number] += [seconds] * (turn >= 0)
        for child in children:
            child.close()
        return {group: {name: _ratio(times[name]) for name in each} for group, each in groups.items()}

    def _of_processes(self, commands: Mapping[str, Sequence[str]], rounds: int) -> dict[str, float]:
        hlo = self.scratch / "small.hlo"
        hlo.write_text(SMALL)
        times: dict[str, list[list[float]]] = {name: [[], []] for name in commands}
        for turn in range(-1, rounds):
            for name, command in commands.items():
                for number in (0, 1) if turn % 2 else (1, 0):
                    given = [part.format(hlo=hlo) for part in command]
                    seconds = _seconds_of(given, self.environment(number), self.scratch)
                    times[name][number] += [seconds] * (turn >= 0)
        return {name: _ratio(each) for name, each in times.items()}


def _count(before: list[float]) -> int:
    """The number of runs of a program per turn, for about 10 milliseconds."""
    return max(1, int(0.01 / max(before[-1], 1e-5))) if before else 1


def _seconds_of(arguments: list[str], environment: dict[str, str], folder: Path) -> float:
    """The CPU seconds of a Python process."""
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run([sys.executable, *arguments], env=environment, cwd=folder, check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def _ratio(times: list[list[float]]) -> float:
    return median(times[1]) / median(times[0])


def _mean(ratios: Mapping[str, float]) -> float:
    return exp(sum(map(log, ratios.values())) / len(ratios))


@contextmanager
def worktree(commit: str, scratch: Path) -> Iterator[Path]:
    """A worktree of a commit, removed at the end."""
    place = scratch / "baseline"
    _git("worktree", "add", "--quiet", "--detach", str(place), commit)
    try:
        yield place
    finally:
        _git("worktree", "remove", "--force", str(place))


def _git(*arguments: str) -> str:
    return subprocess.run(["git", "-C", str(ROOT), *arguments], check=True, capture_output=True, text=True).stdout


def known_commit(name: str) -> str | None:
    """The full name of a commit; None if this clone does not have it."""
    try:
        return _git("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}").strip()
    except (subprocess.CalledProcessError, FileNotFoundError):
        return None


def compare(comparison: Comparison, groups: list[str], rounds: int) -> list[str]:
    """Print the table; returns the slower groups."""
    first = comparison.measure(groups, rounds)
    means = {group: [_mean(ratios)] for group, ratios in first.items()}
    for group in groups:
        print(f"{group:14}{means[group][0]:7.3f}   {_members(first[group])}", flush=True)
    suspects = [group for group in groups if means[group][0] > SUSPECT]
    for _ in range(2 if suspects else 0):
        for group, ratios in comparison.measure(suspects, rounds).items():
            means[group].append(_mean(ratios))
    for group in suspects:
        verdict = "SLOWER" if median(means[group]) > SLOWER else "within the noise"
        again = " ".join(f"{mean:.3f}" for mean in means[group])
        print(f"{group}: {again}, median {median(means[group]):.3f}: {verdict}", flush=True)
    return [group for group in suspects if median(means[group]) > SLOWER]


def _members(ratios: Mapping[str, float]) -> str:
    return ", ".join(f"{name} {ratio:.2f}" for name, ratio in ratios.items())


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.quick", description=__doc__)
    parser.add_argument("groups", nargs="*", metavar="GROUP", help=f"groups to measure: {', '.join(GROUPS)}")
    parser.add_argument("--rounds", type=int, default=9, help="turns of each tree (default: 9)")
    parser.add_argument("--tree", type=Path, default=ROOT, help="the tree to compare (default: this one)")
    given = parser.parse_args()
    if unknown := [group for group in given.groups if group not in GROUPS]:
        parser.error(f"no group is named {unknown[0]!r}: {', '.join(GROUPS)}")
    name = NAMED.read_text().split()[0]
    commit = known_commit(name)
    if commit is None:
        print(f"bench-quick: this clone lacks the baseline commit {name} (git fetch --unshallow); nothing is compared")
        return 1
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(143))  # so that the worktree is removed
    start = time.monotonic()
    pin()
    print(f"CPU time, this tree / {name[:12]}; above {SUSPECT} a group is measured again", flush=True)
    with tempfile.TemporaryDirectory() as folder:
        scratch = Path(folder).resolve()
        with worktree(commit, scratch) as baseline:
            comparison = Comparison((baseline, given.tree.resolve()), scratch)
            groups = given.groups or GROUPS
            if any(group in WORKLOADS for group in groups):
                comparison.lower()
            slower = compare(comparison, groups, given.rounds)
    print(f"{'slower: ' + ', '.join(slower) if slower else 'no group is slower'} ({time.monotonic() - start:.0f} s)")
    return 1 if slower else 0


if __name__ == "__main__":
    sys.exit(main())
