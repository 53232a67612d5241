from typing import Any

import pytest

from steelyard.aggregates import Judge, content, flag
from steelyard.verdict import Verdict
from support.scheduler.plain_objects import Aggregate

SCOPE = "aggregate_instance_extra_specs:"
FORCED = {"force_metadata_check": "true"}
IGNORED = ("availability_zone", "*_weight_multiplier", "filter_tenant_id*")


def verdict(flavor: Any, *aggregates: Any, ignored: Any = IGNORED) -> Verdict:
    named = [(f"agg{i}", metadata) for i, metadata in enumerate(aggregates, 1)]
    return Judge(content(flavor), ignored).examine(named)


@pytest.mark.parametrize(
    ("flavor", "aggregates", "passes"),
    [
        # the offers of the host are the union over its aggregates
        ({"a": "1", "b": "2"}, [{"a": "1"}, {"b": "2"}], True),
        ({"a": "1"}, [{"a": "2"}, {"a": "1"}], True),
        ({"a": "1"}, [{"a": "2, 1"}], True),
        ({"a": "~"}, [{"b": "1"}, {"a": "1"}], False),
        ({"a": "~"}, [], True),
        ({"a": "1"}, [], False),
        # absence, if forced aggregates have the key
        ({"a": "~"}, [{"a": "<or> 1 <or> ~"} | FORCED], True),
        ({"a": "~"}, [{"a": "<or> 1 <or> ~"} | FORCED, {"a": "1"}], False),
        ({"a": "~"}, [{"a": "1"} | FORCED], False),
        ({"a": "!"}, [{"a": "!"} | FORCED], True),
        # the flag belongs to its own aggregate
        ({"a": "1"}, [{"a": "1"}, {"b": "2"} | FORCED], False),
        ({"a": "1"}, [{"a": "*"}, FORCED], False),
        # scopes and namespaces
        ({SCOPE + "a": "1"}, [{"a": "1"}], True),
        ({SCOPE + "a": "1", "a": "2"}, [{"a": "1"}], False),
        ({SCOPE + "a": "1", "a": "2"}, [{"a": "1, 2"}], True),
        ({SCOPE + "hw:x": "1"}, [{}], False),
        ({SCOPE + "hw:x": "1"}, [{"hw:x": "1"}], True),
        ({"hw:x": "1"}, [{}], True),
        ({"hw:x": "1"}, [{"hw:x": "2"}], False),
        ({"hw:x": "*"}, [{}], True),
        ({"hw:x": "<or> 1 <or> ~"}, [{"hw:x": "2"}], False),
        ({"hw:x": "!"}, [{"hw:x": "2"}], False),
        ({"hw:x": ">= many"}, [{}], True),
        ({"a": "1"}, [{SCOPE + "a": "1"}], False),
        ({"a": "1"}, [{SCOPE + "a": "1"} | FORCED], True),
        ({"a": "1"}, [{SCOPE + "a": "1", "a": "2"} | FORCED], True),
        ({"a": "<or> 1 <or> 2"}, [{SCOPE + "a": "1", "a": "2"} | FORCED], True),
        ({SCOPE + "a": "1", "a": "2"}, [{"a": "*"} | FORCED], True),
        ({SCOPE + "a": "1", "a": "2"}, [{"a": "1"} | FORCED], False),
        # the reserved key
        ({"force_metadata_check": "x"}, [{}], True),
        ({SCOPE + "force_metadata_check": "x"}, [{}], True),
        ({}, [FORCED], True),
        ({}, [{SCOPE + "force_metadata_check": "x"} | FORCED], True),
        # keys that forced aggregates have for other purposes
        ({}, [{"availability_zone": "az1", "ram_weight_multiplier": "2"} | FORCED], True),
        ({}, [{"filter_tenant_id": "x", "filter_tenant_id2": "y"} | FORCED], True),
        ({}, [{SCOPE + "availability_zone": "az1"} | FORCED], True),
        ({"availability_zone": "az2"}, [{"availability_zone": "az1"} | FORCED], False),
        # the values of several aggregates combine
        ({"a": "1"}, [{"a": "1"} | FORCED, {"a": "2"} | FORCED], True),
        ({"a": "2"}, [{"a": "1"} | FORCED, {"a": "2"} | FORCED], True),
        ({}, [{"a": "1"} | FORCED, {"a": "2"} | FORCED], False),
        ({"a": "3"}, [{"a": "<or> 1 <or> 2"} | FORCED, {"a": "3"}], True),
        ({}, [{"a": "<or> 1 <or> ~"} | FORCED, {"a": "2"} | FORCED], False),
        ({}, [{"a": "<or> 1 <or> ~"} | FORCED, {"a": "2"}], True),
        ({}, [{"a": "<or> * <or> ~"} | FORCED], True),
        ({}, [{"a": "<or> * <or> ~"} | FORCED, {"a": "1"} | FORCED], False),
        # two spellings in one forced aggregate: values combine, each must admit absence
        ({}, [{"a": "~", SCOPE + "a": "1"} | FORCED], False),
        ({}, [{"a": "~", SCOPE + "a": "<or> 1 <or> ~"} | FORCED], True),
        ({"a": "1"}, [{"a": "!", SCOPE + "a": "1"} | FORCED], False),
        # '!' vetoes the values of other aggregates, and '~' does not
        ({"a": "1"}, [{"a": "!"} | FORCED, {"a": "1"}], False),
        ({"a": "1"}, [{"a": "<or> !"} | FORCED, {"a": "1"} | FORCED], False),
        ({"a": "1"}, [{"a": "~"} | FORCED, {"a": "1"}], True),
        ({"a": "~"}, [{"a": "!"} | FORCED], True),
        ({"a": "~"}, [{"a": "!"} | FORCED, {"a": "1"}], False),
        ({}, [{"a": "!"} | FORCED, {"a": "1"}], True),
        ({}, [{"a": "!"} | FORCED, {"a": "1"} | FORCED], False),
        ({"availability_zone": "z"}, [{"availability_zone": "!"} | FORCED], False),
        # malformed values admit nothing
        ({"a": "1"}, [{"a": "1,!"} | FORCED, {"a": "1"}], False),
        ({}, [{"a": "1,!"} | FORCED], False),
        ({"a": "~"}, [{"a": "1,!"} | FORCED], False),
        ({"availability_zone": "z"}, [{"availability_zone": "<or>"} | FORCED], False),
        ({}, [{"availability_zone": "<or>"} | FORCED], True),
        ({"a": "<or>"}, [{"a": "<or>"}], False),
        ({"a": ">= many"}, [{"a": "many"}], False),
        ({"a": ">= 8"}, [{"a": "many"}], False),
        ({"a": "1"}, [{"a": "1, >= many"} | FORCED], False),
        ({}, [{"a": "<or>"} | FORCED], False),
    ],
)
def test_host_passes_if_both_checks_pass(flavor: Any, aggregates: Any, passes: Any) -> None:
    found = verdict(flavor, *aggregates)
    assert found.passed is passes
    assert verdict(flavor, *reversed(aggregates)).passed is passes
    assert bool(found.reason) is not passes


