"""What a flavor and an image ask of Placement, read as Nova reads them."""

import collections
import re
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from steelyard import errors
from steelyard.attributes import read
from steelyard.traits.query import TraitQuery
from steelyard.traits.requests import CandidatesRequest, RequestGroup, check_class, whole_number

GROUP_POLICY = "group_policy"

_KEY = re.compile(r"(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.*)", re.DOTALL)


class _Spec(NamedTuple):
    """An extra spec, or a property of an image, that asks something of Placement."""

    key: str
    kind: str
    suffix: str
    name: str
    value: str


def candidates_request(flavor: object, image: object = None) -> CandidatesRequest:
    """The request for what a server of the flavor, made from the image, needs."""
    extra_specs = _mapping(_field(flavor, "extra_specs"))
    specs = list(_specs(extra_specs))
    groups = {}
    amounts = _amounts(specs)
    amounts.setdefault("", {}).update(_of_the_flavor(flavor, set().union(*amounts.values())))
    for suffix in dict.fromkeys(["", *(spec.suffix for spec in specs)]):
        traits = _traits(spec for spec in specs if spec.suffix == suffix)
        if not suffix:
            traits = _agreed(traits, image_traits(image))
        # Zero says that nothing of the kind is wanted, whatever the flavor itself says.
        wanted = {name: amount for name, amount in amounts.get(suffix, {}).items() if amount}
        if suffix and traits and not wanted:
            keys = ", ".join(repr(spec.key) for spec in specs if spec.suffix == suffix)
            raise errors.InvalidQuery(
                f"{keys}: there is no 'resources{suffix}:…', and each group asks for resources"
            )
        if wanted or traits:
            groups[suffix] = RequestGroup(wanted, traits)
    policy = extra_specs.get(GROUP_POLICY)
    try:
        return CandidatesRequest(groups, None if policy is None else str(policy))
    except errors.InvalidQuery as error:
        raise type(error)(f"the flavor's extra specs: {error}") from None


def flavor_amounts(flavor: object) -> dict[str, int]:
    """How much of each resource class a server of the flavor uses of its host, all groups added up.

    Extra specs that are malformed count for nothing: nobody else can read them either. With the
    policy ``dedicated``, virtual CPUs are such as nobody shares.
    """
    extra_specs = _mapping(_field(flavor, "extra_specs"))
    try:
        stated = _amounts(_specs(extra_specs))
    except errors.InvalidQuery:
        stated = {}
    used = collections.Counter(dict(_of_the_flavor(flavor, set().union(*stated.values()))))
    for amounts in stated.values():
        used.update(amounts)
    if extra_specs.get("hw:cpu_policy") == "dedicated":
        used["PCPU"] += used.pop("VCPU", 0)
    return {name: amount for name, amount in used.items() if amount}


def flavor_traits(flavor: object) -> TraitQuery:
    """What the flavor's ``trait:`` extra specs ask for, those without a suffix."""
    specs = _specs(_mapping(_field(flavor, "extra_specs")))
    return _traits(spec for spec in specs if not spec.suffix)


def image_traits(image: object) -> TraitQuery:
    """What the image's ``trait:`` properties ask for; an image can require, not forbid."""
    properties = _field(image, "properties")
    if not isinstance(properties, Mapping):  # Nova's, which has read them already
        return TraitQuery(required=read(properties, "traits_required") or frozenset())
    specs = [spec for spec in _specs(properties) if spec.kind == "trait"]
    for spec in specs:
        if spec.suffix or spec.value != "required":
            raise errors.InvalidTrait(
                f"image property {spec.key!r} = {spec.value!r}: an image can only say "
                f"'trait:{spec.name}' = 'required'"
            )
    return _traits(specs)


def _agreed(flavor: TraitQuery, image: TraitQuery) -> TraitQuery:
    try:
        return flavor & image
    except errors.InvalidTrait as error:
        raise errors.InvalidTrait(f"the flavor and the image disagree: {error}") from None


def _specs(mapping: Mapping[Any, Any]) -> Iterator[_Spec]:
    for key, value in mapping.items():
        match = _KEY.fullmatch(str(key))
        if match:
            kind, suffix, name = match.groups()
            yield _Spec(str(key), kind, suffix or "", name, str(value))


def _traits(specs: Iterable[_Spec]) -> TraitQuery:
    query = TraitQuery()
    for spec in specs:
        if spec.kind == "trait":
            try:
                query &= _trait(spec)
            except errors.InvalidTrait as error:
                raise errors.InvalidTrait(f"{spec.key!r} = {spec.value!r}: {error}") from None
    return query


def _trait(spec: _Spec) -> TraitQuery:
    if spec.value == "required":
        return TraitQuery(required=frozenset([spec.name]))
    if spec.value == "forbidden":
        return TraitQuery(forbidden=frozenset([spec.name]))
    raise errors.InvalidTrait("a trait is 'required' or 'forbidden', and nothing else")


def _amounts(specs: Iterable[_Spec]) -> dict[str, dict[str, int]]:
    """How much of each resource class the extra specs ask for, by suffix."""
    amounts: dict[str, dict[str, int]] = {}
    for spec in specs:
        if spec.kind == "resources":
            check_class(spec.name)
            amount = whole_number(spec.value)
            if amount is None or amount < 0:
                raise errors.InvalidQuery(
                    f"{spec.key!r} = {spec.value!r}: an amount is a whole number from 0 on"
                )
            amounts.setdefault(spec.suffix, {})[spec.name] = amount
    return amounts


def _of_the_flavor(flavor: object, stated: set[str]) -> Iterator[tuple[str, int]]:
    """What the flavor itself has of the classes that its extra specs do not speak of."""
    if not {"VCPU", "PCPU"} & stated:
        yield "VCPU", _size(flavor, "vcpus")
    if "MEMORY_MB" not in stated:
        yield "MEMORY_MB", _size(flavor, "memory_mb")
    if "DISK_GB" not in stated:
        swap_gb = -(-_size(flavor, "swap") // 1024)  # of a part, the whole
        yield "DISK_GB", _size(flavor, "root_gb") + _size(flavor, "ephemeral_gb") + swap_gb


def _size(flavor: object, name: str) -> int:
    value = _field(flavor, name)
    size = whole_number(str(value or 0))  # Nova's API gives an empty text for no swap
    if size is None or size < 0:
        raise errors.InvalidQuery(
            f"the flavor's {name} is {value!r:.80}; it must be a whole number from 0 on"
        )
    return size


def _field(thing: object, name: str) -> Any:
    """A field of an object, or of what was read from JSON."""
    return thing.get(name) if isinstance(thing, Mapping) else read(thing, name)


def _mapping(value: object) -> Mapping[Any, Any]:
    return value if isinstance(value, Mapping) else {}
