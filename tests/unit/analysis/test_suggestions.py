"""Possible typos that explain rejections."""

from typing import Any

import pytest

from steelyard.analysis.suggestions import Suggestions, told
from steelyard.cloud import Cloud, Host
from steelyard.scheduler import Decision, FilterScheduler, NoValidHost
from support.analysis.small_clouds import FORCED, TRAIT, cloud


def decided(described: Cloud, conf: Any, flavor: str = "f") -> tuple[Suggestions, Decision]:
    """Return the suggestions for a cloud and the decision on a server of the flavor."""
    scheduler = FilterScheduler(described, conf)
    try:
        (decision,) = scheduler.select(scheduler.request(flavor)).decisions
    except NoValidHost as error:
        decision = error.decision
    return Suggestions(scheduler.cloud, scheduler.filters.values()), decision


def lines(described: Cloud, conf: Any, flavor: str = "f") -> dict[str, list[str]]:
    """Return the possible typos of each rejected host as text."""
    suggestions, decision = decided(described, conf, flavor)
    found = suggestions.by_host(decision.request.flavor, decision.verdicts)
    return {host: told(typos) for host, typos in found.items()}


@pytest.mark.parametrize(
    ("aggregates", "flavors", "line"),
    [
        (
            {"a": {"ssd": "nvme"}},
            {"f": {"ssd": "nvm"}},
            "no aggregate has the value 'nvm'; did you mean 'nvme'?",
        ),
        (
            {"a": {"ssd": "nvme"}},
            {"f": {"sdd": "nvme"}},
            "no aggregate has the key 'sdd'; did you mean 'ssd'?",
        ),
        (
            {"a": {"ssd": "nvme"}},
            {"f": {"aggregate_instance_extra_specs:sdd": "nvme"}},
            "no aggregate has the key 'sdd'; did you mean 'ssd'?",
        ),
        (
            {},
            {"f": {f"trait:{TRAIT}_": "required"}},
            f"no host has the trait '{TRAIT}_'; did you mean '{TRAIT}'?",
        ),
        (
            {"a": {"ssd": "NVMe"}},
            {"f": {"ssd": "nvme"}},
            "no aggregate has the value 'nvme'; did you mean 'NVMe'?",
        ),
        (
            {"host": {"ssd": "NVMe"}, "else": {"ssd": "nvme"}},
            {"f": {"ssd": "nvme"}},
            "aggregate 'host', key 'ssd': no flavor has the value 'NVMe'; did you mean 'nvme'?",
        ),
        (
            {"host": {"sdd": "nvme"}, "else": {"ssd": "nvme"}},
            {"f": {"ssd": "nvme"}},
            "aggregate 'host', key 'sdd': no flavor has the key 'sdd'; did you mean 'ssd'?",
        ),
        (
            {"host": {**FORCED, "sdd": "nvme", "ssd": "nvme"}},
            {"f": {"ssd": "nvme"}},
            "aggregate 'host', key 'sdd': no flavor has the key 'sdd'; did you mean 'ssd'?",
        ),
        (
            {"host": {**FORCED, "ssd": "nvme"}},
            {"f": {"sdd": "<or> nvme <or> ~"}},
            "no aggregate has the key 'sdd'; did you mean 'ssd'?",
        ),
        (
            {"host": {**FORCED, "ssd": "nvme"}},
            {"f": {"aggregate_instance_extra_spec:ssd": "nvme"}},
            "unknown namespace 'aggregate_instance_extra_spec', so the key has no effect; did you "
            "mean 'aggregate_instance_extra_specs'?",
        ),
    ],
)
def test_rejection_by_a_possible_typo_has_a_suggestion(
    conf: Any, aggregates: Any, flavors: Any, line: str
) -> None:
    hosts = {name: Host(name, 8, 8192, 80, frozenset({TRAIT})) for name in ("host", "else")}
    described = cloud(aggregates, flavors, **hosts)
    assert line in lines(described, conf)["host"]