def test_empty_list_of_ignored_keys_requires_every_key() -> None:
    assert not verdict({}, {"availability_zone": "az1"} | FORCED, ignored=())
    assert verdict({"availability_zone": "az1"}, {"availability_zone": "az1"} | FORCED, ignored=())


@pytest.mark.parametrize(
    ("flavor", "aggregates", "reason", "cause"),
    [
        (
            {"ssd": "<or> nvme <or> ~"},
            [{"ssd": "sata"}],
            "key 'ssd': flavor wants '<or> nvme <or> ~', aggregate 'agg1' offers 'sata'",
            "key 'ssd': flavor wants '<or> nvme <or> ~', aggregate 'agg1' offers 'sata'",
        ),
        (
            {"ssd": "nvme"},
            [{"ssd": "sata"}, {"ssd": "hdd"} | FORCED],
            "key 'ssd': flavor wants 'nvme', aggregate 'agg1' offers 'sata'; "
            "aggregate 'agg2' offers 'hdd'",
            "key 'ssd': flavor wants 'nvme', other values are offered",
        ),
        (
            {"ssd": "nvme"},
            [{"ssd": str(i)} for i in range(5)],
            "key 'ssd': flavor wants 'nvme', aggregate 'agg1' offers '0'; aggregate 'agg2' offers "
            "'1'; aggregate 'agg3' offers '2'; and 2 more",
            "key 'ssd': flavor wants 'nvme', other values are offered",
        ),
        (
            {"ssd": "nvme"},
            [{}],
            "key 'ssd': flavor wants 'nvme', no aggregate of the host has the key",
            "key 'ssd': flavor wants 'nvme', no aggregate of the host has the key",
        ),
        (
            {},
            [{"licence": "yes"} | FORCED],
            "key 'licence': forced aggregate 'agg1' wants 'yes', flavor does not have the key",
            "key 'licence': forced aggregate 'agg1' wants 'yes', flavor does not have the key",
        ),
        (
            {"licence": "no"},
            [{"licence": "!"} | FORCED, {"licence": "no"}],
            "key 'licence': flavor wants 'no', aggregate 'agg1' offers '!', which forbids the key",
            "key 'licence': flavor wants 'no', aggregate 'agg1' offers '!', which forbids the key",
        ),
        (
            {"licence": "no"},
            [{"licence": "<or>"} | FORCED, {"licence": "no"}],
            "key 'licence': flavor wants 'no', value of forced aggregate 'agg1' is malformed: "
            "'<or>': '<or>' is not followed by a value; write '<or> a <or> b'",
            "key 'licence': flavor wants 'no', value of forced aggregate 'agg1' is malformed: "
            "'<or>': '<or>' is not followed by a value; write '<or> a <or> b'",
        ),
        (
            {"a": ">= 4"},
            [{"a": "s> x"} | FORCED],
            "key 'a': flavor wants '>= 4', aggregate 'agg1' offers 's> x' (operators that "
            "cannot be compared count as incompatible)",
            "key 'a': flavor wants '>= 4', aggregate 'agg1' offers 's> x' (operators that "
            "cannot be compared count as incompatible)",
        ),
        (
            {"a": ">= 4"},
            [{"a": "s> x"} | FORCED, {"a": "2"}],
            "key 'a': flavor wants '>= 4', aggregate 'agg1' offers 's> x' (operators that "
            "cannot be compared count as incompatible); aggregate 'agg2' offers '2'",
            "key 'a': flavor wants '>= 4', other values are offered (operators that "
            "cannot be compared count as incompatible)",
        ),
    ],
)
def test_rejection_has_reason_and_cause(
    flavor: Any, aggregates: Any, reason: Any, cause: Any
) -> None:
    found = verdict(flavor, *aggregates)
    assert found.reason == reason
    assert found.cause == cause


