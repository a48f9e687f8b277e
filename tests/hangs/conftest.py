"""The dumps of real jobs, unpacked."""

from __future__ import annotations

from pathlib import Path

import pytest

from .jobs import unpack


@pytest.fixture(scope="module")
def nvrx(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("nvrx.tar.gz", tmp_path_factory.mktemp("nvrx"))


@pytest.fixture(scope="module")
def gloo(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("gloo.tar.gz", tmp_path_factory.mktemp("gloo"))


@pytest.fixture(scope="module")
def trials(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return unpack("trials.tar.gz", tmp_path_factory.mktemp("trials"))
