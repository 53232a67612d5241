"""What would change if ``AggregateInstanceTypeFilter`` took the place of Nova's filter.

Flavors with the same extra specs are judged once, and so are hosts in the same aggregates.
"""

import dataclasses
import enum
from collections.abc import Iterable, Mapping

from steelyard.aggregates import FORCE_KEY, Content, Judge, content
from steelyard.desk.novas_rules import SENTINELS
from steelyard.desk.rules import Outcome, Rules, demands
from steelyard.expressions import OR
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.scheduler import Aggregate, Cloud, Flavor, HostState, Request
from steelyard.scheduler.host_state import host_states


class Kind(enum.StrEnum):
    """How two answers differ; what is worst first."""

    NEWLY_REJECTED = "newly rejected"
    NOT_KNOWN = "not known without nova"
    ABORTS = "Nova aborts the request"
    MAY_ABORT = "Nova may abort the request"
    NEWLY_ACCEPTED = "newly accepted"


_UNANSWERED = {
    Outcome.NOT_KNOWN: Kind.NOT_KNOWN,
    Outcome.ABORTS: Kind.ABORTS,
    Outcome.MAY_ABORT: Kind.MAY_ABORT,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """Both answers for each of some flavors on each of some hosts."""

    flavors: tuple[str, ...]
    hosts: tuple[str, ...]
    nova: Outcome
    passes: bool
    """What ours says."""
    kind: Kind | None = None
    """None where nothing changes."""
    cause: str = ""

    @property
    def pairs(self) -> int:
        return len(self.flavors) * len(self.hosts)


@dataclasses.dataclass(frozen=True, slots=True)
class Change:
    """What changes in one way and for one cause."""

    kind: Kind
    cause: str
    judgements: tuple[Judgement, ...]

    @property
    def flavors(self) -> list[str]:
        return _each_once(each.flavors for each in self.judgements)

    @property
    def hosts(self) -> list[str]:
        return _each_once(each.hosts for each in self.judgements)

    @property
    def pairs(self) -> int:
        return sum(each.pairs for each in self.judgements)


@dataclasses.dataclass(frozen=True, slots=True)
class Comparison:
    """All that was judged, flavor by flavor, and by whose rules."""

    rules: str
    flavors: int
    hosts: int
    judgements: tuple[Judgement, ...]

    @property
    def changes(self) -> list[Change]:
        """What changes, by kind and cause; of a kind, what concerns most pairs first."""
        groups: dict[tuple[Kind, str], list[Judgement]] = {}
        for each in self.judgements:
            if each.kind is not None:
                groups.setdefault((each.kind, each.cause), []).append(each)
        changes = [Change(kind, cause, tuple(each)) for (kind, cause), each in groups.items()]
        kinds = list(Kind)
        return sorted(changes, key=lambda each: (kinds.index(each.kind), -each.pairs, each.cause))


def compare(cloud: Cloud, ours: AggregateInstanceTypeFilter, rules: Rules) -> Comparison:
    """Nova's answers and ours, for every flavor and every host of the cloud."""
    flavors: dict[Content, list[Flavor]] = {}
    for flavor in cloud.flavors.values():
        flavors.setdefault(content(flavor.extra_specs), []).append(flavor)
    hosts: dict[tuple[Aggregate, ...], list[HostState]] = {}
    for host in host_states(cloud):
        hosts.setdefault(tuple(host.aggregates), []).append(host)
    by_aggregates = [(alike[0], tuple(host.host for host in alike)) for alike in hosts.values()]
    judgements = []
    for same in flavors.values():
        flavor, names = same[0], tuple(flavor.name for flavor in same)
        for host, host_names in by_aggregates:
            said = _judge(flavor, host, ours, rules)
            judgements.append(Judgement(names, host_names, *said))
    return Comparison(rules.name, len(cloud.flavors), len(cloud.hosts), tuple(judgements))


def _judge(
    flavor: Flavor, host: HostState, ours: AggregateInstanceTypeFilter, rules: Rules
) -> tuple[Outcome, bool, Kind | None, str]:
    """Nova's answer, whether ours passes, and what changes for which cause."""
    request, aggregates = Request(flavor), tuple(host.aggregates)
    nova = rules.judge(flavor.extra_specs, aggregates)
    passes = ours.host_passes(host, request)
    kind = _kind(nova.outcome, passes=passes)
    if kind is None:
        cause = ""
    elif kind is Kind.NEWLY_ACCEPTED:
        cause = _why_accepted(flavor.extra_specs, aggregates, rules)
    else:
        here = "the host passes" if passes else ours.examine(host, request).cause
        cause = f"{nova.why}; here: {here}" if nova.why else here
    return nova.outcome, passes, kind, cause


def _kind(nova: Outcome, *, passes: bool) -> Kind | None:
    if nova in _UNANSWERED:
        return _UNANSWERED[nova]
    if passes is (nova is Outcome.PASSES):
        return None
    return Kind.NEWLY_ACCEPTED if passes else Kind.NEWLY_REJECTED


def _why_accepted(
    extra_specs: Mapping[str, str], aggregates: tuple[Aggregate, ...], rules: Rules
) -> str:
    """What makes the difference in each key for which Nova rejects the host."""
    return "; ".join(
        _difference(key, bare, text, aggregates)
        for key, bare, text in demands(extra_specs)
        if rules.judge({key: text}, aggregates).outcome is Outcome.REJECTS
    )


def _difference(key: str, bare: str, text: str, aggregates: tuple[Aggregate, ...]) -> str:
    words = text.split()
    junction = words[:1] == [OR]
    regular = junction and set(words[::2]) == {OR}
    sentinels = [word for word in words if word in SENTINELS]
    if bare == FORCE_KEY:
        return f"key {bare!r} of the flavor, which Nova looks for in aggregates"
    if not _accepted_unforced(key, text, aggregates):
        return f"key {bare!r}: a forced aggregate has expressions, which Nova reads as literal text"
    if sentinels and (regular or len(words) == 1):
        return f"sentinel {sentinels[0]!r} in key {bare!r}, which Nova reads as literal text"
    if junction:
        return f"junction {text!r} in key {bare!r}, of which Nova reads every second word"
    if text != text.strip():
        return f"white space around {text!r} in key {bare!r}, which Nova does not strip"
    return f"key {bare!r}: {text!r} is satisfied here, and not in Nova"


def _accepted_unforced(key: str, text: str, aggregates: tuple[Aggregate, ...]) -> bool:
    """Whether the key would be satisfied here too if no aggregate were forced."""
    literal = [
        (
            aggregate.name,
            {name: said for name, said in aggregate.metadata.items() if name != FORCE_KEY},
        )
        for aggregate in aggregates
    ]
    return Judge(content({key: text})).examine(literal).passed


def _each_once(lists: Iterable[tuple[str, ...]]) -> list[str]:
    return list(dict.fromkeys(name for names in lists for name in names))
