"""Resources and traits that flavors and images request from Placement, as Nova reads them."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from steelyard import errors
from steelyard.attributes import read
from steelyard.resources import (
    RequestKey,
    extra_specs_of,
    field,
    flavor_sizes,
    stated_amounts,
)
from steelyard.traits import arguments
from steelyard.traits.query import TraitQuery, check_name
from steelyard.traits.request_group import RequestGroup

GROUP_POLICY = "group_policy"

_KEYS_TO_VALUES = "keys to values, such as {'trait:HW_GPU': 'required'}"


class _Spec(NamedTuple):
    """An extra spec, or a property of an image, that requests something from Placement."""

    key: str
    kind: str
    suffix: str
    name: str
    value: str


def groups_and_policy(
    flavor: object, image: object = None
) -> tuple[dict[str, RequestGroup], str | None]:
    """Return the groups of a request for the flavor and the image, and its group policy.

    Raises InvalidQuery if the flavor or the image is malformed, or if they contradict each other.
    """
    if flavor is None or isinstance(flavor, str | bytes):
        raise arguments.unexpected("flavor", flavor, "a flavor")
    if not (image is None or isinstance(image, Mapping) or _has(image, "properties")):
        raise arguments.unexpected("image", image, "an image")
    extra_specs = field(flavor, "extra_specs")
    if extra_specs is None:
        extra_specs = {}
    arguments.mapping("flavor.extra_specs", extra_specs, _KEYS_TO_VALUES)
    specs = _by_suffix(extra_specs)
    amounts = {"": {}, **stated_amounts(extra_specs)}
    amounts[""].update(flavor_sizes(flavor, set().union(*amounts.values())))
    groups = {}
    for suffix, each in specs.items():
        traits = _traits(each)
        if not suffix:
            traits = _agreed(traits, image_traits(image))
        # An amount of 0 requests none of the resource, not even the flavor's own amount.
        wanted = {name: amount for name, amount in amounts.get(suffix, {}).items() if amount}
        if suffix and traits and not wanted:
            keys = ", ".join(repr(spec.key) for spec in each)
            raise errors.InvalidQuery(
                f"{keys}: missing 'resources{suffix}:…'; each group must request a resource"
            )
        if wanted or traits:
            groups[suffix] = RequestGroup(wanted, traits)
    policy = extra_specs.get(GROUP_POLICY)
    return groups, None if policy is None else str(policy)


def flavor_traits(flavor: object) -> TraitQuery:
    """Return the query in the flavor's ``trait:`` extra specs without a suffix."""
    specs = _specs(extra_specs_of(flavor))
    return _traits(spec for spec in specs if not spec.suffix)


def image_traits(image: object) -> TraitQuery:
    """Return the query in the image's ``trait:`` properties.

    An image can only require traits: anything else raises InvalidTrait.
    """
    properties = field(image, "properties")
    if properties is None:
        return TraitQuery()
    if not isinstance(properties, Mapping) and _has(properties, "traits_required"):
        # Nova's own object, which has the traits parsed.
        return TraitQuery(required=read(properties, "traits_required") or frozenset())
    arguments.mapping("image.properties", properties, _KEYS_TO_VALUES)
    specs = [spec for spec in _specs(properties) if spec.kind == "trait"]
    for spec in specs:
        if spec.suffix or spec.value != "required":
            raise errors.InvalidTrait(
                f"invalid image property {spec.key!r} = {spec.value!r}: expected "
                f"'trait:{spec.name}' = 'required'",
                spec.value,
            )
    return _traits(specs)


def _has(thing: object, name: str) -> bool:
    """Return whether the thing is an object of Nova's, or has an attribute of this name."""
    return hasattr(thing, "obj_attr_is_set") or hasattr(thing, name)


def _agreed(flavor: TraitQuery, image: TraitQuery) -> TraitQuery:
    try:
        return flavor & image
    except errors.InvalidTrait as error:
        raise error.named("the flavor and the image disagree") from None


def _specs(mapping: Mapping[Any, Any]) -> Iterator[_Spec]:
    for key, value in mapping.items():
        found = RequestKey.parse(key)
        if found:
            yield _Spec(str(key), *found, str(value))


def _by_suffix(extra_specs: Mapping[Any, Any]) -> dict[str, list[_Spec]]:
    """Return the extra specs for Placement by suffix, those without a suffix first."""
    found: dict[str, list[_Spec]] = {"": []}
    for spec in _specs(extra_specs):
        found.setdefault(spec.suffix, []).append(spec)
    return found


def _traits(specs: Iterable[_Spec]) -> TraitQuery:
    """Return the trait query of extra specs that have the same suffix."""
    named: dict[str, list[str]] = {"required": [], "forbidden": []}
    for spec in specs:
        if spec.kind == "trait":
            with arguments.naming(f"{spec.key!r} = {spec.value!r}"):
                if spec.value not in named:
                    raise errors.InvalidTrait("expected 'required' or 'forbidden'", spec.value)
                check_name(spec.name)
            named[spec.value].append(spec.name)
    return TraitQuery(frozenset(named["required"]), frozenset(named["forbidden"]))
