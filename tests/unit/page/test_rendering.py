"""The page as HTML."""

import base64
import datetime
import hashlib
import json
import re
from typing import Any

import pytest

from steelyard.page.columns import columns
from steelyard.page.rendering import (
    policy,
    printable,
    render,
    render_capacity,
    render_problem,
)
from steelyard.page.view import (
    Cell,
    CellMark,
    Contribution,
    Form,
    HostCondition,
    HostGroup,
    HostVerdict,
    Row,
    ShownCause,
    ShownFlavor,
    ShownReason,
    ShownRoom,
    ShownServerGroup,
    ShownWeigher,
    View,
)
from support.page.parsed_pages import Page


def view(**changes: Any) -> View:
    """Return a view of two hosts, two filters and two weighers, with these changes."""
    values: dict[str, Any] = {
        "flavor": ShownFlavor("web", 2, 4096, 20, {"ssd": "<or> nvme <or> ~"}),
        "group": ShownServerGroup("shop", "anti-affinity", {"max_server_per_host": 2}, ("b", "c")),
        "filters": ("CapacityFilter", "OtherFilter"),
        "weighers": (ShownWeigher("RAMWeigher", 0, True), ShownWeigher("IdleWeigher", 1, False)),
        "causes": (ShownCause("c0", "CapacityFilter", "not enough", 1),),
        "aggregates": (HostGroup("a0", "rack", 2, 1, True, {"ssd": "nvme"}),),
        "domains": (
            HostGroup("d0", "room: 1", 2, 1, True),
            HostGroup("d1", "rack: 2", 2, 1, True, {}, 1),
        ),
        "domain_keys": ("room", "rack"),
        "rows": (
            Row(
                "a",
                HostVerdict.CHOSEN,
                ("a0", "d0", "d1"),
                ("rack",),
                (Cell(CellMark.PASSED), Cell(CellMark.PASSED)),
                1.23456,
                (0.0, 50.4, -3.0),
                (Contribution("RAMWeigher", 1024, 0.5, 2, 1.23456),),
                HostCondition.CHOSEN,
            ),
            Row(
                "b",
                HostVerdict.REJECTED,
                ("a0", "d0", "d1", "c0"),
                ("rack",),
                (Cell(CellMark.DECISIVE, (1, 2)), Cell(CellMark.ALSO, (3,))),
            ),
        ),
        "reasons": (
            ShownReason(1, "CapacityFilter", "no RAM", 1),
            ShownReason(2, "CapacityFilter", "no disk", 1),
            ShownReason(3, "OtherFilter", "no", 1200),
        ),
        "axis": 25.0,
        "source": "cloud.yaml",
    }
    return View(**{**values, **changes})


def test_page_contains_whole_view() -> None:
    page = Page(render(view()))
    assert page.one("title").text == "web goes to a · steelyard"
    assert page.one("h1").text == "web goes to a"
    assert page.one("p", "lead").text == "It weighs 1.235, and no other host fits."
    assert page.one("p", "source").text.split() == ["The", "cloud:", "cloud.yaml"]
    assert [" ".join(each.text.split()) for each in page.all("dd")] == [
        "web: 2 vCPUs, 4 GiB of RAM, 20 GiB of disk",
        "ssd=<or> nvme <or> ~",
        "shop: anti-affinity, max_server_per_host=2; its servers are on b, c",
    ]
    why = "RAMWeigher: 1024, normalised 0.5, times 2 is 1.235"
    assert page.rows("plain") == [
        ["a", "rack", "chosen", f"1.235{why}", "✓", "✓"],
        ["b", "rack", "rejected", "", "✕ 1 2", "△ 3"],
    ]
    assert [each.text for each in page.all("li") if "value" in each.attributes] == [
        "no RAM 1 host",
        "no disk 1 host",
        "no 1,200 hosts",
    ]


def test_page_has_possible_typos_below_reasons_and_causes() -> None:
    line = "no aggregate has the key '<sdd>'; did you mean 'ssd'?"
    reason = ShownReason(1, "CapacityFilter", "no RAM", 1, (line, "and more"))
    cause = ShownCause("c0", "CapacityFilter", "not enough", 1, (line,))
    page = Page(render(view(reasons=(reason,), causes=(cause,))))
    assert [each.text for each in page.all("span", "typo")] == [line, line, "and more"]
    assert line in page.by_id("c0").text
    assert line in page.by_id("r1").text


