"""Chromium, and pages whose errors and requests are recorded."""

import importlib.resources
import os
import pathlib
import shutil
from typing import Any

from playwright.sync_api import BrowserContext, Page, Playwright

from support.services import required

VARIABLE = "STEELYARD_TEST_CHROMIUM"
NAMES = ("chromium", "chromium-browser", "google-chrome")
# Set to 1 if tests must not be skipped.


def chromium_path() -> str:
    """Return the path of Chromium; if there is none, skip the test, or fail it if required."""
    named = os.environ.get(VARIABLE)
    found = [path for name in ([named] if named else NAMES) if (path := shutil.which(name))]
    if not found:
        required.missing(f"no Chromium: {named or ', '.join(NAMES)} not found; set {VARIABLE}")
    return found[0]


def launched(playwright: Playwright) -> Any:
    # There is no GPU, and its processes would only take time to start.
    arguments = ["--disable-gpu", "--in-process-gpu"]
    # The sandbox does not work for root, which runs the tests in containers.
    if os.geteuid() == 0:
        arguments.append("--no-sandbox")
    return playwright.chromium.launch(executable_path=chromium_path(), args=arguments)


class Watched:
    """A page, with its requests and its errors."""

    def __init__(self, context: BrowserContext) -> None:
        self.page: Page = context.new_page()
        self.requests: list[str] = []
        self.complaints: list[str] = []
        self.page.on("request", lambda request: self.requests.append(request.url))
        self.page.on("console", lambda message: self.complaints.append(message.text))
        self.page.on("pageerror", lambda error: self.complaints.append(str(error)))
        self.page.on("dialog", lambda dialog: self.complaints.append(dialog.message))

    def violations(self, *rules: str) -> list[str]:
        """Return the violations that axe finds by these rules, or by all, with the elements."""
        axe = importlib.resources.files("axe_playwright_python") / "axe.min.js"
        self.page.evaluate(axe.read_text("utf-8"))
        options: dict[str, Any] = {"resultTypes": ["violations"]}
        if rules:
            options["runOnly"] = rules
        found = self.page.evaluate("options => axe.run(document, options)", options)
        assert found["passes"]
        return [
            f"{violation['id']}: {node['html']}: {node['failureSummary']}"
            for violation in found["violations"]
            for node in violation["nodes"]
        ]

    def picture(self, path: pathlib.Path, **how: Any) -> None:
        # Playwright hides the caret with a style, which the policy of the page forbids.
        self.page.screenshot(path=path, caret="initial", **how)

    @property
    def focused(self) -> str:
        """The text of the focused element, or its identifier if it has no text."""
        return str(
            self.page.evaluate(
                "document.activeElement.textContent.trim() || document.activeElement.id"
            )
        )
