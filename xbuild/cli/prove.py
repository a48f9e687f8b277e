"""`xbuild prove`: whether a compiler kept the function of a program, and which pass did not."""

from __future__ import annotations

import shlex
import sys
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

import click
from attrs import evolve, frozen

import xbuild
from shape_inference import XbuildError
from shape_inference.escaping import in_line

from ..core.issues import Issue
from ..files import targets as target_files
from ..properties.mesh import Mesh
from ..variance.specs import read_specs
from .candidates import targets
from .equivalent import exit_code, takes_domain
from .formats import REFUSAL, issues_of, say_programs, say_result
from .group import REFUSED, main, refuse, report_failures, require
from .options import shows_all, takes_all, takes_format
from .outputs import MORE, prints_document, report_width, say, say_lines, say_styled, styled
from .run import SEED

if TYPE_CHECKING:
    from ..running import PassProof, Proof

_COLOURS = {"equal": "green", "different": "red"}


def _read_mesh(_: click.Context, parameter: click.Parameter, text: str | None) -> Mesh | None:
    return None if text is None else _read(Mesh.read, text, parameter)


def _read_specs(_: click.Context, parameter: click.Parameter, text: str | None) -> Any:
    """The specs of all arrays; a single one holds for each array."""
    if text is None:
        return None
    specs = _read(read_specs, text, parameter)
    return specs[0] if len(specs) == 1 else specs


def _read(reader: Any, text: str, parameter: click.Parameter) -> Any:
    try:
        return reader(text)
    except XbuildError as error:
        raise click.BadParameter(str(error).partition("\n")[0], param=parameter) from None


@main.command()
@click.argument("one", metavar="TARGET", shell_complete=targets)
@click.argument("other", metavar="[AFTER]", required=False, shell_complete=targets)
@click.option("--by", type=click.Choice(["pass"]), help="Find the first pass of XLA that changes the function.")
@click.option("--in-specs", metavar="SPECS", callback=_read_specs, help="State how arguments are sharded.")
@click.option("--out-specs", metavar="SPECS", callback=_read_specs, help="State how results are sharded.")
@click.option("--mesh", metavar="MESH", callback=_read_mesh, help="State the mesh of the specs, such as a=2,b=4.")
@click.option(
    "--seed", type=SEED, metavar="SEED", default=0, show_default=True, help="Set the seed of the random inputs."
)
@click.option("--strict", is_flag=True, help='Also exit with status 1 for the verdict "undecided".')
@takes_domain
@takes_all
@takes_format
def prove(
    one: str,
    other: str | None,
    by: str | None,
    in_specs: Any,
    out_specs: Any,
    mesh: Mesh | None,
    seed: int,
    strict: bool,
    domains: dict[int, Any],
) -> None:
    """Prove that a compiler preserved what a program computes, or show an input on which the results differ.

    TARGET is a JAX function (FILE.py:NAME), whose lowered program is compared with the compiled one, or a dump folder
    (written by --xla_dump_to), whose texts before and after the optimizations of each module are compared. NAME may be
    a lowered function, a pair (lowered, compiled), or a pair (function, arguments). With AFTER, the programs of both
    targets are compared. No program runs on a device.

    The shardings of the compiled function, or those in the texts, determine the layout of each array. To state others,
    use --in-specs and --out-specs: one spec for all arrays, or one for each, separated by semicolons; --mesh names the
    axes. If nothing states how results are sharded, runs in xbuild show which part each device holds.

    With --by pass, TARGET is a JAX function, or a dump of the text after each pass (--xla_dump_hlo_pass_re=.*). The
    command names the first pass after which the program computes a different function, the instruction and the line,
    and lists the passes after which it communicates differently.

    \b
    Examples:
      xbuild prove train.py:step
      xbuild prove train.py:step --by pass
      xbuild prove /tmp/dump
      xbuild prove /tmp/dump#jit_step --by pass
      xbuild prove before.mlir after.hlo --mesh a=2,b=4 --in-specs "P('a');P()"

    The exit status is 0 for the verdicts "equal" and "undecided" (1 for "undecided" with --strict), 1 for "different"
    or if a program is refused, 3 if the time or memory limit is reached, and 130 after Ctrl-C.
    """
    require("--in-specs or --out-specs", in_specs or out_specs, "mesh")
    options = {"seed": seed, "domain": domains}
    layouts = {"in_specs": in_specs, "out_specs": out_specs, "mesh": mesh}
    is_dump = target_files.is_dump(target_files.split_target(one)[0])
    if by and (other is not None or in_specs or out_specs):
        raise click.UsageError("--by pass takes a JAX function or a dump folder, without a second target and specs")
    with report_failures("interrupted, without a proof"):
        try:
            modules = target_files.module_targets(one) if is_dump and other is None else []
            if len(modules) > 1:
                sys.exit(_prove_modules(modules, by, options, layouts, strict))
            proof = _prove(one, other, by, options, layouts)
        except target_files.TargetError as error:
            raise click.UsageError(str(error)) from None
        except target_files.UserError as error:
            raise refuse(error, one) from None
    facts = {"other": other, **proof.to_dict()}
    if not say_result(one, facts, proof.issues, part="by_pass" if by else ""):
        say_lines(proof.lines(shows_all(), report_width(), MORE))
    if other is None and not by and proof.kind == "different":
        _say_how_to_find_pass(one, is_dump)
    sys.exit(exit_code(proof.verdict, strict))


