"""Files with changes of a cloud."""

import json
import pathlib

import pytest
import yaml

from steelyard.aggregates import FORCE_KEY
from steelyard.cloud.changes import (
    KeyedPart,
    SetKey,
    SetMembership,
    TakeIn,
    TakeOut,
    TakeOutAggregate,
    TakeOutByMetadata,
)
from steelyard.cloud.files import changes_file
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


def test_load_returns_the_changes_in_order(tmp_path: pathlib.Path) -> None:
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
    written = tmp_path / "changes.yaml"
    written.write_text(TEXT)
    assert changes_file.load(written) == expected
    as_json = tmp_path / "changes.json"
    as_json.write_text(json.dumps(yaml.load(TEXT, yaml.BaseLoader)))
    assert changes_file.load(as_json) == expected


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", r"expected a list of at least one change, got \[\]"),
        ("force: ssd", "expected a list of at least one change, got {"),
        ("- ssd", ":1: change 1: expected a mapping"),
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
        changes_file.load(written)
