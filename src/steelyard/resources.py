"""Resource classes: the amounts that flavors use, and amounts as readable text."""

import collections
import contextlib
import re
from collections.abc import Callable, Container, Iterable, Iterator, Mapping
from typing import Any, NamedTuple

from steelyard import errors
from steelyard.attributes import read
from steelyard.text.wording import plain


class HostClass(NamedTuple):
    """A resource class that every host has."""

    field: str
    """The key in cloud files, and the prefix of host attributes such as ``ram_mb_used``."""

    kind: str
    """The readable name, such as ``vCPUs``."""

    allocation_ratio: str
    """The name of the option, and of the host attribute, for the allocation ratio."""


HOST_CLASSES = {
    "VCPU": HostClass("vcpus", "vCPUs", "cpu_allocation_ratio"),
    "MEMORY_MB": HostClass("ram_mb", "RAM", "ram_allocation_ratio"),
    "DISK_GB": HostClass("disk_gb", "disk", "disk_allocation_ratio"),
}
"""The resource classes that every host has, by name."""

STANDARD_CLASSES = frozenset(
    {
        "DISK_GB",
        "FPGA",
        "IPV4_ADDRESS",
        "MEMORY_MB",
        "MEM_ENCRYPTION_CONTEXT",
        "NET_BW_EGR_KILOBIT_PER_SEC",
        "NET_BW_IGR_KILOBIT_PER_SEC",
        "NET_PACKET_RATE_EGR_KILOPACKET_PER_SEC",
        "NET_PACKET_RATE_IGR_KILOPACKET_PER_SEC",
        "NET_PACKET_RATE_KILOPACKET_PER_SEC",
        "NUMA_CORE",
        "NUMA_MEMORY_MB",
        "NUMA_SOCKET",
        "NUMA_THREAD",
        "PCI_DEVICE",
        "PCPU",
        "PGPU",
        "SRIOV_NET_VF",
        "VCPU",
        "VGPU",
        "VGPU_DISPLAY_HEAD",
    }
)
"""The resource classes that every Placement has."""

FIELDS = {name: each.field for name, each in HOST_CLASSES.items()}

GREATEST = 2**31 - 1  # the greatest integer in Placement's tables

_DIGITS = len(str(GREATEST))
_RESOURCE_CLASS = re.compile(r"[A-Z0-9_]{1,255}")
_KEY = re.compile(r"(resources|trait)([a-zA-Z0-9_-]{1,64})?:(.*)", re.DOTALL)
MIB_PER_GIB = 1024


class RequestKey(NamedTuple):
    """The key of an extra spec for Placement, such as ``resources1:VCPU``."""

    kind: str
    """``resources`` or ``trait``."""

    suffix: str
    name: str

    @classmethod
    def parse(cls, key: object) -> "RequestKey | None":
        """Return the parts of the key; None if the key is not for Placement."""
        match = _KEY.fullmatch(str(key))
        return match and cls(match[1], match[2] or "", match[3])


class _StatedAmount(NamedTuple):
    suffix: str
    resource_class: str
    amount: int


def flavor_amounts(flavor: object) -> dict[str, int]:
    """Return the amount of each resource class that a server of the flavor uses on its host.

    The amounts of all suffixes are added up. Like Nova, this ignores each malformed ``resources``
    extra spec. With the CPU policy ``dedicated``, ``VCPU`` counts as ``PCPU``. Raises
    InvalidQuery if a size of the flavor itself is not a whole number.
    """
    extra_specs = extra_specs_of(flavor)
    stated = _by_suffix(_well_formed(extra_specs)).values()
    used = collections.Counter(dict(flavor_sizes(flavor, set().union(*stated))))
    for amounts in stated:
        used.update(amounts)
    if extra_specs.get("hw:cpu_policy") == "dedicated":
        used["PCPU"] += used.pop("VCPU", 0)
    return {name: amount for name, amount in used.items() if amount}


def stated_amounts(extra_specs: Mapping[Any, Any]) -> dict[str, dict[str, int]]:
    """Return the amounts of resource classes in ``resources`` extra specs, by suffix.

    Raises InvalidQuery if a resource class or an amount is malformed. An amount may be 0.
    """
    return _by_suffix(_stated(*item) for item in extra_specs.items())


def _well_formed(extra_specs: Mapping[Any, Any]) -> Iterator[_StatedAmount | None]:
    for key, value in extra_specs.items():
        with contextlib.suppress(errors.InvalidQuery):
            yield _stated(key, value)


def _stated(key: Any, value: Any) -> _StatedAmount | None:
    """Return the amount in an extra spec, or None if its key is not one of ``resources``."""
    found = RequestKey.parse(key)
    if not found or found.kind != "resources":
        return None
    check_class(found.name)
    amount = whole_number(str(value))
    if amount is None or amount < 0:
        raise errors.InvalidQuery(
            f"invalid amount {str(key)!r} = {str(value)!r}: expected a whole number, at least 0",
            str(value),
        )
    return _StatedAmount(found.suffix, found.name, amount)


def _by_suffix(stated: Iterable[_StatedAmount | None]) -> dict[str, dict[str, int]]:
    amounts: dict[str, dict[str, int]] = {}
    for each in stated:
        if each is not None:
            amounts.setdefault(each.suffix, {})[each.resource_class] = each.amount
    return amounts


