"""The page that shows a decision, as somebody has it before them: in a real Chromium."""

import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest
from browser.chromium import Watched

Open = Callable[..., Watched]
WIDE = {"width": 1440, "height": 900}


def hosts(watched: Watched) -> list[str]:
    """The names of the hosts that are shown."""
    return watched.page.locator("#matrix tbody tr:not(.detail) th").all_inner_texts()


def count(watched: Watched) -> str:
    return watched.page.inner_text("#count")


def press(watched: Watched, *keys: str) -> None:
    for key in keys:
        watched.page.keyboard.press(key)


def tab_to(watched: Watched, text: str, most: int = 60) -> None:
    """Presses Tab until what has that text, or that identifier, has the focus."""
    for _ in range(most):
        press(watched, "Tab")
        if watched.focused == text:
            return
    raise AssertionError(f"{text!r} is not reached with {most} tabs")


# Whether any of what has the focus is.
IN_SIGHT = """(() => {
  const box = document.activeElement.getBoundingClientRect();
  const shares = [0.1, 0.5, 0.9];
  return shares.some((x) => shares.some((y) => document.activeElement.contains(
    document.elementFromPoint(box.x + x * box.width, box.y + y * box.height))));
})()"""


# Who cannot see it, or not well


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("page", ["decision", "nothing"])
def test_an_accessibility_checker_finds_nothing(
    opened: Open, request: Any, screenshots: pathlib.Path, page: str, scheme: str
) -> None:
    url = request.getfixturevalue(page)
    watched = opened(url, viewport=WIDE, color_scheme=scheme)
    assert watched.violations() == []
    watched.picture(screenshots / f"{page}-{scheme}.png", full_page=True)
    # And once it has been used.
    watched.page.locator("button.host").first.click()
    watched.page.locator("button.host").nth(5 if page == "decision" else 2).click()
    watched.page.locator("[data-narrow] button").first.click()
    watched.page.locator("#matrix thead button").first.click()
    assert watched.violations() == []
    watched.page.fill("#search", "nothing is called this")
    assert count(watched).startswith("0 of 12 hosts")
    assert watched.violations() == []
    watched.picture(screenshots / f"{page}-{scheme}-narrowed.png")


def test_the_checker_would_find_something(opened: Open, decision: str) -> None:
    watched = opened(decision)
    watched.page.evaluate("document.documentElement.removeAttribute('lang')")
    assert [found.partition(":")[0] for found in watched.violations()] == ["html-has-lang"]


def test_marks_are_read_out_as_words(opened: Open, decision: str) -> None:
    watched = opened(decision)
    cells = watched.page.get_by_role("row", name="c3").get_by_role("cell").all()
    assert [cell.aria_snapshot() for cell in cells[3:]] == [
        '- cell "passed"',
        '- cell "turned away for reason 2"',
        '- cell "passed"',
        '- cell "also against it, reason 7"',
        '- cell "passed"',
        '- cell "passed"',
    ]


def test_who_wants_no_movement_sees_none(opened: Open, decision: str) -> None:
    moving = "getComputedStyle(document.querySelector('main')).transitionDuration"
    assert opened(decision, reduced_motion="reduce").page.evaluate(moving) == "0s"
    assert opened(decision, reduced_motion="no-preference").page.evaluate(moving) != "0s"


def test_with_the_colours_of_the_system(
    opened: Open, decision: str, screenshots: pathlib.Path
) -> None:
    watched = opened(decision, viewport=WIDE, forced_colors="active")
    assert watched.violations() == []
    watched.picture(screenshots / "forced-colors.png", full_page=True)


@pytest.mark.parametrize("width", [320, 768])
def test_a_narrow_window_scrolls_tables_alone(
    opened: Open, decision: str, screenshots: pathlib.Path, width: int
) -> None:
    watched = opened(decision, viewport={"width": width, "height": 800})
    wide = watched.page.evaluate("document.documentElement.scrollWidth")
    assert wide <= width
    assert watched.violations() == []
    watched.picture(screenshots / f"width-{width}.png", full_page=True)


# Without a mouse


