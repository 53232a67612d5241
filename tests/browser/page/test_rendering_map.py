"""The map of the page in Chromium, with the keyboard and for screen readers."""

import json
import pathlib
from collections.abc import Callable

import pytest

from support.page.chromium import Watched
from support.page.shown_decisions import WIDE, Open, press, tab_to


def label(watched: Watched) -> str:
    """Return the label of the focused cell."""
    return str(watched.page.evaluate("document.activeElement.getAttribute('aria-label')"))


def go_to_map(watched: Watched) -> None:
    watched.page.focus("#find-group")
    press(watched, "Shift+Tab")


def test_each_host_has_a_labelled_cell_in_its_domain(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    assert watched.page.get_by_role("group", name="Map of the hosts").count() == 1
    groups = watched.page.locator(".tile").all()
    assert [each.get_attribute("aria-label") for each in groups] == [
        "rack: a, room: north: 4 hosts, 2 fit, 1 full, 1 out of service",
        "rack: b, room: north: 3 hosts, 1 chosen, 2 fit",
        "rack: c, room: south: 3 hosts, 3 rejected",
        "rack: d, room: south: 2 hosts, 2 rejected",
    ]
    cells = groups[0].get_by_role("button").all()
    assert [each.get_attribute("aria-label") for each in cells] == [
        "a1: fits",
        "a2: fits",
        "a3: full",
        "a4: out of service",
    ]
    legend = watched.page.get_by_role("list", name="Colours and marks of the map")
    assert [each.strip() for each in legend.locator("li").all_inner_texts()] == [
        "1 chosen",
        "4 fit",
        "1 full",
        "5 rejected",
        "1 out of service",
    ]


def test_arrow_keys_move_between_cells_of_one_tab_stop(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    go_to_map(watched)
    assert label(watched) == "a1: fits"
    for key, there in (
        ("ArrowRight", "a2: fits"),
        ("End", "a4: out of service"),
        ("PageDown", "b1: chosen"),
        ("ArrowLeft", "a4: out of service"),
        ("Home", "a1: fits"),
        ("ArrowUp", "a1: fits"),
        ("Control+End", "d2: rejected"),
        ("ArrowRight", "d2: rejected"),
        ("PageUp", "c1: rejected"),
        ("Control+Home", "a1: fits"),
    ):
        press(watched, key)
        assert label(watched) == there, key
    assert watched.page.locator(".cell[tabindex='0']").count() == 1
    press(watched, "ArrowRight", "Tab")
    assert watched.focused == "find-group"
    press(watched, "Shift+Tab")
    assert label(watched) == "a2: fits"


def test_arrow_keys_move_up_and_down_by_rows(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    names = [
        each.split(":")[0]
        for each in watched.page.locator(".cell[role=button]").evaluate_all(
            "cells => cells.map((each) => each.getAttribute('aria-label'))"
        )
    ]
    rows = watched.page.evaluate(
        """Object.values(Object.groupBy(
          [...document.querySelectorAll(".tile .cell")].map((each, index) => [index, each]),
          ([, each]) => [...document.querySelectorAll(".tile")].indexOf(each.closest(".tile")) * 1e6
            + each.offsetTop,
        )).map((row) => row.map(([index]) => index))"""
    )
    firsts = [names[row[0]] for row in rows]
    go_to_map(watched)
    visited = [label(watched).split(":")[0]]
    for _ in firsts[1:]:
        press(watched, "ArrowDown")
        visited.append(label(watched).split(":")[0])
    assert visited == firsts
    for name in reversed(firsts[:-1]):
        press(watched, "ArrowUp")
        assert label(watched).split(":")[0] == name


@pytest.mark.parametrize("key", ["Enter", "Space"])
def test_key_opens_details_and_escape_returns(opened: Open, decision: str, key: str) -> None:
    watched = opened(decision, viewport=WIDE)
    go_to_map(watched)
    press(watched, "End", key)
    assert watched.focused == "a4: out of service"
    shown = watched.page.locator(".details dl").inner_text().split("\n")
    assert shown[:2] == [
        "InServiceFilter",
        "the host is out of service: disabled: new power supply",
    ]
    assert watched.page.locator(".cell[aria-expanded=true]").get_attribute("aria-label") == (
        "a4: out of service"
    )
    assert watched.violations() == []
    press(watched, "Escape")
    assert label(watched) == "a4: out of service"
    assert watched.page.locator(".details").count() == 0
    press(watched, key)
    tab_to(watched, "Close", 1)
    press(watched, "Enter")
    assert label(watched) == "a4: out of service"


def test_press_opens_details_of_one_host_and_closes_them(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    for name in ("c3", "b1"):
        watched.page.get_by_role("button", name=f"{name}: ").click()
        heads = watched.page.locator(".details h3").all_inner_texts()
        assert [each.split(":")[0] for each in heads] == [name]
    watched.page.get_by_role("button", name="b1: ").click()
    assert watched.page.locator(".details").count() == 0


def test_pressed_cause_fades_the_other_cells(opened: Open, decision: str) -> None:
    watched = opened(decision, viewport=WIDE)
    bright = watched.page.locator(".map .cell:not(.faded)")
    button = watched.page.locator("[data-narrow] button", has_text="not enough RAM")
    button.click()
    labels = [each.get_attribute("aria-label") for each in bright.all()]
    assert labels == ["a3: full", "c3: rejected"]
    watched.page.locator("[data-narrow] button", has_text="rack-d").click()
    labels = [each.get_attribute("aria-label") for each in bright.all()]
    assert labels == ["d1: rejected", "d2: rejected"]
    watched.page.locator("#wide").click()
    assert bright.count() == 12


@pytest.fixture
def crowded(pages: Callable[..., str], tmp_path: pathlib.Path) -> str:
    """Return the URL of a page with overlapping aggregates, and a host with many servers."""
    cloud = {
        "hosts": {
            name: {
                "vcpus": 64,
                "ram_mb": 65536,
                "disk_gb": 500,
                "resources": {"VGPU": 4},
                "reserved": {"ram_mb": 512},
                "traits": ["HW_CPU_X86_AVX2", "CUSTOM_FAST"],
                "allocation_ratios": {"vcpus": 2.0, "ram_mb": 1.0, "disk_gb": 1.0},
            }
            for name in ("h1", "h2", "h10")
        },
        "aggregates": {
            "everything": {"hosts": ["h1", "h2"], "metadata": {}},
            "fast": {"hosts": ["h2"], "metadata": {"ssd": "nvme"}},
        },
        "flavors": {
            "tiny": {"vcpus": 1, "ram_mb": 100, "disk_gb": 1},
            "gpu": {"vcpus": 1, "ram_mb": 1, "disk_gb": 1, "extra_specs": {"resources:VGPU": "1"}},
        },
        "servers": {
            f"web-{number}": {"flavor": "tiny" if number else "gpu", "host": "h2"}
            for number in range(25)
        },
    }
    file = tmp_path / "crowded.json"
    file.write_text(json.dumps(cloud))
    return pages("--cloud", str(file), "--flavor", "tiny")


def test_details_list_amounts_servers_traits_and_aggregates(opened: Open, crowded: str) -> None:
    watched = opened(crowded, viewport=WIDE)
    watched.page.locator("button.host", has_text="h2").click()
    shown = watched.page.locator("tr.detail")
    shown.locator(".servers li").first.wait_for()
    terms = shown.locator("dt").all_inner_texts()
    assert terms == ["Weight", "Free", "Servers", "Traits", "Groups"]
    text = shown.inner_text().split("\n")
    assert text[text.index("Free") + 1 : text.index("Servers")] == [
        "103 of 128 vCPUs",
        "61.1 of 63.5 GiB of RAM",
        "475 of 500 GiB of disk",
        "3 of 4 VGPU",
    ]
    assert shown.locator(".servers li").count() == 20
    shown.get_by_role("button", name="Show all 25").click()
    servers = shown.locator(".servers li").all_inner_texts()
    assert servers == ["web-0 gpu", *(f"web-{number} tiny" for number in range(1, 25))]
    assert shown.locator("code").all_inner_texts() == ["CUSTOM_FAST", "HW_CPU_X86_AVX2"]
    assert {"everything", "fast: ssd=nvme"} < set(text)
