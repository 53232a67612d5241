"""The changes if ``AggregateInstanceTypeFilter`` replaced Nova's filter.

Flavors with the same extra specs are judged once, and so are hosts in the same aggregates. Nova's
answers are the same for hosts whose aggregates offer the same values for the keys of the flavor.
"""

import dataclasses
import enum
import itertools
from collections.abc import Hashable, Iterable, Iterator, Mapping, Sequence

from steelyard.aggregates import FORCE_KEY, SCOPE, Content, Judge, content, flag
from steelyard.analysis.novas_rules import SENTINELS
from steelyard.analysis.progress import Watching, unwatched
from steelyard.cloud import Aggregate, Cloud, Flavor
from steelyard.cloud.host_state import HostState, host_states
from steelyard.expressions import OR
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.scheduler import Request
from steelyard.scheduler.rules import NovaAnswer, NovaRules, NovaVerdict, demands


class Difference(enum.StrEnum):
    """The ways in which two answers differ, the worst first."""

    NEWLY_REJECTED = "newly rejected"
    NOT_KNOWN = "not known without nova"
    ABORTS = "Nova aborts the request"
    MAY_ABORT = "Nova may abort the request"
    NEWLY_ACCEPTED = "newly accepted"


_UNANSWERED = {
    NovaAnswer.NOT_KNOWN: Difference.NOT_KNOWN,
    NovaAnswer.ABORTS: Difference.ABORTS,
    NovaAnswer.MAY_ABORT: Difference.MAY_ABORT,
}


@dataclasses.dataclass(frozen=True, slots=True)
class Judgement:
    """Both answers for each of the flavors on each of the hosts."""

    flavors: tuple[str, ...]
    hosts: tuple[str, ...]
    nova: NovaAnswer
    passes: bool
    """Whether the hosts pass our filter."""
    kind: Difference | None = None
    """None if both answers are the same."""
    cause: str = ""

    @property
    def pairs(self) -> int:
        return len(self.flavors) * len(self.hosts)


@dataclasses.dataclass(frozen=True, slots=True)
class AnswerChange:
    """The answers that change in the same way for the same cause."""

    kind: Difference
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
    """All judgements, flavor by flavor. ``rules`` names the source of Nova's answers."""

    rules: str
    flavors: int
    hosts: int
    judgements: tuple[Judgement, ...]

    @property
    def changes(self) -> list[AnswerChange]:
        """The changes by kind and cause. Within a kind, the one with most pairs comes first."""
        groups: dict[tuple[Difference, str], list[Judgement]] = {}
        for each in self.judgements:
            if each.kind is not None:
                groups.setdefault((each.kind, each.cause), []).append(each)
        changes = [AnswerChange(kind, cause, tuple(each)) for (kind, cause), each in groups.items()]
        kinds = list(Difference)
        return sorted(changes, key=lambda each: (kinds.index(each.kind), -each.pairs, each.cause))


def compare(
    cloud: Cloud, ours: AggregateInstanceTypeFilter, rules: NovaRules, watch: Watching = unwatched
) -> Comparison:
    """Compare Nova's answers with ours for every flavor and every host of the cloud."""
    flavors: dict[Content, list[Flavor]] = {}
    for flavor in cloud.flavors.values():
        flavors.setdefault(content(flavor.extra_specs), []).append(flavor)
    sets = _SetsOfAggregates(cloud)
    judgements: list[Judgement] = []
    for same in watch(list(flavors.values()), "flavors"):
        judgements += _judgements(same, sets, ours, rules)
    return Comparison(rules.name, len(cloud.flavors), len(cloud.hosts), tuple(judgements))


class _SetsOfAggregates:
    """The sets of aggregates that hosts are in.

    Sets whose aggregates offer the same values for a key are alike for the key.
    """

    def __init__(self, cloud: Cloud) -> None:
        hosts: dict[tuple[Aggregate, ...], list[HostState]] = {}
        for host in host_states(cloud):
            hosts.setdefault(tuple(host.aggregates), []).append(host)
        self.aggregates = list(hosts)
        self.firsts = [alike[0] for alike in hosts.values()]
        """One host in each set."""
        self.names = [tuple(host.host for host in alike) for alike in hosts.values()]
        self._offers: dict[str, list[Hashable]] = {}

    def alike(self, keys: Iterable[str]) -> Iterable[Hashable]:
        """Return a value for each set that is equal for sets that are alike for all the keys."""
        columns = [self._offers_of(key) for key in keys]
        return zip(*columns, strict=True) if columns else [()] * len(self.aggregates)

    def _offers_of(self, key: str) -> list[Hashable]:
        """Return the values that the aggregates of each set offer for the key."""
        if key not in self._offers:
            offering = {
                aggregate: (text, flag(aggregate.metadata.get(FORCE_KEY, "")))
                for aggregate in set(itertools.chain.from_iterable(self.aggregates))
                if (text := aggregate.metadata.get(key)) is not None
            }
            self._offers[key] = [
                tuple(offering[each] for each in aggregates if each in offering)
                for aggregates in self.aggregates
            ]
        return self._offers[key]