def test_the_way_of_the_tab_key(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    press(watched, "Tab")
    assert watched.focused == "Skip to the hosts"
    assert watched.page.locator(".skip").bounding_box()["y"] >= 0  # type: ignore[index]
    stops = []
    for _ in range(36):
        press(watched, "Tab")
        stops.append(watched.focused)
    assert stops == [
        # Causes, the most frequent first
        "not enough MiB of RAM: flavor wants 16384",
        "key 'gpu': forced aggregate 'gpu' wants 'a100', flavor does not have the key",
        "key 'ssd': flavor wants '<or> nvme <or> ~', aggregate 'rack-c' offers 'sata'",
        "not enough vCPUs: flavor wants 8",
        "the host is out of service",
        "trait CUSTOM_TO_BE_SERVICED is forbidden and there",
        *("room-north", "room-south", "rack-a", "rack-b", "rack-c", "rack-d", "draining", "gpu"),
        *("room: north", "rack: a", "rack: b", "room: south", "rack: c", "rack: d"),
        "search",
        *("Host", "Aggregates", "Verdict", "Weight"),
        *("InServiceFilter", "CapacityFilter", "TraitsFilter", "AggregateInstanceTypeFilter"),
        *("ServerGroupAffinityFilter", "ServerGroupAntiAffinityFilter"),
        *("b1", "a2", "a1", "b3", "b2"),
    ]


def test_what_has_the_focus_can_be_seen(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    for _ in range(40):
        press(watched, "Tab")
        style = watched.page.evaluate(
            "(({outlineStyle, outlineWidth}) => [outlineStyle, outlineWidth])"
            "(getComputedStyle(document.activeElement))"
        )
        assert style == ["solid", "2px"], watched.focused


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (800, 400)])
def test_what_has_the_focus_is_not_under_a_head(
    opened: Open, large: str, width: int, height: int
) -> None:
    watched = opened(large, viewport={"width": width, "height": height})
    hidden = []
    watched.page.focus("#search")
    # Down among the hosts, and back to the groups.
    for key in ["Tab"] * 60 + ["Shift+Tab"] * 110:
        press(watched, key)
        if not watched.page.evaluate(IN_SIGHT):
            hidden.append((key, watched.focused))
    assert hidden == []