def flavor_sizes(flavor: object, stated: set[str]) -> Iterator[tuple[str, int]]:
    """Yield the flavor's own amounts of the resource classes that are not in ``stated``.

    A stated ``PCPU`` also replaces the flavor's own vCPUs.
    """
    if not {"VCPU", "PCPU"} & stated:
        yield "VCPU", _size(flavor, "vcpus")
    if "MEMORY_MB" not in stated:
        yield "MEMORY_MB", _size(flavor, "memory_mb")
    if "DISK_GB" not in stated:
        parts = (_size(flavor, name) for name in ("root_gb", "ephemeral_gb", "swap"))
        yield "DISK_GB", flavor_disk(*parts)


def flavor_disk(root_gb: int, ephemeral_gb: int, swap_mb: int) -> int:
    """Return the disk in GiB that a server of a flavor uses on its host, as Nova counts it."""
    return root_gb + ephemeral_gb + -(-swap_mb // MIB_PER_GIB)  # swap is rounded up


def _size(flavor: object, name: str) -> int:
    value = field(flavor, name)
    size = whole_number(str(value or 0))  # Nova's API returns "" for no swap
    if size is None or size < 0:
        raise errors.InvalidQuery(
            f"invalid {name} {value!r:.80} of the flavor: expected a whole number, at least 0",
            value,
        )
    return size


def on_host(wanted: Mapping[str, int], there: Container[str]) -> Mapping[str, int]:
    """Return the wanted amounts, converted to the resource classes that the host has.

    A host without ``PCPU`` provides dedicated CPUs from ``VCPU``, as Nova does when no host has
    ``PCPU``.
    """
    if "PCPU" not in wanted or "PCPU" in there:
        return wanted
    others = {name: amount for name, amount in wanted.items() if name != "PCPU"}
    return {**others, "VCPU": others.get("VCPU", 0) + wanted["PCPU"]}


def whole_number(text: str) -> int | None:
    """Return the whole number that the text spells, or None.

    The text is read as ``int`` reads it. Numbers with more digits than GREATEST read as None; the
    result may still be greater than GREATEST, or negative.
    """
    try:
        return int(text) if len(text.strip().lstrip("0")) <= _DIGITS else None
    except ValueError:
        return None


def check_class(name: str) -> None:
    """Raise InvalidQuery unless this is the name of a resource class."""
    if not isinstance(name, str) or not _RESOURCE_CLASS.fullmatch(name):
        raise errors.InvalidQuery(
            f"invalid resource class {name!r:.80}: expected 1 to 255 characters of A-Z, 0-9 and _",
            name,
        )


def check_resource(name: str, amount: int) -> None:
    """Raise InvalidQuery unless this amount of the resource class can be requested."""
    check_class(name)
    if not is_amount(amount):
        raise errors.InvalidQuery(
            f"invalid amount {amount!r} of {name}: expected a whole number from 1 to {GREATEST}",
            amount,
        )


def is_amount(number: object) -> bool:
    """Return whether this is an amount that can be requested: an integer from 1 to GREATEST."""
    return type(number) is int and 1 <= number <= GREATEST


def field(thing: object, name: str) -> Any:
    """Return a field of an object or of a mapping; None if it is missing."""
    return thing.get(name) if isinstance(thing, Mapping) else read(thing, name)


def extra_specs_of(flavor: object) -> Mapping[Any, Any]:
    """Return the extra specs of a flavor, or an empty mapping."""
    value = field(flavor, "extra_specs")
    return value if isinstance(value, Mapping) else {}


def kind(resource_class: str) -> str:
    """Return the resource class's readable name: ``vCPUs``, ``RAM``, ``disk`` or its own name."""
    return found.kind if (found := HOST_CLASSES.get(resource_class)) else resource_class


class Quantity(NamedTuple):
    """A rounded amount: a number, and its unit or an empty text."""

    number: str
    unit: str

    def __str__(self) -> str:
        return f"{self.number} {self.unit}" if self.unit else self.number


def quantity(
    resource_class: str, amount: float, rounded: Callable[[float], int] | None = None
) -> Quantity:
    """Return the amount with its unit, if it has one: ``512 MiB``, ``1.5 GiB``, ``4``.

    RAM of 1 GiB and more has at most one decimal. With ``math.floor`` as ``rounded``, the text
    never overstates the amount; with ``math.ceil``, it never understates it.
    """
    if rounded is not None:
        amount = rounded(amount)
    if resource_class == "DISK_GB":
        return Quantity(plain(amount), "GiB")
    if resource_class != "MEMORY_MB":
        return Quantity(plain(amount), "")
    if abs(amount) < MIB_PER_GIB:
        return Quantity(plain(amount), "MiB")
    return Quantity(plain((rounded or round)(amount * 10 / MIB_PER_GIB) / 10), "GiB")


def described(resource_class: str, amount: float) -> str:
    """Return the amount with the name of the resource: ``1 vCPU``, ``32 GiB of RAM``."""
    number = quantity(resource_class, amount)
    if resource_class == "VCPU":
        return f"{number} vCPU{'' if amount == 1 else 's'}"
    of = "of " if resource_class in HOST_CLASSES else ""
    return f"{number} {of}{kind(resource_class)}"
