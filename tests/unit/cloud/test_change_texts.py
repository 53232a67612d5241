"""Changes as the options of ``steelyard whatif`` write them."""

from typing import Any

import pytest

from steelyard.aggregates import FORCE_KEY
from steelyard.cloud import Aggregate, Cloud, Flavor, Host, change_texts
from steelyard.cloud.changes import (
    Change,
    KeyedPart,
    SetKey,
    SetMembership,
    TakeIn,
    TakeOut,
    TakeOutAggregate,
    TakeOutByMetadata,
)
from steelyard.errors import BadRequest, NotFound

CLOUD = Cloud(
    {"h": Host("h", 1, 1, 1)},
    {name: Aggregate(name, {}, ()) for name in ("r1", "r1:b", "=")},
    {name: Flavor(name, 1, 1, 1) for name in ("m1", "m1:large", "a=b")},
)


@pytest.mark.parametrize(
    ("option", "text", "expected"),
    [
        ("--set", "flavor:m1:tier=gold", SetKey(KeyedPart.FLAVOR, "m1", "tier", "gold")),
        ("--set", "flavor:m1:hw:cpu=a=b", SetKey(KeyedPart.FLAVOR, "m1", "hw:cpu", "a=b")),
        ("--set", "flavor:m1:tier=", SetKey(KeyedPart.FLAVOR, "m1", "tier", "")),
        ("--set", "flavor:m1:large:k=v", SetKey(KeyedPart.FLAVOR, "m1:large", "k", "v")),
        ("--set", "flavor:a=b:k=v", SetKey(KeyedPart.FLAVOR, "a=b", "k", "v")),
        ("--set", "aggregate:=:k=v", SetKey(KeyedPart.AGGREGATE, "=", "k", "v")),
        ("--unset", "flavor:m1:trait:A", SetKey(KeyedPart.FLAVOR, "m1", "trait:A", None)),
        ("--unset", "aggregate:r1:k", SetKey(KeyedPart.AGGREGATE, "r1", "k", None)),
        ("--force", "r1:b", SetKey(KeyedPart.AGGREGATE, "r1:b", FORCE_KEY, "true")),
        ("--unforce", "r1", SetKey(KeyedPart.AGGREGATE, "r1", FORCE_KEY, None)),
        ("--add-host", "r1:h", SetMembership("r1", "h", joins=True)),
        ("--add-host", "r1:b:h", SetMembership("r1:b", "h", joins=True)),
        ("--remove-host", "r1:h:2", SetMembership("r1", "h:2", joins=False)),
        ("--out", "host:h", TakeOut("h")),
        ("--out", "aggregate:r1:b", TakeOutAggregate("r1:b")),
        ("--out", "rack=r1=2", TakeOutByMetadata("rack", "r1=2")),
        ("--out", "zone:rack=r1", TakeOutByMetadata("zone:rack", "r1")),
        ("--in", "host:h:1", TakeIn("h:1")),
    ],
)
def test_parse(option: str, text: str, expected: Change) -> None:
    assert change_texts.parse(option, text, CLOUD) == expected


@pytest.mark.parametrize(
    ("option", "text"),
    [
        ("--set", "flavor:m1:tier"),
        ("--set", "flavor:m1:=gold"),
        ("--set", "flavor:m1"),
        ("--set", "flavour:m1:a=b"),
        ("--set", "m1:a=b"),
        ("--set", ""),
        ("--unset", "flavor:m1:"),
        ("--unset", "flavor::k"),
        ("--add-host", "r1"),
        ("--add-host", "r1:"),
        ("--remove-host", ":h"),
        ("--out", "h"),
        ("--out", "host:"),
        ("--out", "aggregate:"),
        ("--out", "rack="),
        ("--out", "=r1"),
        ("--in", "aggregate:r1"),
        ("--in", "h"),
    ],
)
def test_malformed_value_is_quoted_with_the_expected_form(option: str, text: str) -> None:
    with pytest.raises(BadRequest) as caught:
        change_texts.parse(option, text, CLOUD)
    said: Any = str(caught.value)
    assert said == f"invalid value {text!r}: expected {change_texts.OPTIONS[option].expected}"


@pytest.mark.parametrize(
    ("option", "text", "said"),
    [
        ("--set", "flavor:m2:k=v", "no flavor 'm2'; available: 'm1'"),
        ("--unset", "aggregate:r2:k", "no aggregate 'r2'"),
        ("--add-host", "r2:h", "no aggregate 'r2'"),
    ],
)
def test_unknown_name_is_an_error(option: str, text: str, said: str) -> None:
    with pytest.raises(NotFound, match=said):
        change_texts.parse(option, text, CLOUD)
