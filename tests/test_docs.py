"""Every public docstring: the parts that it must have, and its example, run."""

from __future__ import annotations

import doctest
import importlib
import importlib.util
import inspect
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import interpreter
import shape_inference
import xbuild as xb
from xbuild.core.op import OPS

ROOT = Path(__file__).parents[1]
PACKAGES = shape_inference, xb, interpreter
README = ROOT / "README.md"
FLAGS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


OF_EXTRAS = {"xbuild.lsp.server": "pygls", "xbuild.learning.serving.server": "waitress"}
LACKING = {module for module, needed in OF_EXTRAS.items() if not importlib.util.find_spec(needed)}
"""Modules that import an extra that is not installed here."""


def modules() -> Iterator[ModuleType]:
    """All modules but those of an extra that is not installed."""
    for package in PACKAGES:
        yield package
        for info in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
            if not info.name.endswith("__main__") and info.name not in LACKING:
                yield importlib.import_module(info.name)


def examples() -> dict[str, doctest.DocTest]:
    """The examples of all modules, those of functions that decorators made among them."""
    finder = doctest.DocTestFinder(exclude_empty=True)
    found = {test.name: test for module in modules() for test in finder.find(module, module.__name__) if test.examples}
    for opcode, schema in OPS.items():
        for test in finder.find(schema.declaration, f"op {opcode}", globs={}):
            found[test.name] = test
    return found


EXAMPLES = examples()
PUBLIC = {name: getattr(xb, name) for name in xb.__all__ if inspect.isfunction(getattr(xb, name))}
RECORDING = [name for name, value in PUBLIC.items() if value.__module__.startswith(("xbuild.ops.", "xbuild.derived."))]
OTHERS = [name for name in PUBLIC if name not in RECORDING and name not in ("refuse", "require")]


@pytest.mark.parametrize("name", EXAMPLES)
def test_example(name: str) -> None:
    if any(word in each.source for each in EXAMPLES[name].examples for word in ("import jax", "execute_on_")):
        pytest.importorskip("jaxlib")
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(EXAMPLES[name], out=report.append, clear_globs=False)
    assert runner.failures == 0, "".join(report)


@pytest.mark.parametrize("opcode", OPS)
def test_op_has_the_parts_of_a_docstring(opcode: str) -> None:
    text = inspect.cleandoc(OPS[opcode].declaration.__doc__ or "")
    _has_parts(text)
    raises = re.search(r"^Raises: ", text, re.MULTILINE)
    assert raises or not (OPS[opcode].operands or OPS[opcode].attributes) or opcode in ("tuple", "copy"), (
        "Raises: is missing"
    )


@pytest.mark.parametrize("name", RECORDING)
def test_public_function_has_the_parts_of_a_docstring(name: str) -> None:
    _has_parts(inspect.getdoc(PUBLIC[name]) or "")


@pytest.mark.parametrize("name", OTHERS)
def test_other_public_functions_say_what_they_do(name: str) -> None:
    text = inspect.getdoc(PUBLIC[name]) or ""
    assert text.partition("\n\n")[0].endswith(".")


def _has_parts(text: str) -> None:
    sentence = text.partition("\n\n")[0]
    assert sentence.endswith("."), "the first paragraph is no sentence"
    assert ">>> " in text, "no example"
    assert re.search(r"^Source: \S", text, re.MULTILINE), "no source"


@pytest.mark.parametrize("opcode", OPS)
def test_raises_names_kinds_that_there_are(opcode: str) -> None:
    text = inspect.cleandoc(OPS[opcode].declaration.__doc__ or "")
    raised = re.search(r"^Raises: (.*?)(?=\n\n|\Z|^\S+: )", text, re.MULTILINE | re.DOTALL)
    words = re.findall(r"\b[a-z]+(?:_[a-z]+)+\b", raised[1]) if raised else []
    of_the_op = {*OPS[opcode].operands, *_attributes(OPS[opcode])}
    assert [word for word in words if word not in shape_inference.KINDS | of_the_op] == []


def _attributes(schema: Any) -> list[str]:
    return [name for name in inspect.signature(schema.declaration).parameters if name not in schema.operands]


@pytest.mark.parametrize("name", [name for name in vars(interpreter) if name in ("evaluate", "execute")])
def test_running_has_the_parts_of_a_docstring(name: str) -> None:
    text = inspect.getdoc(getattr(interpreter, name)) or ""
    assert ">>> " in text
    assert "Raises" in text


@pytest.mark.skipif(not README.exists(), reason="no README.md")
def test_readme_examples() -> None:
    text = README.read_text()
    test = doctest.DocTestParser().get_doctest(text, {}, "README.md", str(README), 0)
    report: list[str] = []
    runner = doctest.DocTestRunner(optionflags=FLAGS)
    runner.run(test, out=report.append)
    assert runner.failures == 0, "".join(report)


@pytest.mark.skipif(not README.exists(), reason="no README.md")
def test_readme_programs() -> None:
    """Fenced Python that is no session runs from the top to the end, all in one namespace."""
    space: dict[str, Any] = {"__name__": "readme"}
    for program in re.findall(r"^```python\n(.*?)^```", README.read_text(), re.MULTILINE | re.DOTALL):
        if ">>> " not in program:
            exec(compile(program, str(README), "exec"), space)
