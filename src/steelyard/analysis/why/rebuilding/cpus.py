"""The CPUs that a flavor and an image request from Placement, by their CPU policies."""

import dataclasses

from steelyard.analysis.why.rebuilding.stated import Origin, RequestFails, Stated, is_true, joined

HYPERTHREADING = "HW_CPU_HYPERTHREADING"

_MOST_CPUS = 2**16

_DEDICATED, _SHARED, _MIXED = _POLICIES = ("dedicated", "shared", "mixed")
_PREFER, _ISOLATE, _REQUIRE = _THREAD_POLICIES = ("prefer", "isolate", "require")


@dataclasses.dataclass(frozen=True, slots=True)
class CPUs:
    """The amounts and the trait that CPU policies add to a request."""

    amounts: dict[str, tuple[int, Origin]]
    """The amounts that replace those of the flavor, by resource class."""
    hyperthreading: tuple[bool, Origin] | None
    """Whether hyperthreading is required, or else forbidden; None for neither."""
    falls_back: bool
    """Whether Nova sends a second request, with VCPU instead of PCPU."""


def cpus(stated: Stated) -> CPUs:
    """Return the CPUs that the flavor and the image request.

    Raises RequestFails if they are malformed or contradict each other.
    """
    policy = _policy(stated)
    amounts: dict[str, tuple[int, Origin]] = {}
    if policy in (_DEDICATED, _MIXED):
        origin = stated.origin("cpu_policy")
        vcpus = stated.wanted.flavor.vcpus
        dedicated = vcpus
        if policy == _MIXED:
            masks = _dedicated(stated), _realtime(stated)
            dedicated = len(masks[0] or masks[1] or ())
            amounts["VCPU"] = vcpus - dedicated, origin
        emulator = _emulator_threads(stated)
        if emulator == _ISOLATE:
            dedicated += 1
            origin = joined(origin, stated.spec("hw:emulator_threads_policy"))
        amounts["PCPU"] = dedicated, origin
    else:
        _emulator_threads(stated)
    return CPUs(amounts, _hyperthreading(stated), policy == _DEDICATED)


def _policy(stated: Stated) -> str | None:
    flavor, image = _each(stated, "cpu_policy", _POLICIES)
    forbidden = {_MIXED: (_DEDICATED,), _SHARED: (_MIXED, _DEDICATED)}
    if image in forbidden.get(flavor or "", ()):
        raise RequestFails(
            f"image property 'hw_cpu_policy' = {image!r} is forbidden by "
            f"{stated.spec('hw:cpu_policy').text} = {flavor!r}"
        )
    return flavor or image


def _hyperthreading(stated: Stated) -> tuple[bool, Origin] | None:
    flavor, image = _each(stated, "cpu_thread_policy", _THREAD_POLICIES)
    if flavor not in (None, _PREFER) and image and image != flavor:
        raise RequestFails(
            f"image property 'hw_cpu_thread_policy' = {image!r} is forbidden by "
            f"{stated.spec('hw:cpu_thread_policy').text} = {flavor!r}"
        )
    policy = flavor or image
    if policy not in (_ISOLATE, _REQUIRE):
        return None
    return policy == _REQUIRE, stated.origin("cpu_thread_policy")


def _each(stated: Stated, key: str, allowed: tuple[str, ...]) -> tuple[str | None, str | None]:
    """Return the values of the flavor and the image; raise RequestFails for an invalid one."""
    flavor, image = stated.both(key)
    for value, name, origin in (
        (flavor, f"hw:{key}", stated.spec),
        (image, f"hw_{key}", stated.image_property),
    ):
        if value and value not in allowed:
            raise RequestFails(
                f"invalid {origin(name).text} = {value!r}: expected one of "
                f"{', '.join(map(repr, allowed))}"
            )
    return flavor, image


def _emulator_threads(stated: Stated) -> str | None:
    key = "hw:emulator_threads_policy"
    value = stated.specs.get(key)
    if value and value not in ("share", _ISOLATE):
        raise RequestFails(
            f"invalid {stated.spec(key).text} = {value!r}: expected 'share' or 'isolate'"
        )
    return value or None


def _dedicated(stated: Stated) -> set[int] | None:
    """Return the dedicated CPUs in the mask of the flavor; None without a mask."""
    key = "hw:cpu_dedicated_mask"
    mask = stated.specs.get(key)
    if not mask:
        return None
    what = f"{stated.spec(key).text} = {mask!r}"
    found, there = _masked(mask, stated.wanted.flavor.vcpus, what)
    if not found or not there - found or not found <= there:
        raise RequestFails(f"invalid {what}: expected some of the flavor's vCPUs, but not all")
    return found


def _realtime(stated: Stated) -> set[int] | None:
    """Return the CPUs for realtime; None if the flavor does not request them."""
    if not is_true(stated.specs.get("hw:cpu_realtime", "")):
        return None
    flavor, image = stated.both("cpu_realtime_mask")
    mask = image or flavor
    there = set(range(stated.wanted.flavor.vcpus))
    what, found = f"{stated.spec('hw:cpu_realtime').text} without a mask", there
    if mask:
        what = f"{stated.origin('cpu_realtime_mask').text} = {mask!r}"
        found = _masked(mask, len(there), what)[0]
    if not found or not found <= there or (found == there and not _emulator_threads(stated)):
        raise RequestFails(f"invalid {what}: expected some of the flavor's vCPUs, but not all")
    return found


def _masked(mask: str, vcpus: int, what: str) -> tuple[set[int], set[int]]:
    """Return the CPUs that a mask such as ``0-3,^1`` names, and all CPUs of the flavor."""
    text = f"0-{vcpus - 1},{mask}" if mask.strip().startswith("^") else mask
    found, excluded = set[int](), set[int]()
    for rule in filter(None, map(str.strip, text.split(","))):
        chosen = excluded if rule.startswith("^") else found
        first, dash, last = rule.removeprefix("^").partition("-")
        try:
            start = int(first)
            end = int(last) if dash else start
        except ValueError:
            raise RequestFails(f"invalid {what}: expected CPUs such as '0-3,^1'") from None
        if start > end or end - start > _MOST_CPUS:
            raise RequestFails(f"invalid {what}: expected CPUs such as '0-3,^1'")
        chosen.update(range(start, end + 1))
    return found - excluded, set(range(vcpus))
