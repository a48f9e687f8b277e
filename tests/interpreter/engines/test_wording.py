"""Messages of real XLA: a sentence for each status, the instruction that is named, XLA's own words behind."""

from __future__ import annotations

import pytest

import xbuild as xb
from interpreter.engines.outcomes import sentence_of

MODULE = xb.parse_hlo("HloModule m\nENTRY e { x = f32[2] parameter(0)  ROOT cosh.2 = f32[2] cosh(x) }")
MESSAGES = [
    ("JaxRuntimeError: UNIMPLEMENTED: HLO opcode `copy-start` is not supported by XLA:CPU ThunkEmitter",
     "this build of XLA does not implement an op or a feature of the program",
     "HLO opcode `copy-start` is not supported by XLA:CPU ThunkEmitter"),
    ("XlaRuntimeError: INTERNAL: during context [hlo verifier]: RET_CHECK failure (external/xla/x.cc:4) n == 2",
     "an internal check of XLA failed while it compiled or ran the program", "RET_CHECK failure n == 2"),
    ("XlaRuntimeError: INVALID_ARGUMENT: Is called on unsupported shape: u1[2]",
     "XLA rejects the program or one of its arguments", "Is called on unsupported shape: u1[2]"),
    ("TypeError: no buffer", "XLA raised an error without a status", "no buffer"),
]  # fmt: skip


@pytest.mark.parametrize(("message", "sentence", "own"), MESSAGES)
def test_a_message(message: str, sentence: str, own: str) -> None:
    assert sentence_of(message, MODULE) == f"{sentence}\n  XLA says: {own}"


def test_the_instruction_that_is_named() -> None:
    said = sentence_of("UNIMPLEMENTED: cannot lower %cosh.2.", MODULE)
    assert "; it names %cosh.2 (cosh, " in said


def test_long_messages_are_cut() -> None:
    assert len(sentence_of("INTERNAL: " + "x" * 10_000, MODULE)) < 1000
