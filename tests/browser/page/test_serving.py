"""The live page in Chromium, served by the command."""

import pathlib
import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from playwright.sync_api import expect

from support.cli.served_command import Served, serving
from support.page.chromium import Watched
from support.page.shown_decisions import press
from support.repository import EXAMPLES

Open = Callable[..., Watched]
WIDE = {"width": 1440, "height": 900}
OPTIONS = str(EXAMPLES / "decision.conf")


@pytest.fixture
def cloud(tmp_path: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(shutil.copy(EXAMPLES / "decision.yaml", tmp_path / "cloud.yaml"))


@pytest.fixture(scope="module")
def served(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Served]:
    """Yield the command while it serves a cloud that no test changes."""
    directory = tmp_path_factory.mktemp("served")
    shutil.copy(EXAMPLES / "decision.yaml", directory / "cloud.yaml")
    with serving("--config-file", OPTIONS, "serve", cwd=directory) as served:
        yield served


@pytest.fixture
def own_served(cloud: pathlib.Path) -> Iterator[Served]:
    """Yield the command while it serves a cloud that the test may change."""
    with serving("--config-file", OPTIONS, "serve", cwd=cloud.parent) as served:
        yield served


def choose(watched: Watched, field: str, name: str) -> None:
    """Fill a field of the form with a name and leave the field."""
    watched.page.fill(f"#ask-{field}", name)
    watched.page.locator(f"#ask-{field}").blur()


def heading(watched: Watched) -> Any:
    return expect(watched.page.locator("h1"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_live_page_has_no_accessibility_violations(
    opened: Open, served: Served, screenshots: pathlib.Path, scheme: str
) -> None:
    watched = opened(served.url, viewport=WIDE, color_scheme=scheme)
    rules = ["color-contrast"] if scheme == "dark" else []
    assert watched.violations(*rules) == []
    choose(watched, "flavor", "huge")
    heading(watched).to_have_text("No host fits huge")
    assert watched.violations(*rules) == []
    watched.page.goto(f"{served.url}?flavor=none")
    heading(watched).to_have_text("Not found in this cloud")
    assert watched.violations(*rules) == []
    watched.picture(screenshots / f"problem-{scheme}.png")
    # The browser logs the status 404.
    assert [text.partition(" (")[0] for text in watched.complaints] == [
        "Failed to load resource: the server responded with a status of 404"
    ]
    watched.complaints.clear()


def test_selection_loads_new_decision(opened: Open, served: Served) -> None:
    watched = opened(served.url, viewport=WIDE)
    heading(watched).to_have_text("web.large goes to a1")
    page = watched.page
    expect(page.get_by_role("button", name="Ask")).to_be_hidden()
    field = page.get_by_role("combobox", name="Flavor")
    press(watched, *["Tab"] * 5, "ArrowDown")
    assert watched.focused == "ask-flavor"
    options = page.get_by_role("option")
    assert options.all_inner_texts() == ["web.large", "gpu.large", "huge fits no host"]
    expect(field).to_have_attribute("aria-expanded", "true")
    assert watched.violations() == []
    press(watched, "ArrowDown")
    active = page.locator(f"#{field.get_attribute('aria-activedescendant')}")
    expect(active).to_have_text("gpu.large")
    press(watched, "Enter")
    heading(watched).to_have_text("gpu.large goes to d1")
    expect(options).to_have_count(0)
    # The focus stays in the form.
    assert watched.focused == "ask-flavor"
    assert page.title() == "gpu.large goes to d1 · steelyard"
    assert page.url == f"{served.url}?flavor=gpu.large&group="
    expect(page.locator("#announcement")).to_have_text(
        "gpu.large goes to d1. It weighs 3, and no other host fits."
    )
    # Type a part of the name.
    field.press_sequentially("WEB")
    assert options.all_inner_texts() == ["web.large"]
    press(watched, "Enter", "Tab")
    heading(watched).to_have_text("web.large goes to a1")
    assert watched.focused == "ask-group"
    page.keyboard.type("sh")
    page.get_by_role("option", name="shop").click()
    heading(watched).to_have_text("web.large goes to b1")
    assert page.url == f"{served.url}?flavor=web.large&group=shop"
    # The new content is interactive.
    page.fill("#search", "rack-c")
    assert page.inner_text("#count") == "3 of 12 hosts"
    page.locator("button.host").first.click()
    expect(page.locator("tr.detail")).to_have_count(1)
    page.locator(".map .cell").first.click()
    expect(page.locator(".details h3")).to_have_count(1)


def test_field_without_choice_keeps_the_selection(opened: Open, served: Served) -> None:
    watched = opened(served.url, viewport=WIDE)
    asked = list(watched.requests)
    field = watched.page.locator("#ask-flavor")
    field.fill("zzz")
    expect(watched.page.locator(".popup:visible")).to_have_text("no such name")
    press(watched, "Escape")
    expect(field).to_have_value("web.large")
    expect(watched.page.locator(".popup:visible")).to_have_count(0)
    choose(watched, "flavor", "zzz")
    expect(field).to_have_value("web.large")
    assert watched.requests == asked


def test_long_list_of_names_is_cut(opened: Open, cloud: pathlib.Path) -> None:
    sizes = "".join(f"  f{number}: {{vcpus: 1, ram_mb: 1, disk_gb: 1}}\n" for number in range(40))
    cloud.write_text(cloud.read_text().replace("flavors:\n", f"flavors:\n{sizes}"))
    with serving("--config-file", OPTIONS, "serve", cwd=cloud.parent) as served:
        watched = opened(served.url, viewport={"width": 320, "height": 800})
        watched.page.click("#ask-flavor")
        expect(watched.page.get_by_role("option")).to_have_count(12)
        expect(watched.page.locator(".remark:visible")).to_have_text("31 more: type to find one")
        assert watched.page.evaluate("document.documentElement.scrollWidth") <= 320
        assert watched.violations() == []
        press(watched, "ArrowUp")
        expect(watched.page.locator("[role=option].active")).to_have_text("f11")


def test_skip_link_sends_no_request(opened: Open, served: Served) -> None:
    watched = opened(served.url, viewport=WIDE)
    asked = list(watched.requests)
    watched.page.keyboard.press("Tab")
    assert watched.focused == "Skip to the hosts"
    watched.page.keyboard.press("Enter")
    watched.page.wait_for_url("**#hosts")
    watched.page.wait_for_timeout(500)  # long enough for a response
    watched.page.keyboard.press("Tab")
    assert watched.focused == "search"
    assert watched.requests == asked


def test_quick_selection_loads_only_last_flavor(opened: Open, served: Served) -> None:
    watched = opened(served.url)
    asked = len(watched.requests)
    before = watched.page.evaluate("history.length")
    watched.page.evaluate(
        """for (const name of ["gpu.large", "web.large", "huge"]) {
          const field = document.querySelector("#ask-flavor");
          field.focus();
          field.value = name;
          field.blur();
        }"""
    )
    heading(watched).to_have_text("No host fits huge")
    assert watched.requests[asked:] == [f"{served.url}?flavor=huge&group="]
    assert watched.page.evaluate("history.length") == before + 1
    # Going back before the response cancels the request.
    watched.page.evaluate(
        """const field = document.querySelector("#ask-flavor");
        field.focus();
        field.value = "gpu.large";
        field.blur();
        history.back();"""
    )
    expect(watched.page.locator("#ask-flavor")).to_have_value("huge")
    watched.page.wait_for_timeout(300)
    heading(watched).to_have_text("No host fits huge")


def test_back_button_restores_previous_decision(opened: Open, served: Served) -> None:
    watched = opened(served.url)
    choose(watched, "flavor", "gpu.large")
    heading(watched).to_have_text("gpu.large goes to d1")
    choose(watched, "flavor", "huge")
    heading(watched).to_have_text("No host fits huge")
    watched.page.go_back()
    heading(watched).to_have_text("gpu.large goes to d1")
    expect(watched.page.locator("#ask-flavor")).to_have_value("gpu.large")
    watched.page.go_back()
    expect(watched.page.locator("#ask-flavor")).to_have_value("web.large")
    watched.page.reload()
    heading(watched).to_have_text(re.compile("^web.large goes to"))


def test_search_survives_new_decision(opened: Open, served: Served) -> None:
    watched = opened(served.url)
    watched.page.fill("#search", "rack-c")
    choose(watched, "flavor", "huge")
    heading(watched).to_have_text("No host fits huge")
    assert watched.page.input_value("#search") == "rack-c"
    assert watched.page.inner_text("#count") == "3 of 12 hosts"


def test_sorting_and_group_survive_new_decision(opened: Open, served: Served) -> None:
    watched = opened(served.url, viewport=WIDE)
    page = watched.page
    pressed = page.locator("[aria-pressed=true]")
    names = page.locator("#matrix tbody th")
    page.locator("[data-narrow] button", has_text="rack: c").click()
    for _ in range(2):
        page.locator("#matrix thead button", has_text="Host").click()
    choose(watched, "flavor", "huge")
    heading(watched).to_have_text("No host fits huge")
    expect(names).to_have_text(["c3", "c2", "c1"])
    expect(pressed).to_have_text("rack: c")
    assert page.inner_text("#wide") == "Only rack: c ✕"
    head = page.locator("#matrix thead th").first
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").click()
    expect(names).to_have_text(["c1", "c2", "c3"])
    # Without the selected cause in the new decision, all hosts are shown.
    page.locator("#wide").click()
    page.locator("[data-narrow] button", has_text="flavor wants 512").click()
    choose(watched, "flavor", "gpu.large")
    heading(watched).to_have_text("gpu.large goes to d1")
    expect(pressed).to_have_count(0)
    assert page.inner_text("#count") == "12 hosts"
    assert names.all_inner_texts()[:2] == ["a1", "a2"]


def test_missing_flavor_can_be_replaced_by_selection(opened: Open, served: Served) -> None:
    watched = opened(f"{served.url}?flavor=gone&group=shop", viewport=WIDE)
    flavors = watched.page.locator("#ask-flavor")
    button = watched.page.get_by_role("button", name="Ask")
    heading(watched).to_have_text("Not found in this cloud")
    expect(flavors).to_have_value("gone")
    assert button.is_visible()
    watched.page.keyboard.press("Tab")
    assert watched.focused == "Skip to the message"
    watched.page.keyboard.press("Enter")
    assert watched.focused.startswith("no flavor 'gone'")
    choose(watched, "flavor", "web.large")
    heading(watched).to_have_text("web.large goes to b1")
    expect(button).to_be_hidden()
    expect(watched.page.locator(".skip")).to_have_text("Skip to the hosts")
    watched.page.go_back()
    expect(flavors).to_have_value("gone")
    with watched.page.expect_response("**"):
        button.click()
    heading(watched).to_have_text("Not found in this cloud")
    assert {text.partition(" (")[0] for text in watched.complaints} == {
        "Failed to load resource: the server responded with a status of 404"
    }
    watched.complaints.clear()


def test_page_follows_changed_file(opened: Open, own_served: Served, cloud: pathlib.Path) -> None:
    watched = opened(own_served.url)
    good = cloud.read_text()
    cloud.write_text(
        good.replace("\n  huge:", "\n  tiny: {vcpus: 1, ram_mb: 1, disk_gb: 1}\n  huge:")
    )
    choose(watched, "group", "shop")
    heading(watched).to_have_text("web.large goes to b1")
    choose(watched, "flavor", "tiny")
    heading(watched).to_have_text(re.compile("^tiny goes to"))
    cloud.write_text(good.replace("hosts:", "hosts: [", 1))
    choose(watched, "group", "")
    heading(watched).to_have_text("Cannot read the cloud")
    expect(watched.page.locator(".problem")).to_contain_text("cloud.yaml:")
    assert [text.partition(" (")[0] for text in watched.complaints] == [
        "Failed to load resource: the server responded with a status of 503"
    ]
    watched.complaints.clear()
    cloud.write_text(good)
    choose(watched, "flavor", "huge")
    heading(watched).to_have_text("No host fits huge")


def test_unreachable_server_is_announced(
    opened: Open, own_served: Served, screenshots: pathlib.Path
) -> None:
    watched = opened(own_served.url, viewport=WIDE)
    own_served.process.terminate()
    own_served.process.wait(20)
    choose(watched, "flavor", "huge")
    message = watched.page.locator("#announcement")
    expect(message).to_contain_text("is steelyard serve still running?")
    assert message.is_visible()
    assert watched.page.get_attribute("main", "aria-busy") is None
    heading(watched).to_have_text("web.large goes to a1")
    assert watched.violations() == []
    watched.picture(screenshots / "gone.png")
    assert [text.rpartition(" ")[2] for text in watched.complaints] == [
        "net::ERR_CONNECTION_REFUSED"
    ]
    watched.complaints.clear()


def test_form_without_scripts_has_button(opened: Open, served: Served) -> None:
    watched = opened(served.url, java_script_enabled=False)
    watched.page.fill("#ask-flavor", "gpu.large")
    watched.page.click("text=Ask")
    heading(watched).to_have_text("gpu.large goes to d1")
    assert watched.page.url == f"{served.url}?flavor=gpu.large&group="


@pytest.mark.parametrize("width", [320, 1280])
def test_capacity_page_shows_flavors_in_turns(
    opened: Open, cloud: pathlib.Path, screenshots: pathlib.Path, width: int
) -> None:
    sizes = "".join(f"  f{number}: {{vcpus: 1, ram_mb: 1, disk_gb: 1}}\n" for number in range(40))
    cloud.write_text(cloud.read_text().replace("flavors:\n", f"flavors:\n{sizes}"))
    with serving("--config-file", OPTIONS, "serve", cwd=cloud.parent) as served:
        watched = opened(served.url, viewport={"width": width, "height": 800})
        page = watched.page
        page.get_by_role("link", name="Capacity").click()
        heads = page.locator("#room thead th")
        expect(heads.nth(1)).to_have_text("f0")
        assert watched.violations() == []
        assert page.evaluate("document.documentElement.scrollWidth") <= width
        across = heads.count() - 1
        assert across == {320: 1, 1280: 10}[width]
        page.get_by_role("button", name="Next flavors").click()
        expect(heads.nth(1)).to_have_text(f"f{across}")
        page.fill("#find-flavor", "large")
        expect(page.locator(".turn")).to_be_visible(visible=width == 320)
        expect(heads.nth(1)).to_have_text("web.large")
        page.fill("#find-row", "rack-")
        rows = page.locator("#room tbody th")
        assert [each.split()[0] for each in rows.all_inner_texts()] == [
            *("all", "rack-a", "rack-b", "rack-c", "rack-d")
        ]
        expect(page.locator("#count")).to_have_text("4 of 8 rows, 2 of 43 flavors")
        assert watched.violations() == []
        watched.picture(screenshots / f"capacity-{width}.png", full_page=True)


def test_capacity_page_leads_to_decision_of_flavor(opened: Open, served: Served) -> None:
    watched = opened(f"{served.url}capacity?by=rack", viewport=WIDE)
    page = watched.page
    cells = page.locator("#room tbody tr", has_text="(missing)")
    assert cells.count() == 0
    assert page.locator("#room tbody th").nth(1).inner_text().split() == ["a", "4", "hosts"]
    expect(page.locator("#room thead th", has_text="huge")).to_contain_text("fits no host")
    page.fill("#find-flavor", "fits no host")
    assert page.locator("#room thead a").all_inner_texts() == ["huge"]
    expect(page.locator("#count")).to_have_text(
        "4 of 4 rows, 1 of 3 flavors, 1 of them fits no host"
    )
    page.select_option("#by", "room")
    page.get_by_role("button", name="Show").click()
    expect(page.locator("#room thead th").first).to_have_text("room")
    page.get_by_role("link", name="gpu.large").click()
    heading(watched).to_have_text("gpu.large goes to d1")
    assert page.url == f"{served.url}?flavor=gpu.large"


def test_capacity_page_without_scripts_lists_totals(opened: Open, served: Served) -> None:
    watched = opened(f"{served.url}capacity", java_script_enabled=False)
    names = watched.page.locator("#plain tbody th").all_inner_texts()
    assert names == ["web.large", "gpu.large", "huge"]
    assert not watched.page.locator("#room").is_visible()