FORBIDS = "offers '!', which forbids the key"
MALFORMED = "is malformed: '<or>': '<or>' is not followed by a value; write '<or> a <or> b'"


@pytest.mark.parametrize(
    ("wanted", "aggregates", "cause"),
    [
        # Each aggregate that cancels the others' values is named.
        (
            "1",
            [{"a": "<or>"} | FORCED, {"a": "!"} | FORCED, {"a": "1"}],
            f"value of forced aggregate 'agg1' {MALFORMED}; aggregate 'agg2' {FORBIDS}",
        ),
        # A flavor that wants absence is rejected by the aggregate that has the key.
        ("~", [{"a": "!"} | FORCED, {"a": "1"}], "aggregate 'agg2' offers '1'"),
        ("!", [{"a": "~"} | FORCED, {"a": "1"} | FORCED], "aggregate 'agg2' offers '1'"),
        (
            "<or> 2 <or> ~",
            [{"a": "!"} | FORCED, {"a": "1"}],
            f"aggregate 'agg1' {FORBIDS}; aggregate 'agg2' offers '1'",
        ),
        ("<or> 2 <or> ~", [{"a": "~"} | FORCED, {"a": "1"}], "aggregate 'agg2' offers '1'"),
        # Two spellings of a key in one aggregate count as one aggregate.
        (
            "1",
            [{"a": "2", SCOPE + "a": "3"} | FORCED],
            "aggregate 'agg1' offers '2'; aggregate 'agg1' offers '3'",
        ),
        ("1", [{"a": "2"}, {"a": "3"}], "other values are offered"),
    ],
)
def test_cause_names_the_decisive_aggregates(wanted: Any, aggregates: Any, cause: Any) -> None:
    found = verdict({"a": wanted}, *aggregates)
    prefix, message = found.cause.removeprefix("key 'a': flavor wants "), cause
    assert prefix.partition(", ")[2] == message


