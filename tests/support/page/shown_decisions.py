"""The content of the page in a browser, and keyboard input."""

from collections.abc import Callable

from support.page.chromium import Watched

Open = Callable[..., Watched]
WIDE = {"width": 1440, "height": 900}


def hosts(watched: Watched) -> list[str]:
    """Return the names of the shown hosts."""
    return watched.page.locator("#matrix tbody tr:not(.detail) th").all_inner_texts()


def count(watched: Watched) -> str:
    return watched.page.inner_text("#count")


def press(watched: Watched, *keys: str) -> None:
    for key in keys:
        watched.page.keyboard.press(key)


def tab_to(watched: Watched, text: str, most: int = 60) -> None:
    """Press Tab until the element with this text or identifier has the focus."""
    for _ in range(most):
        press(watched, "Tab")
        if watched.focused == text:
            return
    raise AssertionError(f"{text!r} not focused after pressing Tab {most} times")
