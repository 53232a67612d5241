"""The page for changes in Chromium: the maps before and after, and the form of the live page."""

import json
import pathlib
import shutil
from collections.abc import Callable, Iterator

import pytest
from playwright.sync_api import expect

from support.cli.served_command import Served, serving
from support.page.chromium import Watched
from support.page.shown_decisions import press
from support.repository import EXAMPLES

Open = Callable[..., Watched]
SIZES = [320, 768, 1280]


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    directory = tmp_path_factory.mktemp("served")
    shutil.copy(EXAMPLES / "rack-work.yaml", directory / "cloud.yaml")
    with serving("--config-file", str(EXAMPLES / "racks.conf"), "serve", cwd=directory) as served:
        yield served


def address(served: Served, query: str = "change=--force+reserved&change=--out+rack%3Da") -> str:
    return f"{served.url.rstrip('/')}/whatif?{query}"


def tiles(watched: Watched, side: str) -> list[str]:
    """Return the labels of the tiles of a map."""
    return [
        str(each.get_attribute("aria-label"))
        for each in watched.page.locator(f'[data-side="{side}"] .tile').all()
    ]


def test_maps_show_the_hosts_before_and_after(opened: Open, served: Served) -> None:
    watched = opened(address(served), viewport={"width": 1280, "height": 900})
    expect(watched.page.locator('[data-side="After"] .tile')).to_have_count(3)
    assert [each.partition(": ")[2] for each in tiles(watched, "Before")] == [
        "a, room: (missing): 2 hosts, 2 fit",
        "b, room: (missing): 2 hosts, 2 fit",
        "c, room: (missing): 1 host, 1 fit",
    ]
    assert [each.rpartition(": ")[2] for each in tiles(watched, "After")] == [
        "2 hosts, 2 out of service",
        "2 hosts, 1 fit, 1 do not fit",
        "1 host, 1 fit",
    ]
    watched.page.select_option("#map-flavor", "db")
    assert [each.rpartition(": ")[2] for each in tiles(watched, "Before")] == [
        "2 hosts, 2 do not fit",
        "2 hosts, 1 fit, 1 do not fit",
        "1 host, 1 do not fit",
    ]


def test_cell_shows_the_flavors_that_change_on_the_host(opened: Open, served: Served) -> None:
    watched = opened(address(served), viewport={"width": 1280, "height": 900})
    watched.page.locator('[data-side="After"] .cell[aria-label="b2: does not fit"]').click()
    details = watched.page.get_by_role("region", name="Details of a host")
    expect(details.locator("dd").first).to_have_text("web")
    press(watched, "Escape")
    expect(details).to_have_count(0)


def test_form_offers_values_for_the_chosen_change(opened: Open, served: Served) -> None:
    watched = opened(address(served, ""))
    page = watched.page
    assert watched.violations() == []
    page.select_option("#try-option", "--force")
    names = page.locator("#try-value-names option")
    assert names.evaluate_all("found => found.map((each) => each.value)") == [
        "rack-a",
        "rack-b",
        "rack-c",
        "fast",
        "reserved",
    ]
    expect(page.locator("#try-help")).to_contain_text("AGGREGATE: set force_metadata_check")
    page.fill("#try-value", "reserved")
    press(watched, "Enter")
    expect(page.locator("#answer")).to_have_text("Nothing is worse")
    page.get_by_role("link", name="Remove --force reserved").click()
    expect(page.locator("#answer")).to_have_count(0)


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", SIZES)
def test_page_is_accessible_and_as_wide_as_the_window(
    opened: Open, served: Served, screenshots: pathlib.Path, width: int, scheme: str
) -> None:
    viewport = {"width": width, "height": 900}
    watched = opened(address(served), viewport=viewport, color_scheme=scheme)
    expect(watched.page.locator('[data-side="After"] .cell')).to_have_count(5)
    assert watched.violations() == []
    assert watched.page.evaluate("document.documentElement.scrollWidth") == width
    watched.page.screenshot(path=screenshots / f"whatif-{width}-{scheme}.png", full_page=True)


def test_long_list_of_servers_is_cut(opened: Open, tmp_path: pathlib.Path) -> None:
    size = {"vcpus": 64, "ram_mb": 65536, "disk_gb": 500}
    cloud = {
        "hosts": {"a": size, "b": size},
        "flavors": {"tiny": {"vcpus": 1, "ram_mb": 1, "disk_gb": 1}},
        "servers": {f"web-{number}": {"flavor": "tiny", "host": "a"} for number in range(30)},
    }
    (tmp_path / "cloud.json").write_text(json.dumps(cloud))
    with serving("serve", cwd=tmp_path) as served:
        watched = opened(address(served, "change=--out+host%3Aa"))
        items = watched.page.locator("section:has(> #displaced) li:visible")
        expect(items).to_have_count(20)
        watched.page.get_by_role("button", name="Show all 30").click()
        expect(items).to_have_count(30)
