"""Laws of the page: whatever names and metadata hold is text on it, and nothing else."""

import functools
from typing import Any

from hypothesis import given
from hypothesis import strategies as st
from oslo_config import cfg
from parsed_pages import Page

from steelyard.desk.page import render, view_of
from steelyard.desk.page.rendering import printable, render_problem
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
from steelyard.scheduler import Aggregate, Cloud, FilterScheduler, Host, NoValidHost
from steelyard.scheduler import Flavor as CloudFlavor

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
    """A page with the text in every place that can hold any."""
    one = Row(
        text,
        Verdict.CHOSEN,
        ("a0", "d0"),
        (text, text),
        (Cell(Mark.PASSED),),
        1.0,
        (Segment(0, 0, 100),),
        (Contribution(text, 1, 1, 1, 1),),
    )
    other = Row(text, Verdict.REJECTED, ("c0",), (text,), (Cell(Mark.DECISIVE, (1,)),))
    view = View(
        flavor=Flavor(text, 1, 1, 1, {text: text}),
        group=ServerGroup(text, text, {text: 1}, (text,)),
        filters=(text,),
        weighers=(Weigher(text, 0, True),),
        causes=(Cause("c0", text, text, 1),),
        aggregates=(Group("a0", text, 1, 1, True, {text: text}),),
        domains=(Group("d0", text, 1, 1, True),),
        domain_keys=(text,),
        rows=(one, other),
        reasons=(Reason(1, text, text, 1),),
        source=text,
    )
    return render(view, Form((text,), (text,), text, text) if live else None)


@functools.cache
def harmless(live: bool) -> Page:
    # Not broken between words, of which a hostile name may have some.
    return Page(page_of("x", live))


def without_breaks(page: Page) -> list[Any]:
    return [each for each in page.structure if each[0] != "wbr"]


@given(hostile, st.booleans())
def test_no_text_changes_the_structure_of_the_page(text: str, live: bool) -> None:
    page = Page(page_of(text or "x", live))
    assert without_breaks(page) == without_breaks(harmless(live))
    for tag in ("script", "style"):
        assert page.one(tag).text == harmless(live).one(tag).text


@given(hostile)
def test_every_text_is_there_as_it_is(text: str) -> None:
    shown = printable(text)
    page = Page(page_of(text, live=True))
    assert page.one("title").text == f"{shown} goes to {shown} · steelyard"
    assert page.one("h1").text == f"{shown} goes to {shown}"
    heads = [each.text for each in page.all("th") if each.attributes.get("scope") == "row"]
    chosen = f"{shown} chosen here"
    assert heads == [shown, chosen, chosen, shown, shown]
    assert page.by_id("r1").text == f"{shown} 1 host"
    assert [each.attributes["data-filter"] for each in page.all("ol")] == [shown]
    assert [each.attributes["value"] for each in page.all("option")] == [shown, "", shown]
    assert {each.text for each in page.all("code")} == {f"{shown}={shown}", f"{shown}=1"}


@given(hostile, hostile)
def test_a_problem_is_told_as_text(title: str, message: str) -> None:
    page = Page(render_problem(title, message))
    assert page.structure == Page(render_problem("x", "x")).structure
    assert page.one("h1").text == printable(title)
    assert page.one("p", "problem").text == printable(message)


@given(hostile)
def test_any_page_can_be_sent(text: str) -> None:
    sent = page_of(text, live=True).encode()
    assert b"\x00" not in sent
    assert sent.decode().splitlines()[0] == "<!doctype html>"


@given(st.dictionaries(hostile, hostile, max_size=3), st.dictionaries(hostile, hostile, max_size=3))
def test_metadata_and_extra_specs_of_a_cloud(specs: Any, metadata: Any) -> None:
    """What filters make of them is in their reasons, and so on the page."""
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
    assert {row[0] for row in page.rows("matrix")} == {"<b>", "c"}
    shown = {each.text for each in page.all("code")}
    assert {f"{printable(key)}={printable(value)}" for key, value in specs.items()} <= shown
    assert {f"{printable(key)}={printable(value)}" for key, value in metadata.items()} <= shown
    reasons = {printable(reason.text) for reason in view.reasons}
    assert reasons <= {each.text for each in page.all("span")}
