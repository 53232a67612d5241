"""A slow and plain version of AggregateInstanceTypeFilter to compare with."""

import fnmatch
from collections.abc import Iterable, Mapping, Sequence

from steelyard.aggregates import FORCE_KEY, SCOPE, flag
from steelyard.expressions import Expression

Metadata = Mapping[str, str]


def passes(flavor: Metadata, aggregates: Sequence[Metadata], ignored: Iterable[str]) -> bool:
    """Return whether a host in these aggregates passes both checks."""
    return all(
        offers_what_flavor_wants(key, text, aggregates)
        for key, text in flavor.items()
        if bare(key) != FORCE_KEY
    ) and all(
        forced_aggregates_admit_absence(key, aggregates)
        for key in keys_of_forced(aggregates)
        if key not in map(bare, flavor)
        and not any(fnmatch.fnmatchcase(key, pattern) for pattern in ignored)
    )


def bare(key: str) -> str:
    return key.removeprefix(SCOPE)


def is_forced(aggregate: Metadata) -> bool:
    return flag(aggregate.get(FORCE_KEY, "")) is True


def keys_of_forced(aggregates: Sequence[Metadata]) -> set[str]:
    found = {bare(key) for each in aggregates if is_forced(each) for key in each}
    return found - {FORCE_KEY}


def forced_texts(key: str, aggregates: Sequence[Metadata]) -> list[str]:
    return [
        text
        for each in aggregates
        if is_forced(each)
        for name, text in each.items()
        if bare(name) == key
    ]


def offers_what_flavor_wants(written: str, text: str, aggregates: Sequence[Metadata]) -> bool:
    key, wanted = bare(written), Expression.parse(text)
    literal = [each[key] for each in aggregates if not is_forced(each) and key in each]
    forced = forced_texts(key, aggregates)
    optional = ":" in key and written == key
    if optional and not literal and not forced:
        return True
    if any(is_malformed(each) for each in forced):
        return False
    host_may_be_absent = not literal and all(map(admits_absence, forced))
    if host_may_be_absent and wanted.admits(None):
        return True
    if any(map(forbids, forced)):
        return False
    return any(wanted.admits(word.strip()) for each in literal for word in each.split(",")) or any(
        wanted.meets(Expression.parse(part)) for each in forced for part in each.split(",")
    )


def forced_aggregates_admit_absence(key: str, aggregates: Sequence[Metadata]) -> bool:
    return all(
        admits_absence(text) and not is_malformed(text) for text in forced_texts(key, aggregates)
    )


def admits_absence(text: str) -> bool:
    return any(Expression.parse(part).admits(None) for part in text.split(","))


def forbids(text: str) -> bool:
    """Return whether the value is '!' alone, perhaps in a junction of one."""
    return text.split() in (["!"], ["<or>", "!"], ["<or>", "!", "<or>"])


def is_malformed(text: str) -> bool:
    parts = text.split(",")
    return any(Expression.parse(part).faults for part in parts) or (
        len(parts) > 1 and any(map(forbids, parts))
    )