def test_past_everything_to_the_hosts(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    press(watched, "Tab", "Enter", "Tab")
    assert watched.focused == "search"
    watched.page.keyboard.type("rack-c")
    assert hosts(watched) == ["c3", "c2", "c1"]
    assert count(watched) == "3 of 12 hosts"
    press(watched, "Escape")
    assert count(watched) == "12 hosts"
    assert watched.focused == "search"
    # Not every browser empties the field by itself, as this one does when the key is pressed.
    watched.page.fill("#search", "rack-c")
    watched.page.dispatch_event("#search", "keydown", {"key": "Escape"})
    assert count(watched) == "12 hosts"


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_reasons_unfold_and_fold(opened: Open, decision: str, key: str) -> None:
    watched = opened(decision, viewport=WIDE)
    tab_to(watched, "c3")
    press(watched, key)
    button = watched.page.locator("button.host", has_text="c3")
    assert button.get_attribute("aria-expanded") == "true"
    detail = watched.page.locator("tr.detail")
    assert detail.inner_text().split("\n") == [
        "CapacityFilter",
        "MiB of RAM: flavor wants 16384, the host has 2048 of 131072 left",
        "AggregateInstanceTypeFilter as well",
        "key 'ssd': flavor wants '<or> nvme <or> ~', aggregate 'rack-c' offers 'sata'",
        "Groups",
        "room-south: room=south",
        "rack-c: rack=c ssd=sata",
        "room: south",
        "rack: c",
    ]
    assert watched.focused == "c3"
    press(watched, key)
    assert detail.count() == 0
    assert button.get_attribute("aria-expanded") == "false"


def test_weights_unfold(opened: Open, decision: str) -> None:
    watched = opened(decision)
    tab_to(watched, "b3")
    press(watched, "Enter")
    assert watched.page.locator("tr.detail").inner_text().split("\n")[:3] == [
        "Weight",
        "RAMWeigher: 90112, normalised 0.7857, times -1 is -0.7857",
        "ServerGroupSoftAntiAffinityWeigher: 0, normalised 1, times 1.5 is 1.5",
    ]


def test_what_is_unfolded_stays_so(opened: Open, decision: str) -> None:
    watched = opened(decision)
    tab_to(watched, "c3")
    press(watched, "Enter")
    watched.page.fill("#search", "b1")
    assert watched.page.locator("tr.detail").count() == 0
    watched.page.fill("#search", "c3")
    assert watched.page.locator("tr.detail").count() == 1


def test_sorting_with_the_keyboard(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    head = watched.page.locator("#matrix thead th")
    everything = hosts(watched)
    tab_to(watched, "Host")
    press(watched, "Enter")
    assert hosts(watched) == sorted(everything)
    assert head.nth(0).get_attribute("aria-sort") == "ascending"
    assert count(watched) == "12 hosts, sorted by Host, ascending"
    press(watched, "Space")
    assert hosts(watched) == sorted(everything, reverse=True)
    assert head.nth(0).get_attribute("aria-sort") == "descending"
    assert watched.focused == "Host"
    tab_to(watched, "Weight")
    press(watched, "Enter")
    assert hosts(watched)[:5] == ["b1", "a2", "a1", "b3", "b2"]
    assert head.nth(0).get_attribute("aria-sort") is None
    assert head.nth(3).get_attribute("aria-sort") == "descending"
    tab_to(watched, "CapacityFilter")
    press(watched, "Enter")
    # What it turned away comes first, by the numbers of the reasons.
    assert hosts(watched)[:3] == ["c3", "a3", "d2"]


def test_a_group_shows_its_hosts_alone(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    tab_to(watched, "rack-c")
    press(watched, "Enter")
    assert watched.focused == "rack-c"
    assert hosts(watched) == ["c3", "c2", "c1"]
    assert count(watched) == "3 of 12 hosts"
    pressed = watched.page.locator("[aria-pressed=true]")
    assert pressed.all_inner_texts() == ["rack-c"]
    # The words narrow further.
    watched.page.fill("#search", "serviced")
    assert hosts(watched) == ["c2"]
    watched.page.fill("#search", "")
    # Another one takes its place, and it can be left.
    tab_to(watched, "Only rack-c ✕")
    press(watched, "Shift+Tab", "Shift+Tab")
    assert watched.focused == "rack: d"
    press(watched, "Enter")
    assert hosts(watched) == ["d2", "d1"]
    assert pressed.all_inner_texts() == ["rack: d"]
    tab_to(watched, "Only rack: d ✕")
    press(watched, "Enter")
    assert watched.focused == "search"
    assert count(watched) == "12 hosts"
    assert pressed.count() == 0


def test_a_cause_shows_its_hosts_alone_and_twice_all_of_them(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    tab_to(watched, "not enough MiB of RAM: flavor wants 16384")
    press(watched, "Enter")
    assert hosts(watched) == ["a3", "c3"]
    press(watched, "Enter")
    assert count(watched) == "12 hosts"


# By typing


@pytest.mark.parametrize(
    ("typed", "found"),
    [
        ("B1", ["b1"]),
        ("chosen", ["b1"]),
        ("rejected room-north", ["a4", "a3"]),
        ("rack-c traitsfilter", ["c2"]),
        ("power supply", ["a4"]),
        ("draining", ["b3"]),
        ("zzz", []),
    ],
)
def test_typing_narrows_by_anything(
    opened: Open, decision: str, typed: str, found: list[str]
) -> None:
    watched = opened(decision)
    watched.page.locator("#search").press_sequentially(typed)
    assert hosts(watched) == found
    assert count(watched) == f"{len(found)} of 12 hosts"
    assert watched.page.get_attribute("#count", "role") == "status"


# On paper, and without a script


def test_on_paper_everything_is_there(
    opened: Open, decision: str, screenshots: pathlib.Path
) -> None:
    watched = opened(decision, viewport=WIDE)
    watched.page.fill("#search", "room-south")
    watched.page.locator("[data-narrow] button", has_text="room: south").click()
    watched.page.emulate_media(media="print")
    for control in ("#search", "#wide", ".top", ".more", "footer"):
        assert not watched.page.locator(control).first.is_visible()
    # Which hosts these are is said.
    assert count(watched) == "5 of 12 hosts"
    how = "getComputedStyle(document.querySelector('#count'), '::after').content"
    assert watched.page.evaluate(how) == '", only room: south, with room-south"'
    assert watched.page.locator(".reasons li").last.is_visible()
    weights = watched.page.locator("#matrix td.weight ul")
    assert weights.count() == 0  # none of these fits
    display = "getComputedStyle(document.querySelector('#matrix thead')).display"
    assert watched.page.evaluate(display) == "table-header-group"
    watched.picture(screenshots / "print.png", full_page=True)
    watched.page.emulate_media(media="screen")
    watched.page.fill("#search", "")
    watched.page.locator("#wide").click()
    watched.page.emulate_media(media="print")
    assert weights.first.is_visible()
    assert watched.violations() == []
    pdf = watched.page.pdf(prefer_css_page_size=True)
    (screenshots / "decision.pdf").write_bytes(pdf)
    assert pdf.startswith(b"%PDF-")
    assert pdf.count(b"/Type /Page\n") >= 2


def test_without_a_script_everything_can_be_read(
    opened: Open, decision: str, screenshots: pathlib.Path
) -> None:
    watched = opened(decision, viewport=WIDE, java_script_enabled=False)
    assert len(hosts(watched)) == 12
    assert not watched.page.locator("#search").is_visible()
    assert "RAMWeigher: 98304" in watched.page.locator("#matrix td.weight").first.inner_text()
    link = watched.page.locator("#matrix td.no a").first
    link.click()
    assert watched.page.url.endswith(link.get_attribute("href") or "none")
    watched.picture(screenshots / "no-script.png", full_page=True)


# Whatever is in it


HOSTILE = [
    "<img src=x onerror=alert(1)>",
    "</script><script>alert(1)</script>",
    '"><svg onload=alert(1)>',
    "<b>bold</b>",
    "{{ 7 * 7 }}",
]


def test_hostile_names_are_text(
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
    watched.page.fill("#search", "<b>bold")
    assert watched.page.inner_text("#wide") == f"Only {HOSTILE[3]} ✕"
    shown = watched.page.inner_text("main")
    assert all(name in shown for name in HOSTILE)
    for tag in ("img", "b:not(.counts b)", "svg[onload]", "main script"):
        assert watched.page.locator(tag).count() == 0
    watched.picture(screenshots / "hostile.png", full_page=True)


# Large


def large_cloud(hosts: int) -> dict[str, Any]:
    """Hosts in two hundred racks, some of them full, some out of service."""
    names = [f"node-{number:05}" for number in range(hosts)]
    size = {"vcpus": 64, "ram_mb": 262144, "disk_gb": 4000}
    used = [(index * 7919) % 250_000 for index in range(len(names))]
    return {
        "hosts": {
            name: {
                **size,
                "used": {"ram_mb": taken, "vcpus": taken // 2000},
                **({"out_of_service": "disabled"} if index % 97 == 0 else {}),
            }
            for index, (name, taken) in enumerate(zip(names, used, strict=True))
        },
        "aggregates": {
            f"rack-{rack:03}": {
                "hosts": names[rack::200],
                "metadata": {
                    "ssd": "nvme" if rack % 3 else "sata",
                    "rack": f"r{rack:03}",
                    "room": f"room-{rack % 5}",
                },
            }
            for rack in range(200)
        },
        "flavors": {
            "fast": {"vcpus": 4, "ram_mb": 32768, "disk_gb": 40, "extra_specs": {"ssd": "nvme"}}
        },
    }


@pytest.fixture(scope="session")
def large(pages: Callable[..., str], tmp_path_factory: pytest.TempPathFactory) -> str:
    file = tmp_path_factory.mktemp("large") / "cloud.json"
    file.write_text(json.dumps(large_cloud(10_000)))
    return pages("--cloud", str(file), "--flavor", "fast")


@pytest.fixture
def thousand(pages: Callable[..., str], tmp_path: pathlib.Path) -> str:
    file = tmp_path / "cloud.json"
    file.write_text(json.dumps(large_cloud(1000)))
    return pages("--cloud", str(file), "--flavor", "fast")


def test_ten_thousand_hosts(opened: Open, large: str, screenshots: pathlib.Path) -> None:
    watched = opened(large, viewport=WIDE)
    assert count(watched) == "10,000 hosts"
    assert len(hosts(watched)) == 200
    size = pathlib.Path(large.removeprefix("file://")).stat().st_size
    assert size < 8_000_000
    watched.picture(screenshots / "large.png")
    watched.page.locator("#search").press_sequentially("node-0042")
    assert sorted(hosts(watched)) == [f"node-0042{number}" for number in range(10)]
    assert count(watched) == "10 of 10,000 hosts"
    watched.page.fill("#search", "rack-100")
    assert count(watched) == "50 of 10,000 hosts"
    watched.page.fill("#search", "")
    watched.page.locator("[data-narrow] button", has_text="rack-017").click()
    assert count(watched) == "50 of 10,000 hosts"
    watched.page.locator("#wide").click()
    watched.page.locator("#matrix thead button").first.click()
    assert hosts(watched)[:2] == ["node-00000", "node-00001"]
    assert watched.page.inner_text(".more span") == "The first 200 of 10,000 hosts are shown."
    watched.page.locator(".more button").click()
    assert len(hosts(watched)) == 800
    assert watched.violations() == []


def test_more_hosts_are_shown_from_where_the_focus_is(opened: Open, large: str) -> None:
    watched = opened(large)
    for shown in (800, 3200, 10_000):
        before = len(hosts(watched))
        watched.page.focus(".more button")
        press(watched, "Enter")
        assert (now := hosts(watched))[before] == watched.focused
        assert len(now) == shown
    assert not watched.page.locator(".more").is_visible()


def test_a_thousand_hosts_on_paper(opened: Open, thousand: str) -> None:
    watched = opened(thousand)
    paper = watched.page.pdf(prefer_css_page_size=True)
    # No sheet has room for more than sixty.
    assert paper.count(b"/Type /Page\n") > 1000 / 60
    assert len(hosts(watched)) == 200
    watched.page.click(".more button")
    watched.page.pdf()
    assert len(hosts(watched)) == 800
