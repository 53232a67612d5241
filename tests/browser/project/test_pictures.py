"""The sizes of the pictures in the documentation.

With STEELYARD_PICTURES=1, the tests take the pictures again. They do not compare pixels, because
versions of Chromium draw letters differently, and so miss an outdated picture of the same size.
"""

import os
import pathlib
import re
import struct
from collections.abc import Callable

import pytest

from support.page.chromium import Watched
from support.repository import DOCS

PICTURES = DOCS / "pictures"
MOST = 200_000
WIDE = {"width": 1280, "height": 900}

Open = Callable[..., Watched]


def unfolded(watched: Watched) -> None:
    watched.page.locator("button.host", has_text="c3").click()
    watched.page.locator("#hosts").scroll_into_view_if_needed()


def opened_on_map(watched: Watched) -> None:
    watched.page.get_by_role("button", name="a3: full").click()
    watched.page.locator(".details dd", has_text="none").first.wait_for()


def narrowed(watched: Watched) -> None:
    watched.page.locator("[data-narrow] button", has_text="room-south").click()
    watched.page.fill("#search", "ssd")


def drawn(watched: Watched) -> None:
    watched.page.locator('[data-side="After"] .cell').first.wait_for()


TAKEN: dict[str, tuple[str, str, str, Callable[[Watched], None]]] = {
    # By the name of the file: the fixture with the page, the colour scheme, the shown elements, and
    # the step before.
    "decision": ("decision", "light", ".answer, .columns:not(.uneven)", lambda _: None),
    "map": ("decision", "light", "section:has(> #map)", opened_on_map),
    "hosts": ("decision", "light", "#hosts", unfolded),
    "hosts-dark": ("decision", "dark", "#hosts", narrowed),
    "whatif": ("changes", "light", "main > *", drawn),
}


def size_of(picture: bytes) -> tuple[int, int]:
    assert picture.startswith(b"\x89PNG\r\n\x1a\n")
    width, height = struct.unpack(">II", picture[16:24])
    return width, height


@pytest.mark.parametrize("name", TAKEN)
def test_picture_has_the_size_of_the_elements_shown(
    opened: Open, request: pytest.FixtureRequest, tmp_path: pathlib.Path, name: str
) -> None:
    page, scheme, part, prepare = TAKEN[name]
    watched = opened(request.getfixturevalue(page), viewport=WIDE, color_scheme=scheme)
    prepare(watched)
    kept = PICTURES / f"{name}.png"
    taken = kept if os.environ.get("STEELYARD_PICTURES") == "1" else tmp_path / "taken.png"
    corners = watched.page.evaluate(
        "selector => [...document.querySelectorAll(selector)].map(each => "
        "{const box = each.getBoundingClientRect(); return [box.top + scrollY, box.bottom + scrollY]})",
        part,
    )
    top, bottom = min(each[0] for each in corners), max(each[1] for each in corners)
    clip = {"x": 0, "y": max(top - 16, 0), "width": WIDE["width"], "height": bottom - top + 24}
    watched.picture(taken, full_page=True, clip=clip)
    content = kept.read_bytes()
    assert len(content) < MOST
    width, height = size_of(content)
    now = size_of(taken.read_bytes())
    assert width == now[0]
    assert abs(height - now[1]) <= 0.2 * now[1], (
        f"outdated picture '{kept.name}': run with STEELYARD_PICTURES=1 to take it again"
    )


def test_every_picture_is_taken_here_and_shown_on_a_page() -> None:
    there = {path.stem for path in PICTURES.iterdir()}
    shown = {
        name
        for page in DOCS.rglob("*.rst")
        for name in re.findall(
            r"^ *\.\. (?:figure|image):: (?:/|\.\./)pictures/(\S+)\.png",
            page.read_text(),
            re.MULTILINE,
        )
    }
    assert there == set(TAKEN) == shown
