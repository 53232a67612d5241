"""The live page, as somebody has it before them: the command serves it to a real Chromium."""

import pathlib
import re
import shutil
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from browser.chromium import Watched
from browser.conftest import EXAMPLES
from playwright.sync_api import expect
from served import Served, serving

Open = Callable[..., Watched]
WIDE = {"width": 1440, "height": 900}


@pytest.fixture
def cloud(tmp_path: pathlib.Path) -> pathlib.Path:
    return pathlib.Path(shutil.copy(EXAMPLES / "decision.yaml", tmp_path / "cloud.yaml"))


@pytest.fixture
def served(cloud: pathlib.Path) -> Iterator[Served]:
    options = str(EXAMPLES / "decision.conf")
    with serving("--config-file", options, "serve", cwd=cloud.parent) as served:
        yield served


def heading(watched: Watched) -> Any:
    return expect(watched.page.locator("h1"))


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_an_accessibility_checker_finds_nothing(
    opened: Open, served: Served, screenshots: pathlib.Path, scheme: str
) -> None:
    watched = opened(served.url, viewport=WIDE, color_scheme=scheme)
    assert watched.violations() == []
    watched.page.select_option("#ask-flavor", "huge")
    heading(watched).to_have_text("No host fits huge")
    assert watched.violations() == []
    watched.page.goto(f"{served.url}?flavor=none")
    heading(watched).to_have_text("There is no such thing in this cloud")
    assert watched.violations() == []
    watched.picture(screenshots / f"problem-{scheme}.png")
    # That it is not there is said by the status as well, which the browser writes down.
    assert [text.partition(" (")[0] for text in watched.complaints] == [
        "Failed to load resource: the server responded with a status of 404"
    ]
    watched.complaints.clear()


def test_the_answer_changes_with_the_flavor_and_the_group(opened: Open, served: Served) -> None:
    watched = opened(served.url, viewport=WIDE)
    heading(watched).to_have_text("web.large goes to a1")
    page = watched.page
    expect(page.get_by_role("button", name="Ask")).to_be_hidden()
    page.keyboard.press("Tab")
    page.keyboard.press("Tab")
    assert watched.focused.startswith("web.large")
    page.keyboard.press("ArrowDown")
    heading(watched).to_have_text("gpu.large goes to d1")
    # Whoever goes through the flavors one by one loses neither place nor answer.
    assert page.evaluate("document.activeElement.id") == "ask-flavor"
    assert page.title() == "gpu.large goes to d1 · steelyard"
    assert page.url == f"{served.url}?flavor=gpu.large&group="
    expect(page.locator("#announcement")).to_have_text(
        "gpu.large goes to d1. It weighs 1, and no other host fits."
    )
    page.keyboard.press("ArrowUp")
    page.keyboard.press("Tab")
    page.keyboard.press("ArrowDown")
    heading(watched).to_have_text("web.large goes to b1")
    assert page.evaluate("document.activeElement.id") == "ask-group"
    assert page.url == f"{served.url}?flavor=web.large&group=shop"
    # What is shown is alive.
    page.fill("#search", "rack-c")
    assert page.inner_text("#count") == "3 of 12 hosts"
    page.locator("button.host").first.click()
    expect(page.locator("tr.detail")).to_have_count(1)


def test_past_everything_to_the_hosts(opened: Open, served: Served) -> None:
    watched = opened(served.url, viewport=WIDE)
    asked = list(watched.requests)
    watched.page.keyboard.press("Tab")
    assert watched.focused == "Skip to the hosts"
    watched.page.keyboard.press("Enter")
    watched.page.wait_for_url("**#hosts")
    watched.page.wait_for_timeout(500)  # in which an answer would have come
    watched.page.keyboard.press("Tab")
    assert watched.focused == "search"
    assert watched.requests == asked


def test_whoever_passes_flavors_asks_for_the_one_they_stop_at(opened: Open, served: Served) -> None:
    watched = opened(served.url)
    asked = len(watched.requests)
    before = watched.page.evaluate("history.length")
    watched.page.evaluate(
        """for (const name of ["gpu.large", "web.large", "huge"]) {
          const select = document.querySelector("#ask-flavor");
          select.value = name;
          select.dispatchEvent(new Event("change", {bubbles: true}));
        }"""
    )
    heading(watched).to_have_text("No host fits huge")
    assert watched.requests[asked:] == [f"{served.url}?flavor=huge&group="]
    assert watched.page.evaluate("history.length") == before + 1
    # Whoever goes back before there is an answer is back.
    watched.page.evaluate(
        """const select = document.querySelector("#ask-flavor");
        select.value = "gpu.large";
        select.dispatchEvent(new Event("change", {bubbles: true}));
        history.back();"""
    )
    expect(watched.page.locator("#ask-flavor")).to_have_value("huge")
    watched.page.wait_for_timeout(300)
    heading(watched).to_have_text("No host fits huge")


def test_the_way_back(opened: Open, served: Served) -> None:
    watched = opened(served.url)
    watched.page.select_option("#ask-flavor", "gpu.large")
    heading(watched).to_have_text("gpu.large goes to d1")
    watched.page.select_option("#ask-flavor", "huge")
    heading(watched).to_have_text("No host fits huge")
    watched.page.go_back()
    heading(watched).to_have_text("gpu.large goes to d1")
    expect(watched.page.locator("#ask-flavor")).to_have_value("gpu.large")
    watched.page.go_back()
    expect(watched.page.locator("#ask-flavor")).to_have_value("web.large")
    watched.page.reload()
    heading(watched).to_have_text(re.compile("^web.large goes to"))