@pytest.mark.parametrize(
    ("aggregates", "flavors"),
    [
        ({"a": {"ssd": "sata"}}, {"f": {"ssd": "nvme"}}),
        ({"a": {"rack": "r"}}, {"f": {"ssd": "nvme"}}),
        # The possible typo is in another flavor, or in an aggregate of other hosts.
        ({"a": {"ssd": "nvme"}}, {"f": {"ssd": "sata"}, "other": {"ssd": "nvm"}}),
        (
            {"else": {"ssd": "NVMe"}, "third": {"ssd": "nvme"}, "host": {"ssd": "sata"}},
            {"f": {"ssd": "nvme"}},
        ),
        # The flavor does not want the word that was possibly meant.
        ({"a": {"ssd": "NVMe"}}, {"f": {"ssd": "optane"}, "other": {"ssd": "nvme"}}),
        # Other keys do not explain the rejection.
        ({"a": {"ssd": "sata", "gpu": "a100"}}, {"f": {"ssd": "nvme", "gqu:x": "a100"}}),
        ({}, {"f": {"resources:VCPU": "99"}}),
    ],
)
def test_rejection_for_other_causes_has_no_suggestion(
    conf: Any, aggregates: Any, flavors: Any
) -> None:
    hosts = {name: Host(name, 8, 8192, 80) for name in ("host", "else", "third")}
    described = cloud(aggregates, flavors, **hosts)
    _, decision = decided(described, conf)
    assert "host" in {host.host for _, host, _ in decision.verdicts}
    assert "host" not in lines(described, conf)


def test_causes_and_reasons_have_the_suggestions_of_their_hosts(conf: Any) -> None:
    hosts = {name: Host(name, 8, 8192, 80) for name in ("a", "b", "c")}
    aggregates = {name: {"ssd": word} for name, word in [("a", "NVMe"), ("b", "n-vme"), ("c", "x")]}
    suggestions, decision = decided(cloud(aggregates, {"f": {"ssd": "nvme"}}, **hosts), conf)
    name = "AggregateInstanceTypeFilter"
    texts = {
        host: f"key 'ssd': flavor wants 'nvme', aggregate '{host}' offers '{aggregates[host]['ssd']}'"
        for host in hosts
    }
    flavor = decision.request.flavor
    for found in (
        suggestions.by_cause(flavor, decision.verdicts),
        suggestions.by_reason(flavor, decision.verdicts),
    ):
        # The value of the flavor is offered nowhere, so the flavor possibly has the typo.
        assert set(found) == {(name, text) for text in texts.values()}
        for typos in found.values():
            assert [each.details["suggestions"] for each in typos] == [["NVMe", "n-vme"]]


def test_suggestions_of_ignored_keys_are_left_out(configured: Any) -> None:
    described = cloud({"a": {"ssd": "nvme"}}, {"f": {"ssd": "nvm"}})
    assert lines(described, configured("force_check_ignored_keys = ssd")) == {}
    without_filter = configured("enabled_filters = TraitsFilter")
    assert lines(described, without_filter) == {}


def test_flavor_that_the_cloud_lacks_has_no_suggestions(conf: Any) -> None:
    described = cloud({"a": {"ssd": "nvme"}}, {"f": {"ssd": "nvm"}})
    _, decision = decided(described, conf)
    other = FilterScheduler(Cloud(described.hosts, described.aggregates), conf)
    assert (
        Suggestions(other.cloud, other.filters.values()).by_host(
            decision.request.flavor, decision.verdicts
        )
        == {}
    )


def test_told_typos_are_limited_to_three(conf: Any) -> None:
    hosts = {"host": Host("host", 8, 8192, 80), "else": Host("else", 8, 8192, 80)}
    aggregates = {word: {"ssd": word} for word in ("NVMe", "NVME", "nv-me", "n_vme", "Nvme")}
    described = cloud({"else": {"ssd": "nvme"}, **aggregates}, {"f": {"ssd": "nvme"}}, **hosts)
    # Every aggregate but "else" has both hosts.
    *shown, last = lines(described, conf)["host"]
    assert len(shown) == 3
    assert (
        shown[0]
        == "aggregate 'NVMe', key 'ssd': no flavor has the value 'NVMe'; did you mean 'nvme'?"
    )
    assert last == "and 2 more possible typos"