@pytest.mark.parametrize(
    ("flavor", "aggregate", "message"),
    [
        ({"a": ">= many"}, {"a": "1"}, "flavor's value is malformed: '>= many'"),
        ({"n": ">=8"}, {"n": "32"}, "(note that '>=8' is taken literally"),
        ({}, {"n": ">=8"} | FORCED, "(note that '>=8' is taken literally"),
        (
            {"a": "1"},
            {"b": "<or>", "a": "1"} | FORCED,
            "value of forced aggregate 'agg1' is malformed: '<or>'",
        ),
        (
            {"hw:a": "<or>", "b": "1"},
            {"b": "1", SCOPE + "hw:a": "1"} | FORCED,
            "flavor's value is malformed: '<or>'",
        ),
    ],
)
def test_rejection_quotes_malformed_and_doubtful_values(
    flavor: Any, aggregate: Any, message: Any
) -> None:
    assert message in verdict(flavor, aggregate).reason


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("true", True),
        (" TRUE ", True),
        ("1", True),
        ("t", True),
        ("y", True),
        ("Yes", True),
        ("on", True),
        ("false", False),
        ("0", False),
        ("off", False),
        ("n", False),
        ("no", False),
        ("f", False),
        ("", None),
        ("2", None),
        ("perhaps", None),
    ],
)
def test_flag_reads_words_for_true_and_false(text: Any, value: Any) -> None:
    assert flag(text) is value


def test_warning_names_the_key_and_the_fault() -> None:
    warnings: list[str] = []
    judge = Judge(content({"a": ">= many"}), IGNORED, warnings.append)
    judge.bits({"b": "<or>", "force_metadata_check": "true"}, Aggregate({}, "rack"))
    judge.bits({"force_metadata_check": "perhaps"}, Aggregate({}, "room"))
    judge.bits({"force_metadata_check": "perhaps"})
    assert "extra spec 'a' cannot be satisfied: '>= many': 'many' is not" in warnings[0]
    assert "Aggregate 'rack' is forced, but its key 'b' cannot be satisfied: '<or>'" in warnings[1]
    assert (
        "Aggregate 'room' is not forced: invalid 'force_metadata_check' = 'perhaps'" in warnings[2]
    )
    assert "An aggregate is not forced: invalid 'force_metadata_check'" in warnings[3]
    assert len(warnings) == 4


@pytest.mark.parametrize("value", [1, 1.5, True, None, ["x"], {"y": 1}])
def test_values_that_are_not_text_are_read_as_text(value: Any) -> None:
    text = str(value)
    passes = value is not None
    assert verdict({"a": f"s== {text.split(maxsplit=1)[0]}"}, {"a": value}).passed is (
        passes and " " not in text
    )
    assert verdict({"a": value}, {"a": text.replace(",", "")}).passed
    assert verdict({"a": "*"}, {"a": value} | FORCED).passed is passes


def test_values_equal_as_numbers_differ_as_text() -> None:
    judge = Judge(content({"a": "1"}))
    assert judge.passes(judge.bits({"a": "1"}))
    assert judge.passes(judge.bits({"a": 1}))
    assert not judge.passes(judge.bits({"a": True}))
    assert judge.passes(judge.bits({"a": 1}))