def test_what_was_searched_for_stays(opened: Open, served: Served) -> None:
    watched = opened(served.url)
    watched.page.fill("#search", "rack-c")
    watched.page.select_option("#ask-flavor", "huge")
    heading(watched).to_have_text("No host fits huge")
    assert watched.page.input_value("#search") == "rack-c"
    assert watched.page.inner_text("#count") == "3 of 12 hosts"


def test_what_is_shown_stays_sorted_and_narrowed(opened: Open, served: Served) -> None:
    watched = opened(served.url, viewport=WIDE)
    page = watched.page
    pressed = page.locator("[aria-pressed=true]")
    names = page.locator("#matrix tbody th")
    page.locator("[data-narrow] button", has_text="rack: c").click()
    for _ in range(2):
        page.locator("#matrix thead button", has_text="Host").click()
    page.select_option("#ask-flavor", "huge")
    heading(watched).to_have_text("No host fits huge")
    expect(names).to_have_text(["c3", "c2", "c1"])
    expect(pressed).to_have_text("rack: c")
    assert page.inner_text("#wide") == "Only rack: c ✕"
    head = page.locator("#matrix thead th").first
    assert head.get_attribute("aria-sort") == "descending"
    head.locator("button").click()
    expect(names).to_have_text(["c1", "c2", "c3"])
    # A cause that turns nobody away any more leaves all hosts.
    page.locator("#wide").click()
    page.locator("[data-narrow] button", has_text="flavor wants 512").click()
    page.select_option("#ask-flavor", "gpu.large")
    heading(watched).to_have_text("gpu.large goes to d1")
    expect(pressed).to_have_count(0)
    assert page.inner_text("#count") == "12 hosts"
    assert names.all_inner_texts()[:2] == ["a1", "a2"]


def test_from_what_is_not_there_a_choice_leads_on(opened: Open, served: Served) -> None:
    watched = opened(f"{served.url}?flavor=gone&group=shop", viewport=WIDE)
    flavors = watched.page.locator("#ask-flavor")
    again = watched.page.get_by_role("button", name="Ask")
    heading(watched).to_have_text("There is no such thing in this cloud")
    expect(flavors.locator("option:checked")).to_have_text("gone (not there)")
    assert again.is_visible()
    watched.page.keyboard.press("Tab")
    assert watched.focused == "Skip to what is wrong"
    watched.page.keyboard.press("Enter")
    assert watched.focused.startswith("there is no flavor 'gone'")
    flavors.select_option("web.large")
    heading(watched).to_have_text("web.large goes to b1")
    expect(again).to_be_hidden()
    expect(flavors.locator("option", has_text="gone")).to_have_count(0)
    expect(watched.page.locator(".skip")).to_have_text("Skip to the hosts")
    watched.page.go_back()
    expect(flavors.locator("option:checked")).to_have_text("gone (not there)")
    again.click()
    heading(watched).to_have_text("web.large goes to b1")
    assert {text.partition(" (")[0] for text in watched.complaints} == {
        "Failed to load resource: the server responded with a status of 404"
    }
    watched.complaints.clear()


def test_the_file_changes(opened: Open, served: Served, cloud: pathlib.Path) -> None:
    watched = opened(served.url)
    good = cloud.read_text()
    cloud.write_text(
        good.replace("\n  huge:", "\n  tiny: {vcpus: 1, ram_mb: 1, disk_gb: 1}\n  huge:")
    )
    watched.page.select_option("#ask-group", "shop")
    heading(watched).to_have_text("web.large goes to b1")
    watched.page.select_option("#ask-flavor", "tiny")
    heading(watched).to_have_text(re.compile("^tiny goes to"))
    cloud.write_text(good.replace("hosts:", "hosts: [", 1))
    watched.page.select_option("#ask-group", "")
    heading(watched).to_have_text("The cloud cannot be read")
    expect(watched.page.locator(".problem")).to_contain_text("cloud.yaml:")
    assert [text.partition(" (")[0] for text in watched.complaints] == [
        "Failed to load resource: the server responded with a status of 503"
    ]
    watched.complaints.clear()
    cloud.write_text(good)
    watched.page.select_option("#ask-flavor", "huge")
    heading(watched).to_have_text("No host fits huge")


def test_the_server_is_gone(opened: Open, served: Served, screenshots: pathlib.Path) -> None:
    watched = opened(served.url, viewport=WIDE)
    served.process.terminate()
    served.process.wait(20)
    watched.page.select_option("#ask-flavor", "huge")
    message = watched.page.locator("#announcement")
    expect(message).to_contain_text("Does steelyard serve still run?")
    assert message.is_visible()
    assert watched.page.get_attribute("main", "aria-busy") is None
    heading(watched).to_have_text("web.large goes to a1")
    assert watched.violations() == []
    watched.picture(screenshots / "gone.png")
    assert [text.rpartition(" ")[2] for text in watched.complaints] == [
        "net::ERR_CONNECTION_REFUSED"
    ]
    watched.complaints.clear()


def test_without_a_script_there_is_a_button(opened: Open, served: Served) -> None:
    watched = opened(served.url, java_script_enabled=False)
    watched.page.select_option("#ask-flavor", "gpu.large")
    watched.page.click("text=Ask")
    heading(watched).to_have_text("gpu.large goes to d1")
    assert watched.page.url == f"{served.url}?flavor=gpu.large&group="