def test_reason_numbers_link_to_reasons() -> None:
    page = Page(render(view()))
    links = [each.attributes["href"] for each in page.all("a") if not each.has_class("skip")]
    assert links == ["#r1", "#r2", "#r3"]
    assert page.by_id("r2").text.startswith("no disk")
    assert page.by_id(page.one("a", "skip").attributes["href"].removeprefix("#")).tag == "section"


def test_page_has_data_for_script() -> None:
    page = Page(render(view()))
    data = json.loads(page.by_id("data").text)
    assert data == columns(view())
    assert (data["bar"], data["width"], data["axis"]) == ([[0, 50, -3]], 100, 25)
    assert not any("style" in each.attributes for each in page.elements)
    # The legend has the weighers that change a weight.
    assert [each.text.strip() for each in page.all("li") if "Weigher" in each.text][:1] == [
        "RAMWeigher"
    ]
    assert "IdleWeigher" not in page.one("main").text


def test_lead_names_next_best_host() -> None:
    one, other = view().rows
    fits = Row("c", HostVerdict.FITS, (), (), one.cells, 0.5)
    page = Page(render(view(rows=(one, fits, other))))
    assert page.one("p", "lead").text == "It weighs 1.235; the next best, c, weighs 0.5."


def test_lead_says_no_host_fits() -> None:
    page = Page(render(view(rows=view().rows[1:], group=None)))
    assert page.one("title").text == "No host fits web · steelyard"
    assert page.one("p", "lead").text == "Every host was rejected by a filter."
    assert [each.text for each in page.all("dd")][-1] == "none"


def test_page_without_hosts_omits_empty_sections() -> None:
    nothing: Any = dict.fromkeys(("rows", "causes", "reasons", "aggregates", "domains"), ())
    page = Page(render(view(**nothing, flavor=ShownFlavor("f", 1, 1, 1, {}))))
    assert page.one("p", "lead").text == "The cloud has no hosts."
    assert {"Groups of hosts", "Reasons"}.isdisjoint(each.text for each in page.all("h2"))
    assert "No host was rejected." in page.one("main").text


def test_summary_shows_server_group_without_servers() -> None:
    group = ShownServerGroup("shop", "affinity", {}, ())
    page = Page(render(view(group=group)))
    assert page.all("dd")[-1].text == "shop: affinity; it has no servers yet"


def test_only_live_page_has_form() -> None:
    form = Form(("web", "db"), ("shop",), "db", None)
    page = Page(render(view(), form))
    assert [each.attributes["value"] for each in page.all("option")] == ["web", "db", "", "shop"]
    fields = [page.by_id(f"ask-{each}").attributes["value"] for each in ("flavor", "group")]
    assert fields == ["db", ""]
    assert Page(render(view())).all("form") == []


def test_form_keeps_missing_names() -> None:
    page = Page(render_problem("No", "such thing", Form(("web",), ("shop",), "<b>", "gone")))
    fields = [page.by_id(f"ask-{each}").attributes["value"] for each in ("flavor", "group")]
    assert fields == ["<b>", "gone"]
    assert [each.text for each in page.all("option")] == ["web", "none", "shop"]


def test_form_marks_flavors_that_fit_no_host() -> None:
    form = Form(("web", "db"), (), "db", fitting_nowhere=frozenset({"web"}))
    page = Page(render(view(), form))
    assert [each.text for each in page.all("option")] == ["web (fits no host)", "db", "none"]


def test_page_shows_time_of_cloud_file() -> None:
    modified = datetime.datetime(2026, 3, 1, 9, 5, 7, tzinfo=datetime.UTC)
    page = Page(render(view(modified=modified)))
    assert page.one("p", "source").text.split() == [
        *("The", "cloud:", "cloud.yaml,", "modified", "2026-03-01", "09:05:07", "UTC")
    ]
    assert page.one("time").attributes["datetime"] == "2026-03-01T09:05:07Z"


