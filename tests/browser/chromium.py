"""The Chromium that tests drive, and pages in it that are watched."""

import importlib.resources
import os
import pathlib
import shutil
from typing import Any

import pytest
from playwright.sync_api import BrowserContext, Page, Playwright

VARIABLE = "STEELYARD_TEST_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome")
# Set where tests must not be skipped.
REQUIRE = "STEELYARD_REQUIRE_SERVICES"


def needed() -> str:
    """The path of its program; without it the test is skipped, or fails where it must not be."""
    named = os.environ.get(VARIABLE)
    found = [path for name in ([named] if named else NAMES) if (path := shutil.which(name))]
    if found:
        return found[0]
    why = f"there is no Chromium, by {named or ', '.join(NAMES)} (set {VARIABLE})"
    if os.environ.get(REQUIRE) == "1":
        pytest.fail(f"{why}; {REQUIRE} is set", pytrace=False)
    pytest.skip(why)


def launched(playwright: Playwright) -> Any:
    # The sandbox does not work for root, which runs the tests in containers.
    arguments = ["--no-sandbox"] if os.geteuid() == 0 else []
    return playwright.chromium.launch(executable_path=needed(), args=arguments)


class Watched:
    """A page, with all that it has asked for and complained of."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))

    def violations(self) -> list[str]:
        """What axe finds against the page, with the elements that it finds it in."""
        axe = importlib.resources.files("axe_playwright_python") / "axe.min.js"
        self.page.evaluate(axe.read_text("utf-8"))
        found = self.page.evaluate("axe.run(document, {resultTypes: ['violations']})")
        assert found["passes"]
        return [
            f"{violation['id']}: {node['html']}: {node['failureSummary']}"
            for violation in found["violations"]
            for node in violation["nodes"]
        ]

    def picture(self, path: pathlib.Path, **how: Any) -> None:
        # The caret is hidden by a style, which the policy of the page would not let in.
        self.page.screenshot(path=path, caret="initial", **how)

    @property
    def focused(self) -> str:
        """The text, or else the identifier, of what has the focus."""
        return str(
            self.page.evaluate(
                "document.activeElement.textContent.trim() || document.activeElement.id"
            )
        )
