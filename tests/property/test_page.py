"""Laws of the page: names and metadata appear as text only."""

import functools
import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from oslo_config import cfg

from steelyard.cloud import Aggregate, Cloud, Host
from steelyard.cloud import Flavor as CloudFlavor
from steelyard.page import render, view_of
from steelyard.page.rendering import printable, render_problem
from steelyard.page.view import (
    Cell,
    CellMark,
    Contribution,
    Form,
    HostGroup,
    HostVerdict,
    Row,
    ShownCause,
    ShownFlavor,
    ShownReason,
    ShownServerGroup,
    ShownWeigher,
    View,
)
from steelyard.scheduler import FilterScheduler, NoValidHost
from support.page.parsed_pages import Page

hostile = st.one_of(
    st.sampled_from(
        [
            "</script><script>alert(1)</script>",
            "<img src=x onerror=alert(1)>",
            "</title><h1>",
            '"\' onfocus=alert(1) autofocus x="',
            "'><svg/onload=alert(1)>",
            "<!--",
            "-->",
            "]]>",
            "&lt;b&gt; &amp; &#60;",
            "{{ 7 * 7 }}{% raw %}",
            "</style>",
            "<plaintext>",
            "\x00\x08\r\n\t\x1b[31m\x7f\x85",
            "\u202e\u2066\ufeff\u2028",
            "\ud800",
            "javascript:alert(1)",
        ]
    ),
    st.text(max_size=12),
    st.text(st.characters(), max_size=12),
    st.text("<>&\"'/=`{}% \x00\n\\", max_size=16),
)


def page_of(text: str, live: bool) -> str:
    """Return a page that has the text in every place for text."""
    one = Row(
        text,
        HostVerdict.CHOSEN,
        ("a0", "d0"),
        (text, text),
        (Cell(CellMark.PASSED),),
        1.0,
        (100.0,),
        (Contribution(text, 1, 1, 1, 1),),
    )
    other = Row(text, HostVerdict.REJECTED, ("c0",), (text,), (Cell(CellMark.DECISIVE, (1,)),))
    view = View(
        flavor=ShownFlavor(text, 1, 1, 1, {text: text}),
        group=ShownServerGroup(text, text, {text: 1}, (text,)),
        filters=(text,),
        weighers=(ShownWeigher(text, 0, True),),
        causes=(ShownCause("c0", text, text, 1),),
        aggregates=(HostGroup("a0", text, 1, 1, True, {text: text}),),
        domains=(HostGroup("d0", text, 1, 1, True),),
        domain_keys=(text,),
        rows=(one, other),
        reasons=(ShownReason(1, text, text, 1),),
        source=text,
    )
    return render(view, Form((text,), (text,), text, text) if live else None)


@functools.cache
def harmless(live: bool) -> Page:
    # A single word, so the page has no line breaks within names.
    return Page(page_of("x", live))


def without_breaks(page: Page) -> list[Any]:
    return [each for each in page.structure if each[0] != "wbr"]


@given(hostile, st.booleans())
def test_hostile_text_keeps_page_structure(text: str, live: bool) -> None:
    page = Page(page_of(text or "x", live))
    assert without_breaks(page) == without_breaks(harmless(live))
    own, data = page.all("script")
    assert own.text == harmless(live).all("script")[0].text
    assert page.one("style").text == harmless(live).one("style").text
    assert json.loads(data.text).keys() == json.loads(harmless(live).by_id("data").text).keys()


@given(hostile)
def test_hostile_text_is_shown_escaped(text: str) -> None:
    shown = printable(text)
    page = Page(page_of(text, live=True))
    assert page.one("title").text == f"{shown} goes to {shown} · steelyard"
    assert page.one("h1").text == f"{shown} goes to {shown}"
    heads = [each.text for each in page.all("th") if each.attributes.get("scope") == "row"]
    chosen = f"{shown} chosen here"
    assert heads == [shown, chosen, chosen, shown, shown]
    assert page.by_id("r1").text == f"{shown} 1 host"
    assert page.one("h3").text == shown
    data = json.loads(page.by_id("data").text)
    assert (data["hosts"], data["filters"]) == ([shown, shown], [shown])
    assert [each.attributes["value"] for each in page.all("option")] == [shown, "", shown]
    assert {each.text for each in page.all("code")} == {f"{shown}={shown}", f"{shown}=1"}


@given(hostile, hostile)
def test_problem_page_shows_hostile_text_escaped(title: str, message: str) -> None:
    page = Page(render_problem(title, message))
    assert page.structure == Page(render_problem("x", "x")).structure
    assert page.one("h1").text == printable(title)
    assert page.one("p", "problem").text == printable(message)


@given(hostile)
def test_page_with_hostile_text_encodes(text: str) -> None:
    sent = page_of(text, live=True).encode()
    assert b"\x00" not in sent
    assert sent.decode().splitlines()[0] == "<!doctype html>"


@given(st.dictionaries(hostile, hostile, max_size=3), st.dictionaries(hostile, hostile, max_size=3))
def test_hostile_metadata_and_extra_specs_are_shown_escaped(specs: Any, metadata: Any) -> None:
    # Filters quote metadata and extra specs in their reasons, which the page shows.
    aggregate = Aggregate("<i>", {**metadata, "force_metadata_check": "true"}, ("<b>",))
    cloud = Cloud(
        {"<b>": Host("<b>", 1, 1024, 10), "c": Host("c", 1, 1024, 10)},
        {"<i>": aggregate},
        {"f": CloudFlavor("f", 1, 512, 1, specs)},
    )
    conf = cfg.ConfigOpts()
    conf([], default_config_files=[], default_config_dirs=[])
    scheduler = FilterScheduler(cloud, conf)
    try:
        (decision,) = scheduler.select(scheduler.request("f")).decisions
    except NoValidHost as error:
        decision = error.decision
    view = view_of(decision, scheduler)
    page = Page(render(view))
    tags = {each.tag for each in harmless(live=False).elements}
    assert {each.tag for each in page.elements} <= {*tags, "wbr"}
    assert {row[0] for row in page.rows("plain")} == {"<b>", "c"}
    shown = {each.text for each in page.all("code")}
    assert {f"{printable(key)}={printable(value)}" for key, value in specs.items()} <= shown
    assert {f"{printable(key)}={printable(value)}" for key, value in metadata.items()} <= shown
    reasons = {printable(reason.text) for reason in view.reasons}
    assert reasons <= {each.text for each in page.all("span")}
