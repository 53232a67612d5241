"""The live page for changes over HTTP."""

import dataclasses
import pathlib
from typing import Any

import falcon.testing
import pytest

from steelyard.cloud import Cloud, Flavor, Host, Server
from steelyard.filters.capacity import CapacityFilter
from steelyard.groups import Policy, ServerGroup
from steelyard.page.reloading import WatchedCloud
from steelyard.page.served_cloud import ServedCloud
from steelyard.page.serving import AllowedHosts, make_application
from steelyard.scheduler import FilterScheduler
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
    chosen = [
        each.attributes["value"] for each in page.all("option") if "selected" in each.attributes
    ]
    assert (chosen, page.by_id("try-value").attributes["value"]) == (["--force"], "")
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
        ("--out", "", "missing value of --out: expected host:NAME, aggregate:NAME or KEY=VALUE"),
        ("--set", "flavor:fast:a=\0", "=\\x00': a command line cannot contain null characters"),
    ],
)
def test_mistake_leaves_the_result_of_the_earlier_changes(
    client: Any, option: str, value: str, said: str
) -> None:
    page = get_page(client, "--out host:h2", status=400, option=option, value=value)
    assert said in page.by_id("mistake").text
    field = page.by_id("try-value").attributes
    assert field["value"] == value.replace("\0", "\\x00")
    assert field["aria-invalid"] == "true"
    assert values(page)[0] == "--out host:h2"
    assert page.by_id("command").text.endswith(" --out host:h2")
    assert page.by_id("answer").text == get_page(client, "--out host:h2").by_id("answer").text


def test_white_space_around_the_value_is_ignored(client: Any) -> None:
    page = get_page(client, option="--out", value="\t host:h2 ")
    assert values(page)[0] == "--out host:h2"


def test_very_long_value_is_cut_in_the_message(client: Any) -> None:
    page = get_page(client, status=400, option="--set", value="x" * 5000)
    said = page.by_id("mistake").text
    assert said.startswith("invalid value 'xxx")
    assert said.endswith(": expected flavor:NAME:KEY=VALUE or aggregate:NAME:KEY=VALUE")
    assert len(said) < 600


def test_page_tries_at_most_50_changes(client: Any) -> None:
    wanted = [f"--set flavor:fast:key={number}" for number in range(50)]
    assert len(values(get_page(client, *wanted))) == 51
    page = get_page(client, *wanted, status=400, option="--out", value="host:h2")
    assert page.one("h1").text == "Too many changes"
    assert "run 'steelyard whatif --changes FILE'" in page.one("p", "problem").text


def test_head_has_the_status_without_the_consequences(client: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(CapacityFilter, "passing", lambda *_: 1 / 0)
    for change, status in (("--out host:h2", 200), ("--out host:h9", 400)):
        answer = client.simulate_head("/whatif", params={"change": change})
        assert (answer.status_code, answer.content) == (status, b"")
        assert answer.headers["content-type"] == "text/html; charset=utf-8"
        assert "content-length" not in answer.headers


def test_unsupported_policy_is_a_result(configured: Any) -> None:
    host = Host("h1", 4, 4096, 100)
    flavor = Flavor("small", 1, 1024, 10)
    cloud = Cloud(
        {"h1": host, "h2": dataclasses.replace(host, name="h2")},
        {},
        {"small": flavor},
        {"near": ServerGroup("near", Policy.SOFT_AFFINITY)},
    ).with_servers([Server("u", "one", flavor, "h1", "near")])
    served = ServedCloud(FilterScheduler(cloud, configured("soft_affinity_weight_multiplier = 0")))
    application = make_application(lambda: served, AllowedHosts("127.0.0.1"))
    client = falcon.testing.TestClient(application, headers={"Host": "127.0.0.1"})
    page = get_page(client, "--out host:h1")
    assert page.by_id("problem").text.startswith("policy 'soft-affinity' of server group 'near' ")
    assert "aria-invalid" not in page.by_id("try-value").attributes


def test_mistake_in_an_earlier_change_is_reported(client: Any) -> None:
    page = get_page(client, "--out host:h9", status=400)
    assert "aria-invalid" not in page.by_id("try-value").attributes
    assert "no host 'h9'" in page.by_id("problem").text


def test_failing_filter_is_reported(client: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(CapacityFilter, "passing", lambda *_: 1 / 0)
    page = get_page(client, "--out host:h2", status=500)
    assert "CapacityFilter" in page.one("p", "problem").text