def test_page_shows_room_by_zone_and_group() -> None:
    zones = (ShownRoom("az1", 1000, True, 3, 4), ShownRoom("<az2>", 500, False, 2, 2))
    group = HostGroup("a0", "rack", 2, 1, True, room=ShownRoom("rack", 7, False, 1, 2))
    room = ShownRoom("all hosts", 1500, True, 5, 6)
    page = Page(render(view(zones=zones, room=room, aggregates=(group,))))
    assert "At least 1,500 more servers fit, on 5 of 6 hosts." in page.one("main").text
    assert page.rows_of(page.one("table", "rooms")) == [
        ["az1", "4", "3", "at least 1,000", ""],
        ["<az2>", "2", "2", "500", ""],
    ]
    assert page.rows_of(page.all("table", "groups")[0])[0][-2] == "7"
    assert "Capacity" not in [each.text for each in Page(render(view())).all("h2")]


def test_capacity_page_has_data_and_totals() -> None:
    table = {
        "flavors": ["web", "<db>"],
        "names": ["rack", "all hosts"],
        "hosts": [1, 2],
        "fit": [[1, 2], [0, 0]],
        "more": [[5, 1234], [0, 0]],
        "at_least": [[], []],
    }
    page = Page(render_capacity(table, "rack", ["aggregate", "rack"], "cloud.yaml"))
    assert json.loads(page.by_id("room-data").text) == table
    assert page.rows("plain") == [["web", "2", "1,234"], ["<db>", "0", "0"]]
    chosen = [each.text for each in page.all("option") if "selected" in each.attributes]
    assert chosen == ["rack"]
    current = [each.text for each in page.all("a") if "aria-current" in each.attributes]
    assert current == ["Capacity"]
    assert page.one("p", "source").text == "The cloud: cloud.yaml"


def test_page_without_scripts_lists_first_hosts() -> None:
    one = view().rows[0]
    page = Page(render(view(rows=(one,) * 1200)))
    assert len(page.rows("plain")) == 200
    assert "The first 200 of 1,200 hosts are listed" in page.all("noscript")[0].text
    assert len(json.loads(page.by_id("data").text)["hosts"]) == 1200


@pytest.mark.parametrize("live", [True, False])
def test_policy_allows_only_own_style_and_script(live: bool) -> None:
    page = Page(render(view(), Form((), ()) if live else None))
    (said,) = [
        each.attributes["content"]
        for each in page.all("meta")
        if each.attributes.get("http-equiv") == "Content-Security-Policy"
    ]
    assert said == policy(live=live)
    directives = dict(part.split(" ", 1) for part in said.split("; "))
    assert directives["default-src"] == "'none'"
    where = "'self'" if live else "'none'"
    assert (directives["connect-src"], directives["form-action"]) == (where, where)
    for tag in ("style", "script"):
        digest = hashlib.sha256(page.all(tag)[0].text.encode()).digest()
        assert directives[f"{tag}-src"] == f"'sha256-{base64.b64encode(digest).decode()}'"


def test_marks_have_fallback_without_alternative_text() -> None:
    style = Page(render(view())).one("style").text
    both = re.findall(r'content: ("[^"]*"); content: \1 / "";', style)
    assert len(both) == style.count('/ ""') == 6


def test_page_loads_nothing_else() -> None:
    text = render(view())
    page = Page(text)
    # The icon is a data URL; the only other URL is an XML namespace.
    assert [each.attributes["href"][:5] for each in page.all("link")] == ["data:"]
    assert set(re.findall(r"https?:[^'\"\s]*", text)) == {"http://www.w3.org/2000/svg"}
    assert not {"img", "iframe", "object", "embed", "base"} & {each.tag for each in page.elements}
    assert not any("src" in each.attributes for each in page.elements)
    assert "@import" not in text


@pytest.mark.parametrize(
    ("given", "shown"),
    [
        ("rack 1é", "rack 1é"),
        ("a\x00b", "a\\x00b"),
        ("a\nb\tc", "a\\nb\\tc"),
        ("\u202egpj", "\\u202egpj"),
        ("a\ud800", "a\\ud800"),
        ("\U000e0041", "\\U000e0041"),
        ("\xa0", "\\xa0"),
        (7, 7),
    ],
)
def test_printable_escapes_unprintable_characters(given: Any, shown: Any) -> None:
    assert printable(given) == shown


def test_render_problem_escapes_title_and_message() -> None:
    page = Page(render_problem("It <is> broken", "line 1:\n<b>"))
    assert page.one("h1").text == "It <is> broken"
    assert page.one("p", "problem").text == "line 1:\\n<b>"


def test_render_is_deterministic() -> None:
    assert render(view()) == render(view())
