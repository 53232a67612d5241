"""The page as HTML."""

import base64
import hashlib
import re
from typing import Any

import pytest
from parsed_pages import Page

from steelyard.desk.page.rendering import policy, printable, render, render_problem
from steelyard.desk.page.view import (
    Cause,
    Cell,
    Contribution,
    Flavor,
    Form,
    Group,
    Mark,
    Reason,
    Row,
    Segment,
    ServerGroup,
    Verdict,
    View,
    Weigher,
)


def view(**changes: Any) -> View:
    """Two hosts, two filters, two weighers."""
    values: dict[str, Any] = {
        "flavor": Flavor("web", 2, 4096, 20, {"ssd": "<or> nvme <or> ~"}),
        "group": ServerGroup("shop", "anti-affinity", {"max_server_per_host": 2}, ("b", "c")),
        "filters": ("CapacityFilter", "OtherFilter"),
        "weighers": (Weigher("RAMWeigher", 0, True), Weigher("IdleWeigher", 1, False)),
        "causes": (Cause("c0", "CapacityFilter", "not enough", 1),),
        "aggregates": (Group("a0", "rack", 2, 1, True, {"ssd": "nvme"}),),
        "domains": (Group("d0", "room: 1", 2, 1, True), Group("d1", "rack: 2", 2, 1, True, {}, 1)),
        "domain_keys": ("room", "rack"),
        "rows": (
            Row(
                "a",
                Verdict.CHOSEN,
                ("a0", "d0", "d1"),
                ("rack",),
                (Cell(Mark.PASSED), Cell(Mark.PASSED)),
                1.23456,
                (Segment(0, 25, 50),),
                (Contribution("RAMWeigher", 1024, 0.5, 2, 1.23456),),
            ),
            Row(
                "b",
                Verdict.REJECTED,
                ("a0", "d0", "d1", "c0"),
                ("rack",),
                (Cell(Mark.DECISIVE, (1, 2)), Cell(Mark.ALSO, (3,))),
            ),
        ),
        "reasons": (
            Reason(1, "CapacityFilter", "no RAM", 1),
            Reason(2, "CapacityFilter", "no disk", 1),
            Reason(3, "OtherFilter", "no", 1200),
        ),
        "axis": 25.0,
        "source": "cloud.yaml",
    }
    return View(**{**values, **changes})


def test_all_of_it_is_in_the_page() -> None:
    page = Page(render(view()))
    assert page.one("title").text == "web goes to a · steelyard"
    assert page.one("h1").text == "web goes to a"
    assert page.one("p", "lead").text == "It weighs 1.235, and no other host fits."
    assert page.one("p", "source").text == "The cloud: cloud.yaml"
    assert [" ".join(each.text.split()) for each in page.all("dd")] == [
        "web: 2 vCPUs, 4096 MiB of RAM, 20 GiB of disk",
        "ssd=<or> nvme <or> ~",
        "shop: anti-affinity, max_server_per_host=2; its servers are on b, c",
    ]
    why = "RAMWeigher: 1024, normalised 0.5, times 2 is 1.235"
    assert page.rows("matrix") == [
        ["a", "rack", "chosen", f"1.235{why}", "✓", "✓"],
        ["b", "rack", "rejected", "", "✕ 1 2", "△ 3"],
    ]
    assert [each.text for each in page.all("li") if "value" in each.attributes] == [
        "no RAM 1 host",
        "no disk 1 host",
        "no 1,200 hosts",
    ]


def test_every_number_of_a_reason_leads_to_it() -> None:
    page = Page(render(view()))
    links = [each.attributes["href"] for each in page.all("a") if not each.has_class("skip")]
    assert links == ["#r1", "#r2", "#r3"]
    assert page.by_id("r2").text.startswith("no disk")
    assert page.by_id(page.one("a", "skip").attributes["href"].removeprefix("#")).tag == "section"


