"""The page in Chromium, with many hosts."""

import json
import pathlib
from collections.abc import Callable
from typing import Any

import pytest

from support.page.shown_decisions import WIDE, Open, count, hosts, press

# Whether any of what has the focus is.
IN_SIGHT = """(() => {
  const box = document.activeElement.getBoundingClientRect();
  const shares = [0.1, 0.5, 0.9];
  return shares.some((x) => shares.some((y) => document.activeElement.contains(
    document.elementFromPoint(box.x + x * box.width, box.y + y * box.height))));
})()"""


def large_cloud(hosts: int) -> dict[str, Any]:
    """Return a cloud of two hundred racks, with some hosts full and some out of service."""
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
def of_many(
    pages: Callable[..., str], tmp_path_factory: pytest.TempPathFactory
) -> Callable[[int], str]:
    """Return a function that returns the URL of a page with this number of hosts."""
    directory = tmp_path_factory.mktemp("large")

    def write(hosts: int) -> str:
        file = directory / f"{hosts}.json"
        if not file.exists():
            file.write_text(json.dumps(large_cloud(hosts)))
        return pages("--cloud", str(file), "--flavor", "fast")

    return write


def test_page_of_ten_thousand_hosts_stays_usable(
    opened: Open, of_many: Callable[[int], str], screenshots: pathlib.Path
) -> None:
    url = of_many(10_000)
    watched = opened(url, viewport=WIDE)
    assert count(watched) == "10,000 hosts"
    assert len(hosts(watched)) == 50
    assert watched.page.inner_text(".more span") == "The first 50 of 10,000 hosts are shown."
    assert watched.page.locator(".cell[role=button]").count() == 10_000
    assert pathlib.Path(url.removeprefix("file://")).stat().st_size < 4_000_000
    watched.picture(screenshots / "large.png")
    watched.page.fill("#search", "node-0042")
    assert sorted(hosts(watched)) == [f"node-0042{number}" for number in range(10)]
    assert count(watched) == "10 of 10,000 hosts"
    watched.page.fill("#search", "rack-100")
    assert count(watched) == "50 of 10,000 hosts"
    watched.page.fill("#search", "")
    watched.page.fill("#find-group", "rack-017")
    assert watched.page.inner_text("#groups-found") == "1 group"
    watched.page.locator("[data-narrow] button", has_text="rack-017").click()
    assert count(watched) == "50 of 10,000 hosts"
    watched.page.locator("#wide").click()
    watched.page.locator("#matrix thead button").first.click()
    assert hosts(watched)[:2] == ["node-00000", "node-00001"]


@pytest.mark.parametrize("width", [320, 1280])
def test_long_tables_of_groups_are_cut(
    opened: Open, of_many: Callable[[int], str], width: int
) -> None:
    watched = opened(of_many(1000), viewport={"width": width, "height": 800})
    rows = watched.page.locator("table.groups").first.locator("tbody tr:visible")
    assert rows.count() == 15
    watched.page.get_by_role("button", name="Show all 200").click()
    assert rows.count() == 200
    assert watched.focused == "rack-015"


def test_show_more_moves_focus_to_first_new_host(
    opened: Open, of_many: Callable[[int], str]
) -> None:
    watched = opened(of_many(1000))
    assert watched.violations() == []
    for shown, button in ((200, "Show more"), (1000, "Show all 1,000")):
        before = len(hosts(watched))
        watched.page.get_by_role("button", name=button, exact=True).focus()
        press(watched, "Enter")
        assert (now := hosts(watched))[before] == watched.focused
        assert len(now) == shown
    assert not watched.page.locator(".more").is_visible()


def test_printed_page_shows_all_hosts(opened: Open, of_many: Callable[[int], str]) -> None:
    watched = opened(of_many(1000))
    paper = watched.page.pdf(prefer_css_page_size=True)
    # A sheet has room for at most sixty hosts.
    assert paper.count(b"/Type /Page\n") > 1000 / 60
    assert len(hosts(watched)) == 50
    # The browser sends these events before and after it prints.
    watched.page.click(".more button")
    for event, shown in {"beforeprint": 1000, "afterprint": 200}.items():
        watched.page.evaluate("event => dispatchEvent(new Event(event))", event)
        assert len(hosts(watched)) == shown


@pytest.mark.parametrize(("width", "height"), [(1280, 720), (800, 400)])
def test_focused_element_is_not_covered_by_table_head(
    opened: Open, of_many: Callable[[int], str], width: int, height: int
) -> None:
    watched = opened(of_many(1000), viewport={"width": width, "height": height})
    hidden = []
    watched.page.focus("#search")
    # Move down into the hosts and back up to the groups.
    for key in ["Tab"] * 50 + ["Shift+Tab"] * 90:
        press(watched, key)
        if not watched.page.evaluate(IN_SIGHT):
            hidden.append((key, watched.focused))
    assert hidden == []
