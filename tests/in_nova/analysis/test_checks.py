"""The checks' knowledge of Nova, compared with the installed Nova."""

import fnmatch
from typing import Any

import pytest
from nova import exception
from nova.api.validation.extra_specs import validators
from nova.scheduler import host_manager, weights
from oslo_config import cfg

from steelyard.analysis.checks import check
from steelyard.analysis.checks.novas_keys import HOST_ATTRIBUTES, VALIDATED
from steelyard.cloud import Aggregate, Cloud, Flavor, Host
from steelyard.findings import Subject, SubjectKind

# Attributes that a host gets when it is updated from the database.
SET_LATER = {"service", "stats"}


def test_host_attributes_match_nova() -> None:
    state = host_manager.HostState("host", "node", "00000000-0000-4000-8000-000000000000")
    there = {name for name in dir(state) if not name.startswith("_")}
    assert there <= HOST_ATTRIBUTES
    # Older versions of Nova lack allocation_candidates.
    assert HOST_ATTRIBUTES - there <= SET_LATER | {"allocation_candidates"}


def keys() -> list[str]:
    """Return one key for each extra spec that Nova knows, with its placeholders filled in."""
    found = []
    for validator in validators.VALIDATORS.values():
        name = validator.name
        for placeholder, value in (
            ("{num}", "1"),
            ("{id}", "1"),
            ("{group}", "1"),
            ("{resource}", "CUSTOM_A"),
            ("{trait}", "CUSTOM_A"),
        ):
            name = name.replace(placeholder, value)
        if "{" not in name:
            found.append(name)
    return sorted(found)


def accepted(key: str, value: str) -> bool:
    try:
        validators.validate(key, value)
    except exception.ValidationError:
        return False
    return True


@pytest.mark.parametrize("value", ["*", "~", "!", "<or> a <or> ~", ">= 4", "s== a"])
def test_api_rejects_sentinels_in_validated_keys(value: str) -> None:
    tried = [key for key in keys() if any(fnmatch.fnmatchcase(key, p) for p in VALIDATED)]
    assert len(tried) > 30
    assert [key for key in tried if accepted(key, value)] == []


def reported(keys: list[str], value: str) -> set[str]:
    """Return the keys that are reported if each is in a flavor with this value."""
    flavors = {key: Flavor(key, 1, 1, 1, {key: value}) for key in keys}
    findings = check(Cloud({"h": Host("h", 9, 9, 9)}, {}, flavors), cfg.ConfigOpts())
    return {found.subject.name for found in findings if found.check == "refused-by-nova"}


@pytest.mark.parametrize(
    "key",
    [
        "ssd",
        "aggregate_instance_extra_specs:ssd",
        "acme:ssd",
        "aggregate_instance_extra_specs:hw:x",
    ],
)
@pytest.mark.parametrize("value", ["*", "~", "!", "<or> a <or> ~", ">= 4"])
def test_check_reports_nothing_that_api_accepts(key: str, value: str) -> None:
    assert accepted(key, value)
    assert reported([key], value) == set()


@pytest.mark.parametrize(
    "key", ["hw:cpu_policy", "trait:CUSTOM_A", "quota:cpu_shares", "group_policy"]
)
def test_check_reports_value_that_api_rejects(key: str) -> None:
    assert not accepted(key, "<or> a <or> ~")
    assert reported([key], "<or> a <or> ~") == {key}


@pytest.mark.parametrize("value", ["*", "<or> a <or> ~", ">= 4"])
def test_check_reports_exactly_values_that_api_rejects(value: str) -> None:
    assert reported(keys(), value) == {key for key in keys() if not accepted(key, value)}


def multipliers() -> list[str]:
    """Return the metadata keys of the multipliers of Nova's weighers."""
    names = {
        constant
        for weigher in weights.all_weighers()
        for constant in weigher.weight_multiplier.__code__.co_consts
        if isinstance(constant, str) and constant.endswith("_multiplier")
    }
    return sorted(names)


def test_check_skips_multipliers_of_nova_weighers() -> None:
    assert len(multipliers()) > 5
    for key in multipliers():
        metadata = {"force_metadata_check": "true", key: "2.0"}
        flavors = {"f": Flavor("f", 1, 1, 1)}
        cloud = Cloud({"h": Host("h", 9, 9, 9)}, {"a": Aggregate("a", metadata, ("h",))}, flavors)
        assert check(cloud, cfg.ConfigOpts()) == []
        conf: Any = cfg.ConfigOpts()
        conf([], project="steelyard", default_config_files=[], default_config_dirs=[])
        from steelyard import conf as options

        options.register(conf)
        conf.set_override("force_check_ignored_keys", [], group=options.GROUP)
        found = [each for each in check(cloud, conf) if each.check == "key-nova-reads"]
        assert [each.subject for each in found] == [Subject(SubjectKind.AGGREGATE, "a", key)]