def test_bars_are_drawn_without_styles() -> None:
    page = Page(render(view()))
    bar = page.elements.index(page.one("svg", "weights"))
    segment, axis = page.elements[bar + 1 : bar + 3]
    assert (segment.attributes["x"], segment.attributes["width"]) == ("25", "50")
    assert axis.attributes["d"] == "M25 0v10"
    assert not any("style" in each.attributes for each in page.elements)
    # The key has those that add something.
    assert [each.text.strip() for each in page.all("li") if "Weigher" in each.text][:1] == [
        "RAMWeigher"
    ]
    assert "IdleWeigher" not in page.one("main").text


def test_the_next_best() -> None:
    one, other = view().rows
    fits = Row("c", Verdict.FITS, (), (), one.cells, 0.5)
    page = Page(render(view(rows=(one, fits, other))))
    assert page.one("p", "lead").text == "It weighs 1.235; the next best, c, weighs 0.5."


def test_no_host_fits() -> None:
    page = Page(render(view(rows=view().rows[1:], group=None)))
    assert page.one("title").text == "No host fits web · steelyard"
    assert page.one("p", "lead").text == "Each of the hosts was turned away by a filter."
    assert [each.text for each in page.all("dd")][-1] == "none"


def test_nothing_at_all() -> None:
    nothing: Any = dict.fromkeys(("rows", "causes", "reasons", "aggregates", "domains"), ())
    page = Page(render(view(**nothing, flavor=Flavor("f", 1, 1, 1, {}))))
    assert page.one("p", "lead").text == "There are no hosts."
    assert {"Groups of hosts", "Reasons"}.isdisjoint(each.text for each in page.all("h2"))
    assert "None was." in page.one("main").text


def test_a_server_group_without_servers() -> None:
    group = ServerGroup("shop", "affinity", {}, ())
    page = Page(render(view(group=group)))
    assert page.all("dd")[-1].text == "shop: affinity; it has no server yet"


def test_the_form_is_there_where_it_is_served() -> None:
    form = Form(("web", "db"), ("shop",), "db", None)
    page = Page(render(view(), form))
    assert [
        (each.attributes["value"], "selected" in each.attributes) for each in page.all("option")
    ] == [("web", False), ("db", True), ("", False), ("shop", False)]
    assert Page(render(view())).all("form") == []


def test_what_is_asked_for_and_not_there_is_said_by_the_form() -> None:
    page = Page(render_problem("No", "such thing", Form(("web",), ("shop",), "<b>", "gone")))
    chosen = [each for each in page.all("option") if "selected" in each.attributes]
    assert [each.text for each in chosen] == ["<b> (not there)", "gone (not there)"]
    assert all("disabled" in each.attributes for each in chosen)


@pytest.mark.parametrize("live", [True, False])
def test_the_policy_lets_the_pages_own_style_and_script_run_alone(live: bool) -> None:
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
        digest = hashlib.sha256(page.one(tag).text.encode()).digest()
        assert directives[f"{tag}-src"] == f"'sha256-{base64.b64encode(digest).decode()}'"


def test_browsers_that_know_no_other_text_for_marks_show_them() -> None:
    style = Page(render(view())).one("style").text
    both = re.findall(r'content: ("[^"]*"); content: \1 / "";', style)
    assert len(both) == style.count('/ ""') == 6


def test_nothing_leads_outside() -> None:
    text = render(view())
    page = Page(text)
    # Its icon is in itself; the name of a namespace is no address.
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
def test_what_cannot_be_printed_is_spelled_out(given: Any, shown: Any) -> None:
    assert printable(given) == shown


def test_a_problem_has_a_page() -> None:
    page = Page(render_problem("It <is> broken", "line 1:\n<b>"))
    assert page.one("h1").text == "It <is> broken"
    assert page.one("p", "problem").text == "line 1:\\n<b>"


def test_the_same_decision_makes_the_same_page() -> None:
    assert render(view()) == render(view())
