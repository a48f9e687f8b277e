"""The pages that the tests open, without a network."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from . import pages

Open = Callable[..., Any]


@pytest.fixture(scope="session")
def written(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The file of a page, written once."""
    folder = tmp_path_factory.mktemp("pages")

    def path(name: str) -> Path:
        file = folder / f"{name}.html"
        if not file.exists():
            pages.write(name, file)
        return file

    return path


@pytest.fixture
def opened(browser: Any, written: Callable[[str], Path]) -> Iterator[Open]:
    """Opens a page; at the end nothing may have gone over the network, or to the console."""
    contexts, requests, faults = [], [], []

    def open_page(name: str, at: str = "", **options: Any) -> Any:
        context = browser.new_context(viewport={"width": 1400, "height": 900}, **options)
        contexts.append(context)
        page = context.new_page()
        page.on("request", lambda request: requests.append(request.url))
        page.on("pageerror", lambda error: faults.append(str(error)))
        page.on(
            "console", lambda message: faults.append(message.text) if message.type in ("error", "warning") else None
        )
        page.goto(f"{written(name).as_uri()}{at and '#' + at}")
        page.set_default_timeout(3000)
        return page

    yield open_page
    for context in contexts:
        context.close()
    assert all(url.startswith("file:") for url in requests)
    assert len(requests) == len(contexts)
    assert not faults
