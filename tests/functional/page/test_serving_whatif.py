"""The live page for changes over HTTP."""

import pathlib
from typing import Any

import falcon.testing
import pytest

from steelyard.filters.capacity import CapacityFilter
from steelyard.page.reloading import WatchedCloud
from steelyard.page.serving import AllowedHosts, make_application
from support.page.parsed_pages import Page
from support.page.shown_cloud import CLOUD


@pytest.fixture
def client(tmp_path: pathlib.Path, conf: Any) -> falcon.testing.TestClient:
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD)
    watched = WatchedCloud(str(path), conf)
    application = make_application(watched.current, AllowedHosts("127.0.0.1"), "cloud.yaml")
    return falcon.testing.TestClient(application, headers={"Host": "127.0.0.1:8080"})


def get_page(client: Any, *changes: str, status: int = 200, **params: str) -> Page:
    answer = client.simulate_get(
        "/whatif", params={"change": list(changes), **params}, params_csv=False
    )
    assert answer.status_code == status
    return Page(answer.text)


def values(page: Page) -> list[str]:
    """Return the values of the fields of the form."""
    return [each.attributes["value"] for each in page.all("input") if "value" in each.attributes]


def test_page_without_changes_has_only_the_form(client: Any) -> None:
    page = get_page(client)
    assert page.one("h1").text == "What if"
    assert page.all("h2") == []
    assert page.by_id("try").attributes["action"] == "/whatif"
    suggested = [each.attributes["value"] for each in page.all("option")]
    assert {"<b>slow</b>", "flavor:fast:ssd", "host:h1"} <= set(suggested)


def test_page_shows_consequences_and_their_command(client: Any) -> None:
    page = get_page(client, "--out host:h2", option="--force", value="<b>slow</b>")
    assert page.by_id("command").text == (
        "steelyard whatif --cloud cloud.yaml --out host:h2 --force '<b>slow</b>'"
    )
    assert values(page)[:2] == ["--out host:h2", "--force <b>slow</b>"]
    numbers = [each.text for each in page.all("td", "number")]
    assert numbers == ["2", "1", "12", "4"]
    links = [each.attributes["href"] for each in page.all("a") if each.text == "Remove"]
    assert links == [
        "/whatif?change=--force+%3Cb%3Eslow%3C%2Fb%3E",
        "/whatif?change=--out+host%3Ah2",
    ]


@pytest.mark.parametrize(
    ("option", "value", "said"),
    [
        ("--force", "slow", "--force slow: no aggregate 'slow'"),
        ("--set", "x", "invalid value 'x': expected flavor:NAME:KEY=VALUE or"),
        ("--forse", "x", "unknown change '--forse'; did you mean '--force'"),
        ("--in", "host:h1", "--in host:h1: host 'h1' is already in service"),
    ],
)
def test_mistake_keeps_the_changes_and_the_typed_value(
    client: Any, option: str, value: str, said: str
) -> None:
    page = get_page(client, "--out host:h2", status=400, option=option, value=value)
    assert said in page.by_id("mistake").text
    assert page.by_id("try-value").attributes["value"] == value
    assert values(page)[0] == "--out host:h2"


def test_mistake_in_an_earlier_change_is_reported(client: Any) -> None:
    page = get_page(client, "--out host:h9", status=400)
    assert "no host 'h9'" in page.by_id("mistake").text


def test_failing_filter_is_reported(client: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(CapacityFilter, "passing", lambda *_: 1 / 0)
    page = get_page(client, "--out host:h2", status=500)
    assert "CapacityFilter" in page.one("p", "problem").text