def _judgements(
    same: Sequence[Flavor],
    sets: _SetsOfAggregates,
    ours: AggregateInstanceTypeFilter,
    rules: NovaRules,
) -> Iterator[Judgement]:
    """Yield both answers for flavors with the same extra specs on the hosts of each set."""
    flavor, names = same[0], tuple(flavor.name for flavor in same)
    specs, request = flavor.extra_specs, Request(flavor)
    # Scoped keys are offered with the scope by forced aggregates.
    keys = sorted({each for key, bare, _ in demands(specs) for each in (bare, SCOPE + bare)})
    answers: dict[Hashable, NovaVerdict] = {}
    accepted: dict[Hashable, str] = {}
    rejections = ours.judge(request)
    every_set = zip(
        sets.aggregates,
        sets.firsts,
        sets.names,
        sets.alike(keys),
        ours.passing(sets.firsts, request),
        strict=True,
    )
    for aggregates, host, hosts, alike, passes in every_set:
        nova = answers.get(alike)
        if nova is None:
            nova = answers[alike] = rules.judge(specs, aggregates)
        kind = _kind(nova.outcome, passes=passes)
        cause = ""
        if kind is Difference.NEWLY_ACCEPTED:
            if alike not in accepted:
                accepted[alike] = _why_accepted(specs, aggregates, rules)
            cause = accepted[alike]
        elif kind is not None:
            own = "the host passes" if passes else next(iter(rejections(host))).cause
            cause = f"{nova.why}; steelyard: {own}" if nova.why else own
        yield Judgement(names, hosts, nova.outcome, passes, kind, cause)


def _kind(nova: NovaAnswer, *, passes: bool) -> Difference | None:
    if nova in _UNANSWERED:
        return _UNANSWERED[nova]
    if passes is (nova is NovaAnswer.PASSES):
        return None
    return Difference.NEWLY_ACCEPTED if passes else Difference.NEWLY_REJECTED


def _why_accepted(
    extra_specs: Mapping[str, str], aggregates: tuple[Aggregate, ...], rules: NovaRules
) -> str:
    """Return the cause of the difference for each key for which Nova rejects the host."""
    return "; ".join(
        _difference(key, bare, text, aggregates)
        for key, bare, text in demands(extra_specs)
        if rules.judge({key: text}, aggregates).outcome is NovaAnswer.REJECTS
    )


def _difference(key: str, bare: str, text: str, aggregates: tuple[Aggregate, ...]) -> str:
    words = text.split()
    junction = words[:1] == [OR]
    regular = junction and set(words[::2]) == {OR}
    sentinels = [word for word in words if word in SENTINELS]
    if bare == FORCE_KEY:
        return f"key {bare!r} of the flavor, which Nova compares with aggregates"
    if not _accepted_unforced(key, text, aggregates):
        return f"key {bare!r}: a forced aggregate has expressions, which Nova reads as literal text"
    if sentinels and (regular or len(words) == 1):
        return f"sentinel {sentinels[0]!r} in key {bare!r}, which Nova reads as literal text"
    if junction:
        return f"junction {text!r} in key {bare!r}, where Nova reads every second word"
    if text != text.strip():
        return f"white space around {text!r} in key {bare!r}, which Nova does not strip"
    return f"key {bare!r}: {text!r} is satisfied in steelyard, but not in Nova"


def _accepted_unforced(key: str, text: str, aggregates: tuple[Aggregate, ...]) -> bool:
    """Return whether our filter would accept the key if no aggregate were forced."""
    literal = [
        (
            aggregate.name,
            {name: value for name, value in aggregate.metadata.items() if name != FORCE_KEY},
        )
        for aggregate in aggregates
    ]
    return Judge(content({key: text})).examine(literal).passed


def _each_once(lists: Iterable[tuple[str, ...]]) -> list[str]:
    return list(dict.fromkeys(name for names in lists for name in names))
