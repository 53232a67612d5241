"""The content of the page for the consequences of changes."""

import base64
import gzip
import json
from typing import Any

from steelyard.analysis.whatif.baseline import Baseline
from steelyard.analysis.whatif.consequences import consequences
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, Server, changes
from steelyard.cloud.changes import Change, KeyedPart, SetKey, TakeIn, TakeOut
from steelyard.page.whatif import (
    ChangesForm,
    WhatIfView,
    columns,
    suggestions,
)

SMALL = Flavor("small", 1, 1024, 10)
FAST = Flavor("fast", 1, 1024, 10, {"ssd": "nvme"})


def cloud() -> Cloud:
    return Cloud(
        {
            "a": Host("a", 4, 4096, 100),
            "b": Host("b", 4, 4096, 100),
            "c": Host("c", 4, 4096, 100, out_of_service="down"),
        },
        {
            "x": Aggregate("x", {"ssd": "nvme", "rack": "r1"}, ("a",)),
            "y": Aggregate("y", {"rack": "r2", "force_metadata_check": "true"}, ("b", "c")),
        },
        {"small": SMALL, "fast": FAST},
    ).with_servers([Server("u", "one", FAST, "a")])


def view(conf: Any, *wanted: Change, **fields: Any) -> WhatIfView:
    after = changes.applied(cloud(), [("", change) for change in wanted])
    return WhatIfView(consequences(Baseline(cloud(), conf), after), **fields)


def conditions(found: WhatIfView) -> dict[str, list[str]]:
    """Return the letters of the hosts before and after, by flavor."""
    data = columns(found)
    letters = json.loads(gzip.decompress(base64.b64decode(data["conditions"])))
    return dict(zip(data["flavors"], letters, strict=True))


def test_columns_have_the_conditions_of_hosts_before_and_after(conf: Any) -> None:
    found = view(conf, TakeOut("a"), TakeIn("c"), domains=["rack"])
    assert columns(found)["hosts"] == ["a", "b", "c"]
    assert conditions(found) == {"small": ["fro", "orr"], "fast": ["fro", "orr"]}
    assert columns(found)["tiles"] == [["rack: r1", ""], ["rack: r2", ""]]
    assert columns(found)["tile"] == [0, 1, 1]


def test_sections_name_servers_and_findings(conf: Any) -> None:
    found = view(conf, TakeOut("a"), SetKey(KeyedPart.AGGREGATE, "y", "ssd", "nvme"))
    by_key = {section.key: section for section in found.sections}
    assert "displaced" not in by_key
    ((name, text),) = by_key["stranded"].entries
    assert name == "one (fast) on a"
    assert text
    assert found.title == "Worse: 2 flavors without a host, 1 server without a host"


def test_misplaced_servers_are_listed_once(conf: Any) -> None:
    found = view(conf, SetKey(KeyedPart.AGGREGATE, "x", "ssd", "sata"))
    by_key = {section.key: section for section in found.sections}
    assert [entry.name for entry in by_key["misplaced"].entries] == ["one (fast) on a"]
    assert not any("misplaced-server" in entry.name for entry in by_key["found"].entries)


def test_title_without_a_difference(conf: Any) -> None:
    assert view(conf, SetKey(KeyedPart.AGGREGATE, "x", "note", "n")).title == "Nothing differs"
    assert WhatIfView(None).title == "What if"
    assert WhatIfView(None).sections == []
    assert columns(WhatIfView(None)) == {}


def test_suggestions_suit_the_options() -> None:
    found = dict(suggestions(cloud()))
    assert found["x"] == "--force"
    assert found["y"] == "--unforce"
    assert found["rack=r1"] == found["host:a"] == found["aggregate:x"] == "--out"
    assert found["host:c"] == "--in"
    assert found["flavor:fast:ssd"] == found["aggregate:x:rack"] == "--unset"
    assert found["flavor:small:"] == "--set"
    assert found["x:"] == "--add-host --remove-host"


def test_form_has_addresses_without_each_change() -> None:
    form = ChangesForm((("--out", "rack=a&b"), ("--in", "host:c")))
    assert form.without(0) == "/whatif?change=--in+host%3Ac"
    assert form.without(1) == "/whatif?change=--out+rack%3Da%26b"
    assert ChangesForm((("--force", "x"),)).without(0) == "/whatif"
