"""Mutation test of the shape rules: one small fault at a time is put into them, and a case has to fail.

A mutant is a function's code with one operator, constant, condition, statement or kind of refusal changed. It is put in
place in a forked process (so on POSIX only), and a case that fails kills it, or the clock, where it comes to no end.
"""

from __future__ import annotations

import argparse
import ast
import functools
import importlib
import inspect
import os
import signal
from collections.abc import Callable, Iterable, Iterator
from types import CodeType, ModuleType
from typing import Any

from shape_inference import KINDS

from . import test_conformance
from .ops import test_cases

TARGETS = ("shaping", "slicing", "reduction", "dims")
SECONDS = 30  # of the processor's time
SWAPS: dict[type[ast.AST], tuple[type[ast.AST], ...]] = {
    ast.Lt: (ast.LtE, ast.GtE), ast.LtE: (ast.Lt, ast.Gt), ast.Gt: (ast.GtE, ast.LtE), ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,), ast.NotEq: (ast.Eq,), ast.Is: (ast.IsNot,), ast.IsNot: (ast.Is,), ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,), ast.And: (ast.Or,), ast.Or: (ast.And,), ast.Add: (ast.Sub,), ast.Sub: (ast.Add,),
    ast.Mult: (ast.FloorDiv,), ast.FloorDiv: (ast.Mult,), ast.Mod: (ast.Mult,), ast.Pow: (ast.Mult,),
    ast.USub: (ast.UAdd,),
}  # fmt: skip
DELETED = (ast.Expr, ast.AugAssign, ast.Continue, ast.For)


def alternatives(parent: ast.AST, role: str, node: ast.AST) -> Iterator[ast.AST]:
    """What may stand in the node's place."""
    yield from (swapped() for swapped in SWAPS.get(type(node), ()))
    if role in ("test", "ifs"):
        # A loop without an end would be killed by nothing but the clock.
        yield from map(ast.Constant, (False,) if isinstance(parent, ast.While) else (True, False))
    match node:
        case ast.UnaryOp(op=ast.Not(), operand=positive):
            yield positive
        case ast.Constant(value=bool(flag)) if getattr(parent, "arg", "") != "strict":
            yield ast.Constant(not flag)
        case ast.Constant(value=int(number)) if not isinstance(number, bool):
            yield from map(ast.Constant, (number + 1, number - 1))
        case ast.Constant(value=str(kind)) if kind in KINDS:
            yield ast.Constant(min(KINDS - {kind}))
        case ast.Expr(value=ast.Constant()):
            return
    if isinstance(node, DELETED):
        yield ast.Pass()


def places(tree: ast.AST) -> Iterator[tuple[ast.AST, str, Any, Any, ast.AST]]:
    """Each node with its parent, its role there, and the container and key that hold it."""
    for parent in list(ast.walk(tree)):
        for role, value in ast.iter_fields(parent):
            held = enumerate(value) if isinstance(value, list) else [(role, value)]
            container = value if isinstance(value, list) else vars(parent)
            yield from ((parent, role, container, key, node) for key, node in held if isinstance(node, ast.AST))


def mutants(module: ModuleType) -> Iterator[tuple[str, str, CodeType]]:
    """The function that is changed, what is changed in words, and the function's new code."""
    path = inspect.getsourcefile(module) or ""
    tree = ast.parse(inspect.getsource(module))
    for function in [node for node in tree.body if isinstance(node, ast.FunctionDef)]:
        for parent, role, container, key, node in places(ast.Module(function.body, [])):
            shown = node if isinstance(node, ast.stmt) else parent
            before, line = _first_line(shown), getattr(shown, "lineno", function.lineno)
            for other in alternatives(parent, role, node):
                container[key] = other
                after = "" if shown is node else _first_line(shown)
                code = compile(ast.fix_missing_locations(tree), path, "exec").co_consts
                wanted = (each for each in code if isinstance(each, CodeType) and each.co_name == function.name)
                words = f"{os.path.basename(path)}:{line}: {before}  ->  {after or 'nothing'}"
                yield function.name, words, next(wanted)
                container[key] = node


def _first_line(node: ast.AST) -> str:
    return ast.unparse(node).partition("\n")[0]


def checks(target: str) -> list[Callable[[], None]]:
    """The refusals, inferred shapes and values of the family, or of all families, and the conformance cases."""
    families = test_cases.FAMILIES
    chosen = [families[target]] if target in families else families.values()
    conformance = [case for case in test_conformance.CASES if test_conformance.exists(case["op"])]
    lists: list[tuple[Callable[[Any], None], Iterable[Any]]] = [
        *((test_cases.test_refusal, family.REFUSALS) for family in chosen),
        *((test_cases.test_inferred, getattr(family, "INFERRED", ())) for family in chosen),
        (test_conformance.test_shape, conformance),
        *((test_cases.test_value, family.CASES) for family in chosen),
    ]
    return [functools.partial(test, case) for test, cases in lists for case in cases]


def passes(todo: list[Callable[[], None]], change: Callable[[], None]) -> bool:
    """Whether every check holds after the change, which is made in a process of its own."""
    child = os.fork()
    if child:
        return os.waitpid(child, 0)[1] == 0
    signal.setitimer(signal.ITIMER_PROF, SECONDS)
    status = 1
    try:
        change()
        for check in todo:
            check()
        status = 0
    finally:
        os._exit(status)


def put(module: ModuleType, name: str, code: CodeType) -> None:
    """The function object stays, so that all who imported it get the new code."""
    function = getattr(module, name)
    getattr(function, "cache_clear", lambda: None)()
    inspect.unwrap(function).__code__ = code


def survivors(target: str) -> tuple[int, list[str]]:
    """How many mutants of a family's rules there are, and those that no case kills."""
    is_family = target in test_cases.FAMILIES
    module = importlib.import_module(f"shape_inference.{'ops.' * is_family}{target}")
    todo, made, alive = checks(target), 0, []
    if not passes(todo, lambda: None):
        raise SystemExit(f"{target}: the cases fail without any change")
    for name, words, code in mutants(module):
        made += 1
        if passes(todo, functools.partial(put, module, name, code)):
            alive.append(words)
    return made, alive


def main(arguments: list[str] | None = None) -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("target", nargs="*", default=TARGETS, help="a family, or a module that all share, such as dims")
    for target in parser.parse_args(arguments).target:
        made, alive = survivors(target)
        print(*alive, sep="\n", end="\n" * bool(alive))
        print(f"{target}: {made - len(alive)} of {made} mutants killed", flush=True)


if __name__ == "__main__":
    main()
