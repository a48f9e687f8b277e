"""The stories of examples/hangs: verdict and run agree on each program, and the page shows what they say today."""

from __future__ import annotations

import re
from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from click.testing import CliRunner

import xbuild as xb
from examples.gallery import stories as page
from examples.hangs.catalog import LEFT_OUT, SECTIONS, STORIES
from examples.hangs.story import Told
from xbuild.cli import main
from xbuild.hangs.records import KINDS
from xbuild.reference.words import explain_word

ROOT = Path(__file__).parents[2]
THREADS = """
    openxla/xla#7716
    openxla/xla#49047
    marin-community/marin#9042
    pytorch/xla#2311
    pytorch/xla#3908
    pytorch/pytorch#33148 pytorch/pytorch#38174
    deepspeedai/DeepSpeed#5008
    yiqiao-yin/deepspeed-course#28
    verl-project/verl#12
    marin-community/marin#8480
    marin-community/marin#8538
    marin-community/marin#7039
    jax-ml/jax#38503
    vllm-project/vllm#48720
    meta-pytorch/torchrec#4149
    pytorch/pytorch#172668
    NVIDIA/Megatron-LM#5100
    NVIDIA/Megatron-LM#1495 NVIDIA/Megatron-LM#1451
    NVIDIA/Megatron-LM#5240
    openxla/xla#38105 openxla/xla#36981
    ROCm/xla#589
    openxla/xla#44530
    openxla/xla#19026 openxla/xla#40656 openxla/xla#47467
    openxla/xla#31027
    NVIDIA/nccl#195 NVIDIA/nccl#208 NVIDIA/nccl#522 NVIDIA/nccl#592 NVIDIA/nccl#781 NVIDIA/nccl#783
    ROCm/rccl#2191
    ROCm/rccl#2179
    NVIDIA/nccl#1772
    jax-ml/jax#11637
    openxla/xla#38932 openxla/xla#5103 microsoft/onnxruntime#5430
    jax-ml/jax#24255 jax-ml/jax#25861 jax-ml/jax#5934 PyAutoLabs/PyAutoFit#1530
    tensorflow/tensorflow#24155
    AI-Hypercomputer/maxtext#2739
    NVIDIA/nccl#1417
    google/xls#717
    marin-community/marin#8277 marin-community/marin#5675
    marin-community/marin#7344
    tensorflow/tensorflow@0be5a10c185
"""
"""The 38 reports that were read, one a line."""


def _name(told: Told) -> str:
    return told.name


