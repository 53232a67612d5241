import contextlib
import json
import os
import pathlib
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import Browser, BrowserContext, sync_playwright

from steelyard import cli
from support.page.chromium import Watched, launched
from support.repository import EXAMPLES


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright, contextlib.closing(launched(playwright)) as browser:
        yield browser


@pytest.fixture(scope="session")
def contexts(browser: Browser) -> Callable[..., BrowserContext]:
    """Return a function that returns the browser context with the given options.

    Tests share contexts, because pages of steelyard store nothing in the browser.
    """
    made: dict[str, BrowserContext] = {}

    def context(**how: Any) -> BrowserContext:
        key = json.dumps(how, sort_keys=True)
        if key not in made:
            made[key] = browser.new_context(**how)
        return made[key]

    return context


@pytest.fixture
def opened(contexts: Callable[..., BrowserContext]) -> Iterator[Callable[..., Watched]]:
    """Yield a function that opens a page; check that pages report nothing and load no other URL."""
    found: list[Watched] = []

    def open_page(url: str, **how: Any) -> Watched:
        watched = Watched(contexts(**how))
        closing.callback(watched.page.close)
        watched.page.goto(url)
        found.append(watched)
        return watched

    with contextlib.ExitStack() as closing:
        yield open_page
        for watched in found:
            assert watched.complaints == []
            own = watched.page.url.partition("?")[0].partition("#")[0]
            if own.startswith("http"):
                own = "/".join(own.split("/")[:3]) + "/"  # other pages of the same server
            strangers = [url for url in watched.requests if not url.startswith((own, "data:"))]
            assert strangers == []


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Return a function that writes a page with ``explain --html`` and returns its URL."""
    there: dict[tuple[str, ...], str] = {}

    def write(*argv: str) -> str:
        if argv not in there:
            file = tmp_path_factory.mktemp("page") / "decision.html"
            command = ["--config-file", "decision.conf", "explain", "--html", str(file), *argv]
            with contextlib.chdir(EXAMPLES):
                assert cli.main(command) in (0, 1)
            there[argv] = file.as_uri()
        return there[argv]

    return write


@pytest.fixture
def decision(pages: Callable[..., str]) -> str:
    """Return the URL of a page with bars of two weighers, failure domains and several reasons."""
    return pages("--cloud", "decision.yaml", "--flavor", "web.large", "--group", "shop")


@pytest.fixture
def nothing(pages: Callable[..., str]) -> str:
    """Return the URL of a page where no host fits the flavor."""
    return pages("--cloud", "decision.yaml", "--flavor", "huge")


@pytest.fixture(scope="session")
def changes(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the URL of a page with the consequences of taking out a rack."""
    file = tmp_path_factory.mktemp("page") / "whatif.html"
    command = ["--config-file", "racks.conf", "whatif", "--cloud", "rack-work.yaml"]
    with contextlib.chdir(EXAMPLES):
        argv = [*command, "--add-host", "fast:b2", "--out", "rack=a", "--html", str(file)]
        assert cli.main(argv) == 1
    return file.as_uri()


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return the folder for screenshots: STEELYARD_TEST_SCREENSHOTS, or a temporary one."""
    named = os.environ.get("STEELYARD_TEST_SCREENSHOTS")
    path = pathlib.Path(named) if named else tmp_path_factory.mktemp("screenshots")
    path.mkdir(exist_ok=True)
    return path
