"""Texts with small faults are read or refused, by no other error and in little time."""

from __future__ import annotations

import random
import re
from contextlib import suppress

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import xbuild as xb
from tests.stablehlo.programs import PAIRS
from tests.stablehlo.test_names_and_places import LOCATED

TEXTS = [*(pair.text for pair in PAIRS), LOCATED]
_TOKEN = re.compile(r"[\w.$#]+|\s+|.", re.DOTALL)
TOKENS = [_TOKEN.findall(text) for text in TEXTS]
STRANGE = (
    *'"(){}<>[]%@#!^:=,\n\x00é', "->", "//", "-1", "0x", "9" * 30, "?x", "tensor<", "dense<", "loc(",
    "stablehlo.while(", "%0#7", "1e999", "array<i64: ", "callsite(", "::",
)  # fmt: skip


def mutated(chance: random.Random) -> str:
    tokens = list(chance.choice(TOKENS))
    for _ in range(chance.randint(1, 3)):
        place = chance.randrange(len(tokens))
        match chance.randrange(5):
            case 0:
                del tokens[place]
            case 1:
                tokens.insert(place, chance.choice(STRANGE))
            case 2:
                tokens[place] = chance.choice(chance.choice(TOKENS))
            case 3:
                other = chance.randrange(len(tokens))
                tokens[place], tokens[other] = tokens[other], tokens[place]
            case 4:
                tokens = tokens[:place] + tokens[place : place + 20] + tokens[place:]
        tokens = tokens or [""]
    return "".join(tokens)


def read_or_refused(text: str) -> None:
    with suppress(xb.HloParseError):
        xb.parse_stablehlo(text)


@pytest.mark.parametrize("seed", range(20))
def test_mutated_texts(seed: int) -> None:
    chance = random.Random(seed)
    for _ in range(40):
        read_or_refused(mutated(chance))


@given(st.text(alphabet=st.sampled_from('%@#!^"<>(){}[]:=,-x0129afmstu.?/ \n'), max_size=60))
@settings(max_examples=200)
def test_noise(text: str) -> None:
    read_or_refused(text)
    read_or_refused(f"func.func @main(%x: tensor<4xf32>) {{ {text} }}")


@pytest.mark.parametrize(
    "text",
    [
        "module {" * 5000,
        "func.func @f() { " + '"stablehlo.case"(%0) ({' * 300,
        "func.func @f(%x: " + "tuple<" * 3000 + ">" * 3000 + ") { return }",
        "func.func @f() { stablehlo.x {a = " + "[" * 20000 + " } }",
        "func.func @f() { return loc(" + "callsite(" * 5000 + ") }",
        "\n".join(f"#loc{n} = loc(#loc{n + 1})" for n in range(5000)) + "\nfunc.func @f() { return loc(#loc0) }",
        "".join(f"func.func @f{n}() {{ call @f{n + 1}() : () -> () return }}\n" for n in range(3000)),
        "func.func @f() { %0 = stablehlo.constant dense<" + "[" * 40000 + "> : tensor<2xi8> }",
        "func.func @f() { %0 = stablehlo.constant dense<1> : tensor<999999999999x999999999999xi8> return }",
        "func.func @f() { %0 = stablehlo.constant dense<> : tensor<0x99999999999999999xi8> return }",
        *(
            'func.func @f(%x: tensor<f32>) -> tensor<f32> { %0 = "stablehlo.collective_permute"(%x) '
            f"<{{source_target_pairs = dense<{elements}>}}> : (tensor<f32>) -> tensor<f32> return %0 : tensor<f32> }}"
            for elements in ("> : tensor<2147483648x0xi64", "1> : tensor<100000000x2xi64")
        ),
        '"' * 100000,
        "(" * 100000,
        "%a, " * 50000,
        "//" * 100000,
    ],
    ids=lambda text: text[:24],
)  # fmt: skip
def test_hostile_texts(text: str) -> None:
    read_or_refused(text)