@pytest.fixture(autouse=True)
def _in_the_project(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(ROOT)


@pytest.mark.parametrize("told", STORIES, ids=_name)
def test_the_run_stops_on_the_devices_that_the_verdict_names(told: Told) -> None:
    verdict = told.check(told.broken())
    assert verdict.kind != "ok"
    assert (verdict.kind == "depends") == (told.story.harmless is not None)
    with pytest.raises(xb.Stopped) as stopped:
        told.run_broken()
    report, finding = stopped.value.report, verdict.findings[0]
    waiting = {state.device: state.instruction.name for state in report.devices if state.instruction is not None}
    at_fault = {state.device for state in report.devices if state.cause}
    named = set(chain.from_iterable(row.devices for row in finding.rows))
    if verdict.kind == "deadlock":
        assert {device: [at.name for at in places] for device, places in finding.blocked.items()} == {
            device: [name] for device, name in waiting.items()
        }
        assert report.kind == "deadlock"
    elif finding.kind in ("shape_mismatch", "mispaired", "channel_kind_mix"):
        assert report.kind in ("collective_mismatch", "transfer_mismatch")
        differ = re.findall(r"of device (\d+)", report.message)
        assert all(int(device) in row.devices for row, device in zip(finding.rows, differ, strict=True))
        assert {*waiting.values()} <= {instruction.name for instruction in finding.instructions}
    else:
        assert report.kind == ("infeed_starved" if finding.cause == "STARVED" else "deadlock")
        assert named == {*waiting, *at_fault}
        assert at_fault


@pytest.mark.parametrize("told", STORIES, ids=_name)
def test_the_fixed_program_is_ok_and_returns_the_right_values(told: Told) -> None:
    assert told.check(told.fixed()).kind == "ok"
    for found, expected in zip(told.run_fixed(), told.story.results, strict=True):
        _check_equal(found, expected)


def _check_equal(found: Any, expected: Any) -> None:
    if isinstance(expected, tuple):
        for one, other in zip(found, expected, strict=True):
            _check_equal(one, other)
    elif expected is None:  # a token
        assert found is None
    else:
        assert np.asarray(found).dtype == expected.dtype
        assert np.array_equal(found, expected)


@pytest.mark.parametrize("told", [told for told in STORIES if told.story.harmless is not None], ids=_name)
def test_other_data_let_the_broken_program_complete(told: Told) -> None:
    assert len(told.run_broken(told.story.harmless)) == len(told.story.hanging.arguments)


@pytest.mark.parametrize("told", STORIES, ids=_name)
def test_the_command_prints_the_verdict_of_the_page(told: Told) -> None:
    verdict = told.check(told.broken())
    result = CliRunner().invoke(main, ["check", f"{told.file}:broken", *told.option.split()])
    assert (result.stderr if verdict.refused else result.stdout) == f"{verdict}\n"
    assert result.exit_code == int(verdict.refused)


@pytest.mark.parametrize("told", STORIES, ids=_name)
def test_the_difference_contains_both_programs(told: Told) -> None:
    lines = told.diff().splitlines()
    source = (ROOT / told.file).read_text(encoding="utf-8")
    for mark, other, program in (("-", "+", "broken"), ("+", "-", "fixed")):
        text = "\n".join(line[1:] for line in lines if not line.startswith(other))
        (body,) = re.findall(rf"^def {program}\(.*?(?=\n\n\n|\Z)", source, re.MULTILINE | re.DOTALL)
        assert body.replace(f"def {program}(", "def program(") in text
        assert any(line.startswith(mark) for line in lines) or program == "broken"


def test_the_page_is_up_to_date() -> None:
    assert page.page() == page.PAGE.read_text(encoding="utf-8"), "python -m examples.gallery.stories writes it"


def test_every_report_is_a_story_or_has_a_reason() -> None:
    told = {*chain.from_iterable(each.story.threads for each in STORIES)}
    cited = [*told, *chain.from_iterable(each.threads for each in LEFT_OUT)]
    assert sorted(cited) == sorted(THREADS.split())
    assert len(THREADS.strip().splitlines()) == 38
    assert len(STORIES) == 31
    reports = [{*line.split()} for line in THREADS.strip().splitlines()]
    assert all(report <= told or not report & told for report in reports)
    assert sum(not report & told for report in reports) == len(LEFT_OUT)


def test_every_module_of_the_folder_is_told_once() -> None:
    modules = {path.stem for path in (ROOT / "examples" / "hangs").glob("*.py")}
    names = [told.name for told in STORIES]
    assert modules - {*names} == {"__init__", "__main__", "catalog", "story"}
    assert len(names) == len({*names}) == sum(map(len, SECTIONS.values()))


def test_a_story_is_told_with_both_runs(capsys: pytest.CaptureFixture[str]) -> None:
    from examples.hangs.__main__ import tell

    (told,) = (each for each in STORIES if each.name == "uneven_batches")
    tell(told)
    printed = capsys.readouterr().out
    for part in ("the data decide", "stopped: no device can continue", "it completes", "ok: no schedule can deadlock"):
        assert part in printed


@pytest.mark.parametrize("kind", KINDS)
def test_each_kind_of_fault_is_explained(kind: str) -> None:
    (text,) = explain_word(kind)
    assert "A kind of fault in `xbuild hang`" in " ".join(text.split())
    sentences = re.findall(r"[.:] |\.$", text.partition("\n\n")[2].partition("\nSee ")[0], re.MULTILINE)
    assert 2 <= len(sentences) <= 5
