"""The page in Chromium: appearance and accessibility."""

import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from steelyard import cli
from support.page.shown_decisions import WIDE, Open, count, hosts
from support.repository import EXAMPLES

# The elements inside the page that can be scrolled.
BOXES = """[...document.body.querySelectorAll("*")].filter((each) => {
  const {overflowX, overflowY} = getComputedStyle(each);
  return /auto|scroll/.test(overflowX + overflowY);
}).map((each) => each.outerHTML)"""

# The tables that are wider than the place that they have.
OVERFLOWING = """[...document.querySelectorAll("table")].filter(
  (each) => each.getBoundingClientRect().right > each.parentElement.getBoundingClientRect().right + 1
).map((each) => each.caption.textContent)"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["decision", "nothing"])
def test_page_has_no_accessibility_violations(
    opened: Open, request: Any, screenshots: pathlib.Path, page: str, scheme: str
) -> None:
    url = request.getfixturevalue(page)
    watched = opened(url, viewport=WIDE, color_scheme=scheme)
    # Dark pages differ only in their colours.
    rules = ["color-contrast"] if scheme == "dark" else []
    assert watched.violations(*rules) == []
    watched.picture(screenshots / f"{page}-{scheme}.png", full_page=True)
    # The page after some interaction.
    watched.page.locator("button.host").first.click()
    watched.page.locator("button.host").nth(5 if page == "decision" else 2).click()
    watched.page.locator("[data-narrow] button").first.click()
    watched.page.locator("#matrix thead button").first.click()
    assert watched.violations(*rules) == []
    watched.page.fill("#search", "no such host")
    assert count(watched).startswith("0 of 12 hosts")
    assert watched.violations(*rules) == []
    watched.picture(screenshots / f"{page}-{scheme}-narrowed.png")


def test_accessibility_checker_finds_missing_language(opened: Open, decision: str) -> None:
    watched = opened(decision)
    watched.page.evaluate("document.documentElement.removeAttribute('lang')")
    assert [found.partition(":")[0] for found in watched.violations()] == ["html-has-lang"]


def test_marks_have_accessible_names(opened: Open, decision: str) -> None:
    watched = opened(decision)
    cells = watched.page.get_by_role("row", name="c3").get_by_role("cell").all()
    assert [cell.aria_snapshot() for cell in cells[3:]] == [
        '- cell "passed"',
        '- cell "rejected for reason 2"',
        '- cell "passed"',
        '- cell "would also reject for reason 7"',
        '- cell "passed"',
        '- cell "passed"',
    ]


def test_reduced_motion_disables_transitions(opened: Open, decision: str) -> None:
    moving = "getComputedStyle(document.querySelector('main')).transitionDuration"
    assert opened(decision, reduced_motion="reduce").page.evaluate(moving) == "0s"
    assert opened(decision, reduced_motion="no-preference").page.evaluate(moving) != "0s"


def test_forced_colors_have_no_accessibility_violations(
    opened: Open, decision: str, screenshots: pathlib.Path
) -> None:
    watched = opened(decision, viewport=WIDE, forced_colors="active")
    assert watched.violations() == []
    watched.picture(screenshots / "forced-colors.png", full_page=True)


@pytest.mark.parametrize("width", [320, 768, 1280, 1920])
def test_only_the_page_scrolls_and_only_downwards(
    opened: Open, decision: str, screenshots: pathlib.Path, width: int
) -> None:
    watched = opened(decision, viewport={"width": width, "height": 800})
    watched.page.locator("button.host", has_text="c3").click()
    watched.page.locator(".map .cell").first.click()
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    assert watched.page.evaluate(BOXES) == []
    assert watched.page.evaluate(OVERFLOWING) == []
    assert watched.violations() == []
    watched.picture(screenshots / f"width-{width}.png", full_page=True)


def test_search_finds_hosts_by_any_text(opened: Open, decision: str) -> None:
    watched = opened(decision)
    assert watched.page.get_attribute("#count", "role") == "status"
    for typed, found in {
        "B1": ["b1"],
        "chosen": ["b1"],
        "rejected room-north": ["a4", "a3"],
        "rack-c traitsfilter": ["c2"],
        "power supply": ["a4"],
        "draining": ["b3"],
        "zzz": [],
    }.items():
        watched.page.fill("#search", "")
        watched.page.locator("#search").press_sequentially(typed)
        assert hosts(watched) == found, typed
        assert count(watched) == f"{len(found)} of 12 hosts", typed


def test_printed_page_shows_all_matching_hosts(
    opened: Open, decision: str, screenshots: pathlib.Path
) -> None:
    watched = opened(decision, viewport=WIDE)
    watched.page.fill("#search", "room-south")
    watched.page.locator("[data-narrow] button", has_text="room: south").click()
    watched.page.emulate_media(media="print")
    for control in ("#search", "#wide", ".top", ".more", "footer"):
        assert not watched.page.locator(control).first.is_visible()
    # The printed count names the group and the search.
    assert count(watched) == "5 of 12 hosts"
    how = "getComputedStyle(document.querySelector('#count'), '::after').content"
    assert watched.page.evaluate(how) == '", only room: south, with room-south"'
    assert watched.page.locator(".reasons li").last.is_visible()
    weights = watched.page.locator("#matrix td ul")
    assert weights.count() == 0  # none of these fits
    display = "getComputedStyle(document.querySelector('#matrix thead')).display"
    assert watched.page.evaluate(display) == "table-header-group"
    watched.picture(screenshots / "print.png", full_page=True)
    watched.page.emulate_media(media="screen")
    watched.page.fill("#search", "")
    watched.page.locator("#wide").click()
    watched.page.emulate_media(media="print")
    watched.page.evaluate("dispatchEvent(new Event('beforeprint'))")
    assert weights.first.is_visible()
    assert watched.violations() == []
    pdf = watched.page.pdf(prefer_css_page_size=True)
    (screenshots / "decision.pdf").write_bytes(pdf)
    assert pdf.startswith(b"%PDF-")
    assert pdf.count(b"/Type /Page\n") >= 2


def test_page_without_scripts_shows_everything(
    opened: Open, decision: str, screenshots: pathlib.Path
) -> None:
    watched = opened(decision, viewport=WIDE, java_script_enabled=False)
    assert watched.page.locator("#plain tbody tr").count() == 12
    for control in ("#search", "#matrix", ".map"):
        assert not watched.page.locator(control).is_visible()
    assert "RAMWeigher: 98304" in watched.page.locator("#plain td ul").first.inner_text()
    link = watched.page.locator("#plain td.no a").first
    link.click()
    assert watched.page.url.endswith(link.get_attribute("href") or "none")
    watched.picture(screenshots / "no-script.png", full_page=True)


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    '"><svg onload=alert(1)>',
    "<b>bold</b>",
    "{{ 7 * 7 }}",
]


def test_hostile_names_are_shown_as_text(
    opened: Open, pages: Callable[..., str], tmp_path: pathlib.Path, screenshots: pathlib.Path
) -> None:
    small = {"vcpus": 4, "ram_mb": 4096, "disk_gb": 100}
    cloud = {
        "hosts": dict.fromkeys(HOSTILE, small),
        "aggregates": {
            name: {"hosts": HOSTILE[index:], "metadata": {name: name, "rack": name}}
            for index, name in enumerate(HOSTILE)
        },
        "flavors": {
            HOSTILE[0]: {
                "vcpus": 1,
                "ram_mb": 1024,
                "disk_gb": 1,
                "extra_specs": {HOSTILE[1]: HOSTILE[2], "trait:<i>": "required"},
            }
        },
        "servers": {HOSTILE[4]: {"flavor": HOSTILE[0], "host": HOSTILE[0]}},
        "server_groups": {HOSTILE[3]: {"policy": "anti-affinity"}},
    }
    file = tmp_path / "hostile.json"
    file.write_text(json.dumps(cloud))
    argv = ["--cloud", str(file), "--flavor", HOSTILE[0], "--group", HOSTILE[3]]
    watched = opened(pages(*argv), viewport=WIDE)
    assert watched.page.title() == f"No host fits {HOSTILE[0]} · steelyard"
    assert sorted(hosts(watched)) == sorted(HOSTILE)
    for button in watched.page.locator("button.host").all():
        button.click()
    watched.page.locator("[data-narrow] button", has_text="bold").first.click()
    watched.page.get_by_role("button", name=f"{HOSTILE[0]}: rejected").click()
    watched.page.locator(".details .servers li").wait_for()
    assert watched.page.inner_text(".details h3") == f"{HOSTILE[0]}: rejected"
    watched.page.fill("#search", "<b>bold")
    assert watched.page.inner_text("#wide") == f"Only {HOSTILE[3]} ✕"
    shown = watched.page.inner_text("main")
    assert all(name in shown for name in HOSTILE)
    for tag in ("img", "b:not(.counts b)", "svg[onload]", "main script:not(#data)"):
        assert watched.page.locator(tag).count() == 0
    watched.picture(screenshots / "hostile.png", full_page=True)


@pytest.mark.parametrize("width", [320, 1280])
def test_long_names_are_wrapped(
    opened: Open, pages: Callable[..., str], tmp_path: pathlib.Path, width: int
) -> None:
    host, aggregate, flavor, server = (f"{each}-with-a-long-name-" * 5 for each in "hafs")
    metadata = {
        "rack": "r" * 80,
        "room": "room " * 20,
        "availability_zone": "z" * 70,
        "k" * 60: "v",
    }
    cloud = {
        "hosts": {host: {"vcpus": 4, "ram_mb": 4096, "disk_gb": 100, "traits": ["CUSTOM_" * 20]}},
        "aggregates": {aggregate: {"hosts": [host], "metadata": metadata}},
        "flavors": {
            flavor: {"vcpus": 1, "ram_mb": 1, "disk_gb": 1, "extra_specs": {"k": "v" * 90}}
        },
        "servers": {server: {"flavor": flavor, "host": host}},
    }
    file = tmp_path / "long.json"
    file.write_text(json.dumps(cloud))
    watched = opened(
        pages("--cloud", str(file), "--flavor", flavor), viewport={"width": width, "height": 800}
    )
    watched.page.locator("button.host").click()
    watched.page.locator(".map .cell").click()
    watched.page.locator(".details .servers li").wait_for()
    assert watched.page.evaluate("document.documentElement.scrollWidth") <= width
    assert watched.page.evaluate(OVERFLOWING) == []


def test_possible_typos_are_below_reasons_of_an_unfolded_host(
    opened: Open, tmp_path: pathlib.Path
) -> None:
    page = tmp_path / "typos.html"
    argv = ["explain", "--cloud", str(EXAMPLES / "grown.yaml"), "--flavor", "web.small"]
    assert cli.main([*argv, "--html", str(page)]) == 0
    watched = opened(page.as_uri())
    watched.page.locator("button.host", has_text="rack2-node1").click()
    typos = watched.page.locator("#matrix .typo").all_text_contents()
    assert typos == [
        "aggregate 'rack-2', key 'ssd': no flavor has the value 'NVMe'; did you mean 'nvme'?"
    ]
    assert watched.violations() == []
