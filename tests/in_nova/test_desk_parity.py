"""What steelyard check says of Nova is so in the Nova that is installed."""

import fnmatch
from typing import Any

import pytest
from nova import exception
from nova.api.validation.extra_specs import validators
from nova.scheduler import host_manager, weights
from oslo_config import cfg

from steelyard.desk.checks import check
from steelyard.desk.checks.novas_keys import HOST_ATTRIBUTES, VALIDATED
from steelyard.scheduler import Aggregate, Cloud, Flavor, Host

# What a host has only once it has been updated from the database.
SET_LATER = {"service", "stats"}


def test_the_attributes_of_novas_hosts() -> None:
    state = host_manager.HostState("host", "node", "00000000-0000-4000-8000-000000000000")
    there = {name for name in dir(state) if not name.startswith("_")}
    assert there <= HOST_ATTRIBUTES
    # Older Novas have fewer; none is there that no Nova has.
    assert HOST_ATTRIBUTES - there <= SET_LATER | {"allocation_candidates"}


def keys() -> list[str]:
    """One key for each extra spec that Nova knows, with a name where it takes one."""
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
def test_what_the_api_refuses(value: str) -> None:
    tried = [key for key in keys() if any(fnmatch.fnmatchcase(key, p) for p in VALIDATED)]
    assert len(tried) > 30
    assert [key for key in tried if accepted(key, value)] == []


def told(key: str, value: str) -> bool:
    flavor = Flavor("f", 1, 1, 1, {key: value})
    findings = check(Cloud({"h": Host("h", 9, 9, 9)}, {}, {"f": flavor}), cfg.ConfigOpts())
    return any(found.check == "refused-by-nova" for found in findings)


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
def test_what_the_api_takes(key: str, value: str) -> None:
    assert accepted(key, value)
    assert not told(key, value)


@pytest.mark.parametrize(
    "key", ["hw:cpu_policy", "trait:CUSTOM_A", "quota:cpu_shares", "group_policy"]
)
def test_what_is_refused_is_told(key: str) -> None:
    assert not accepted(key, "<or> a <or> ~")
    assert told(key, "<or> a <or> ~")


@pytest.mark.parametrize("value", ["*", "<or> a <or> ~", ">= 4"])
def test_what_is_told_is_refused_and_nothing_else_is(value: str) -> None:
    assert [key for key in keys() if told(key, value) is accepted(key, value)] == []


def multipliers() -> list[str]:
    """The metadata key of each of Nova's weighers that has one."""
    names = {
        constant
        for weigher in weights.all_weighers()
        for constant in weigher.weight_multiplier.__code__.co_consts
        if isinstance(constant, str) and constant.endswith("_multiplier")
    }
    return sorted(names)


def test_the_multipliers_of_novas_weighers_are_its_own_affair() -> None:
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
        assert [each.where for each in found] == [f"aggregate 'a', key {key!r}"]