def _say_how_to_find_pass(target: str, is_dump: bool) -> None:
    """Say how to find the pass that changed the function of a target."""
    if not is_dump or len(target_files.module_in_dump(target).stages) > 2:
        say(f"notice: xbuild prove {shlex.quote(target)} --by pass names the pass", err=True)
    else:
        say(
            "notice: to find the pass, write the dump again with XLA_FLAGS='--xla_dump_to=DIR "
            "--xla_dump_hlo_pass_re=.*', then run xbuild prove DIR --by pass",
            err=True,
        )


def _prove(one: str, other: str | None, by: str | None, options: Any, layouts: Any) -> Proof | PassProof:
    """The proof of the programs that a command line names."""
    if by:
        if target_files.is_dump(target_files.split_target(one)[0]):
            return xbuild.prove_passes(one, **options)
        with TemporaryDirectory(prefix="xbuild-") as folder:
            target_files.dump_passes_of(one, folder)
            return xbuild.prove_passes(target_files.main_module_in_dump(folder), **options)
    programs: tuple[Any, Any]
    if other is not None:
        programs = target_files.load(one, is_global=True), target_files.load(other, is_global=True)
    elif target_files.is_dump(target_files.split_target(one)[0]):
        programs = target_files.first_and_last(one)
    else:
        programs = target_files.load_with_compiled(one)
    before, after = programs
    proof = xbuild.prove(before, after, **options, **layouts)
    names = (one, other) if other is not None else ("the lowered program", "the compiled program")
    return evolve(proof, verdict=evolve(proof.verdict, names=names))


# ----------------------------------------------------------------------------
# Dumps of several modules: a line for each


@frozen
class ModuleProved:
    """A module of a dump: its proof, or the error that prevents one."""

    target: str
    proof: Proof | PassProof | None = None
    error: Exception | None = None

    @property
    def issues(self) -> tuple[Issue, ...]:
        if self.proof is not None:
            return self.proof.issues
        return () if self.error is None else issues_of(self.error, self.target)

    def to_dict(self) -> dict[str, Any]:
        """The proof as plain data."""
        return dict(REFUSAL) if self.proof is None else self.proof.to_dict()

    def exit_code(self, strict: bool) -> int:
        return REFUSED if self.proof is None else exit_code(self.proof.verdict, strict)

    @property
    def line(self) -> str:
        """The verdict in one line."""
        if self.proof is None:
            return f"not compared: {str(self.error).partition(chr(10))[0]}"
        guilty = getattr(self.proof, "guilty", None)
        if guilty is not None:
            return f"different after the pass {guilty}"
        verdict = self.proof.verdict
        if verdict.kind == "equal":
            hangs = "; both hang on some inputs, and xbuild check says on which" * ("hangs" in dict(verdict.assumed))
            return f"equal, wrong with a probability below 2^{verdict.log2_error:.0f}{hangs}"
        return ": ".join(filter(None, (verdict.kind, ", ".join(verdict.undecided) or verdict.reason)))


def _prove_modules(modules: list[str], by: str | None, options: Any, layouts: Any, strict: bool) -> int:
    """Prove each module of a dump, and print a line for each; gives the exit code."""
    if any(each is not None for each in layouts.values()):
        raise click.UsageError(f"specs state the layouts of one program; name one, such as {modules[0]}")
    width = max(len(in_line(each.partition("#")[2])) for each in modules)
    found: list[ModuleProved] = []
    for module in modules:
        try:
            found.append(ModuleProved(module, _prove(module, None, by, options, layouts)))
        except (target_files.TargetError, XbuildError) as error:
            found.append(ModuleProved(module, error=error))
        if not prints_document():
            label = in_line(module.partition("#")[2]).ljust(width)
            kind = "" if found[-1].proof is None else found[-1].proof.kind
            say_styled(f"{label}  ", styled(in_line(found[-1].line), fg=_COLOURS.get(kind, "yellow")))
    say_programs([(each.target, each.to_dict(), each.issues) for each in found])
    refused = next((each for each in found if each.exit_code(strict) == REFUSED), None)
    if refused is not None:
        say(f"notice: xbuild prove '{refused.target}' prints the report", err=True)
    return max(each.exit_code(strict) for each in found)
