"""Files with changes of a cloud."""

import json
import pathlib

import pytest
import yaml

from steelyard.aggregates import FORCE_KEY
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, changes
from steelyard.cloud.changes import (
    KeyedPart,
    SetKey,
    SetMembership,
    TakeIn,
    TakeOut,
    TakeOutAggregate,
    TakeOutByMetadata,
)
from steelyard.cloud.files import changes_file, saving
from steelyard.errors import InvalidCloud

TEXT = """\
- set: {flavor: m1.large, key: tier, value: gold}
- set: {aggregate: ssd, key: rack, value: 7}
- unset: {flavor: m1.large, key: "trait:A"}
- force: ssd
- unforce: ssd
- add-host: {aggregate: ssd, host: n1}
- remove-host: {aggregate: ssd, host: n2}
- out: {host: n3}
- out: {aggregate: ssd}
- out: {key: rack, value: r7}
- in: {host: n4}
"""


CLOUD = Cloud(
    {
        name: Host(name, 4, 4096, 100, out_of_service="down" if name == "n4" else "")
        for name in ("n1", "n2", "n3", "n4", "n5")
    },
    {
        "ssd": Aggregate("ssd", {}, ("n2",)),
        "row": Aggregate("row", {"rack": "r7"}, ("n5",)),
    },
    {"m1.large": Flavor("m1.large", 1, 1024, 10, {"trait:A": "required"})},
)


def described(cloud: Cloud) -> str:
    return saving.as_text(cloud, "cloud.json")


def test_changes_are_applied_in_order(tmp_path: pathlib.Path) -> None:
    expected = [
        SetKey(KeyedPart.FLAVOR, "m1.large", "tier", "gold"),
        SetKey(KeyedPart.AGGREGATE, "ssd", "rack", "7"),
        SetKey(KeyedPart.FLAVOR, "m1.large", "trait:A", None),
        SetKey(KeyedPart.AGGREGATE, "ssd", FORCE_KEY, "true"),
        SetKey(KeyedPart.AGGREGATE, "ssd", FORCE_KEY, None),
        SetMembership("ssd", "n1", joins=True),
        SetMembership("ssd", "n2", joins=False),
        TakeOut("n3"),
        TakeOutAggregate("ssd"),
        TakeOutByMetadata("rack", "r7"),
        TakeIn("n4"),
    ]
    after = changes.applied(CLOUD, [("", change) for change in expected])
    written = tmp_path / "changes.yaml"
    written.write_text(TEXT)
    assert described(changes_file.applied(written, CLOUD)) == described(after)
    as_json = tmp_path / "changes.json"
    as_json.write_text(json.dumps(yaml.load(TEXT, yaml.BaseLoader)))
    assert described(changes_file.applied(as_json, CLOUD)) == described(after)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", r"expected a list of at least one change, got \[\]"),
        ("force: ssd", "expected a list of at least one change, got {"),
        ("- ssd", ':1: change 1: expected a mapping such as {out: {host: NAME}}, got "ssd"'),
        ("- out: n1", ':1: change 1: out: expected a mapping such as {host: NAME}, got "n1"'),
        ("- set: [a]", "change 1: set: expected a mapping such as {flavor: NAME, key: KEY, "),
        ("- out: {host: n1}\n\n- out: {host: zz}", ":3: change 2: no host 'zz'"),
        ("- out: {host: n1}\n- in: {host: n2}", ":2: change 2: host 'n2' is already in service"),
        ("- {forse: ssd}", ":1: change 1: forse: unknown key 'forse'; did you mean 'force'"),
        ("- {force: a, unforce: b}", ":1: change 1: expected one of set, unset, .*, got {"),
        ("- {}", ":1: change 1: expected one of set, unset"),
        ("- force: a\n- set: {flavor: m, key: k}", ":2: change 2: set: missing key 'value'"),
        ("- set: {key: k, value: v}", "change 1: set: expected either a flavor or an aggregate"),
        (
            "- set: {flavor: m, aggregate: a, key: k, value: v}",
            "change 1: set: expected either a flavor or an aggregate",
        ),
        ("- set: {flavor: m, key: k, value: [v]}", "change 1: set: value: expected text"),
        ("- set: {flavor: m, key: '', value: v}", "change 1: set: key: invalid name ''"),
        ("- force: {aggregate: a}", "change 1: force: expected text"),
        ("- out: {host: a, aggregate: b}", "change 1: out: expected a host, an aggregate, or"),
        ("- out: {key: a}", "change 1: out: expected a host, an aggregate, or"),
        ("- out: {}", "change 1: out: expected a host, an aggregate, or"),
        ("- in: {aggregate: a}", "change 1: in: aggregate: unknown key"),
        ("- add-host: {aggregate: a}", "change 1: add-host: missing key 'host'"),
    ],
)
def test_malformed_file_is_an_error_with_its_place(
    tmp_path: pathlib.Path, text: str, said: str
) -> None:
    written = tmp_path / "changes.yaml"
    written.write_text(text)
    with pytest.raises(InvalidCloud, match=said):
        changes_file.applied(written, CLOUD)
