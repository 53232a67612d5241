import contextlib
import os
import pathlib
import subprocess
import sys
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser.chromium import Watched, launched
from playwright.sync_api import Browser, sync_playwright

EXAMPLES = pathlib.Path(__file__).parents[2] / "docs" / "examples"


@pytest.fixture(scope="session")
def browser() -> Iterator[Browser]:
    with sync_playwright() as playwright, contextlib.closing(launched(playwright)) as browser:
        yield browser


@pytest.fixture
def opened(browser: Browser) -> Iterator[Callable[..., Watched]]:
    """Opens pages, and in the end looks at what they have asked for, and complained of."""
    found: list[Watched] = []

    def open_page(url: str, **how: Any) -> Watched:
        contexts.callback((context := browser.new_context(**how)).close)
        watched = Watched(context)
        watched.page.goto(url)
        found.append(watched)
        return watched

    with contextlib.ExitStack() as contexts:
        yield open_page
        for watched in found:
            assert watched.complaints == []
            own = watched.page.url.partition("?")[0].partition("#")[0]
            strangers = [url for url in watched.requests if not url.startswith((own, "data:"))]
            assert strangers == []


@pytest.fixture(scope="session")
def pages(tmp_path_factory: pytest.TempPathFactory) -> Callable[..., str]:
    """Has the command write a page; its address."""
    there: dict[tuple[str, ...], str] = {}

    def write(*argv: str) -> str:
        if argv not in there:
            file = tmp_path_factory.mktemp("page") / "decision.html"
            code = "from steelyard import cli; raise SystemExit(cli.main())"
            command = [sys.executable, "-c", code, "--config-file", "decision.conf"]
            command += ["explain", "--html", str(file), *argv]
            done = subprocess.run(command, cwd=EXAMPLES, check=False, capture_output=True)
            assert done.returncode in (0, 1), done.stderr.decode()
            there[argv] = file.as_uri()
        return there[argv]

    return write


@pytest.fixture
def decision(pages: Callable[..., str]) -> str:
    """A page with everything on it: bars of two weighers, domains, several reasons."""
    return pages("--cloud", "decision.yaml", "--flavor", "web.large", "--group", "shop")


@pytest.fixture
def nothing(pages: Callable[..., str]) -> str:
    """A page that says that no host fits."""
    return pages("--cloud", "decision.yaml", "--flavor", "huge")


@pytest.fixture(scope="session")
def screenshots(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Where they go: where the environment says, to be looked at."""
    named = os.environ.get("STEELYARD_TEST_SCREENSHOTS")
    path = pathlib.Path(named) if named else tmp_path_factory.mktemp("screenshots")
    path.mkdir(exist_ok=True)
    return path
