"""The conclusion from all evidence: the stage of a failure, and the answer in one sentence."""

import dataclasses
import datetime
from collections.abc import Sequence
from typing import NamedTuple

from steelyard.analysis.why import stages
from steelyard.analysis.why.demands import PlacementDemand
from steelyard.analysis.why.facts import Facts, ServerEvent
from steelyard.analysis.why.filtering import FilterCause, Filtering, NearHost
from steelyard.analysis.why.repair import RepairMember, Searched
from steelyard.analysis.why.stages import Stage
from steelyard.cloud.wanted import Source
from steelyard.text import spelling
from steelyard.text.wording import counted, listed

_CAUSES_NAMED = 3


@dataclasses.dataclass(frozen=True, slots=True)
class GroupHost:
    """The host of a group with the policy affinity, which Placement does not select."""

    name: str
    searched: Searched
    """The candidates and the repair of the request for this host."""


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Evidence:
    """Everything that a conclusion is based on."""

    facts: Facts
    asked_at: datetime.datetime
    failure: str = ""
    """The reason why Nova would send no request to Placement; empty if it would send one."""
    searched: Searched | None = None
    """None if Placement was not asked, or did not answer."""
    filtering: Filtering | None = None
    """The answers of the filters for the candidates, or for those of the repaired request.

    None if no candidates are known.
    """
    not_applied: Sequence[str] = ()
    """The enabled filters of Nova whose answers are not known."""
    group_host: GroupHost | None = None
    """The only host that the group allows, if its own rejection explains the failure."""

    @property
    def recorded(self) -> Stage | None:
        """The stage at which the request failed, if the record of the server tells it."""
        return None if self.facts.record is None else stages.of_record(self.facts.record)

    @property
    def is_placed(self) -> bool:
        """Whether the server is on a host, and no option asks for another request."""
        record, sources = self.facts.record, self.facts.wanted.sources.values()
        return record is not None and bool(record.host) and Source.OPTION not in sources

    @property
    def repair(self) -> Sequence[RepairMember]:
        """The demands to mend, for the host of the group if only that host is allowed."""
        searched = self.searched if self.group_host is None else self.group_host.searched
        return () if searched is None else searched.repair

    @property
    def interruption(self) -> str:
        """The error that ended the search for demands to mend; usually empty."""
        searched = self.searched if self.group_host is None else self.group_host.searched
        return "" if searched is None else searched.interruption

    @property
    def not_judged(self) -> Sequence[PlacementDemand]:
        """The demands that Placement cannot be asked about, because all resources are to mend."""
        return () if self.searched is None else self.searched.unjudged

    @property
    def requests(self) -> int:
        """The number of requests to Placement."""
        found = 0 if self.searched is None else self.searched.requests
        return found if self.group_host is None else found + self.group_host.searched.requests

    def possible_typos(self, member: RepairMember) -> list[str]:
        """Return the traits of hosts that a missing trait is possibly a typo of."""
        searched = self.searched if self.group_host is None else self.group_host.searched
        if searched is None or searched.repaired is None or member.providers_alone:
            return []
        part = member.demand.part
        wanted = part.group.traits.required | part.root.required
        present = {trait for root in searched.repaired.roots.values() for trait in root.traits}
        return sorted(
            trait for trait in present for each in wanted if spelling.near_miss(each, trait)
        )

    @property
    def causes(self) -> Sequence[FilterCause]:
        return () if self.filtering is None else self.filtering.causes

    @property
    def nearest(self) -> Sequence[NearHost]:
        return () if self.filtering is None else self.filtering.nearest

    @property
    def events(self) -> Sequence[ServerEvent]:
        return () if self.facts.record is None else self.facts.record.events


class Conclusion(NamedTuple):
    stage: Stage | None
    """None if nothing could be read that tells it."""
    text: str


def concluded(evidence: Evidence) -> Conclusion:
    """Return the conclusion: the first that the evidence allows."""
    for conclude in (
        _placed,
        _build,
        _scheduler,
        _before_placement,
        _placement,
        _record_alone,
        _filters,
        _not_applied,
    ):
        found = conclude(evidence)
        if found is not None:
            return found
    return Conclusion(Stage.FITS_NOW, _fits(evidence))


def _placed(evidence: Evidence) -> Conclusion | None:
    """Return the conclusion on a server that is on a host, so that it is no new request."""
    record = evidence.facts.record
    if record is None or not evidence.is_placed:
        return None
    text = f"server {record.name!r} is on host {record.host!r}"
    if not record.fault and record.status == "BUILD":
        return Conclusion(Stage.BUILD, f"{text}, and its build there has not finished")
    failed = [each for each in record.events if not each.event and each.result == "Error"]
    if not record.fault and failed:
        return Conclusion(
            Stage.BUILD,
            f"{text}, and the action {failed[-1].action!r} on it failed; ask for "
            f"another flavor or host with --flavor or --host",
        )
    if not record.fault:
        return Conclusion(Stage.FITS_NOW, f"{text}, and has no recorded fault")
    action = f"the action {record.last_action!r}" if record.last_action else "an action on it"
    return Conclusion(Stage.BUILD, f"{text}, and {action} failed: {record.fault}")


def _build(evidence: Evidence) -> Conclusion | None:
    record = evidence.facts.record
    if record is None or evidence.recorded is not Stage.BUILD:
        return None
    return Conclusion(
        Stage.BUILD, f"a host was chosen, and the build of the server failed: {record.fault}"
    )


def _scheduler(evidence: Evidence) -> Conclusion | None:
    """Return the conclusion if the scheduler failed for another reason than a lack of hosts."""
    record = evidence.facts.record
    if record is None or not record.fault or stages.lacked_hosts(record.fault):
        return None
    return Conclusion(
        Stage.FILTERS, f"scheduling failed with an error before a host was chosen: {record.fault}"
    )


def _before_placement(evidence: Evidence) -> Conclusion | None:
    if not evidence.failure:
        return None
    text = f"Nova sends no request to Placement now: {evidence.failure}"
    return Conclusion(Stage.PLACEMENT, text + _otherwise(evidence, Stage.PLACEMENT))


def _placement(evidence: Evidence) -> Conclusion | None:
    searched = evidence.searched
    if searched is None or not (searched.repair or searched.interruption):
        return None
    text = "no host in Placement meets all demands now; "
    named = "; ".join(each.demand.text for each in searched.repair)
    left = evidence.filtering
    if searched.interruption:
        text += f"to mend, among others: {named}" if named else "the demands to mend are not known"
    else:
        text += f"to mend: {named}"
    if left is not None:
        text += f"; without {'them' if len(searched.repair) > 1 else 'it'}, {_remaining(left)}"
    if searched.unjudged and not searched.interruption:
        text += f"; {counted(len(searched.unjudged), 'demand')} could not be judged"
    return Conclusion(Stage.PLACEMENT, text + _otherwise(evidence, Stage.PLACEMENT))


def _remaining(left: Filtering) -> str:
    """Return the number of hosts that remain, and how many of them fit."""
    text = f"{counted(left.hosts, 'host')} remain{'s' if left.hosts == 1 else ''}"
    if not left.hosts or len(left.fitting) == left.hosts:
        return text
    if left.fitting:
        return f"{text}, of which {len(left.fitting)} fit{'s' if len(left.fitting) == 1 else ''}"
    return f"{text}, and the filters reject {_all_of(left)}: {_named(left.causes)}"


def _otherwise(evidence: Evidence, stage: Stage) -> str:
    """Return an addition to the answer if the request failed at another stage."""
    recorded = evidence.recorded
    if recorded is None or recorded is stage:
        return ""
    return f"; when the request failed, {_THEN[recorded]}"


_THEN = {
    Stage.PLACEMENT: "Placement had no candidates, or did not answer",
    Stage.FILTERS: "the filters left no host, or another request took the last one",
    Stage.BUILD: "the build of the server failed",
}


def _record_alone(evidence: Evidence) -> Conclusion | None:
    """Return the conclusion from the record of the server, if Placement did not answer."""
    if evidence.searched is not None and evidence.filtering is not None:
        return None
    recorded = evidence.recorded
    if recorded is None:
        return Conclusion(None, "Placement could not be asked, and no record names a failure")
    return Conclusion(
        recorded, f"when the request failed, {_THEN[recorded]}; Placement could not be asked now"
    )


def _filters(evidence: Evidence) -> Conclusion | None:
    found, searched = evidence.filtering, evidence.searched
    if found is None or searched is None:
        return None
    count = evidence.facts.wanted.count
    if not found.hosts and searched.repaired is not None and not searched.repaired.requests:
        text = "Placement's answers changed meanwhile; ask again"
    elif not found.hosts:
        text = "Placement selects only providers that are not hosts of Nova"
    elif not found.fitting:
        text = (
            f"Placement selects {_selected(evidence)} now, and the filters reject "
            f"{'it' if found.hosts == 1 else 'all of them'}: {_named(found.causes)}"
        )
        if evidence.group_host is not None:
            named = "; ".join(each.demand.text for each in evidence.repair)
            lacks = f"does not offer: {named}" if named else "is not selected"
            text += f"; host {evidence.group_host.name!r} of the group {lacks}"
    elif count > 1 and found.room < count:
        text = (
            f"{found.room} of the {count} servers that were requested together fit now, on "
            f"{counted(len(found.fitting), 'host')}"
        )
    else:
        return None
    if searched.truncated:
        text += "; Placement has more candidates, but Nova asks for no more"
    return Conclusion(Stage.FILTERS, text + _otherwise(evidence, Stage.FILTERS))


def _selected(evidence: Evidence) -> str:
    """Return the number of hosts that Placement selects, and that of all hosts if it is known."""
    selected = evidence.filtering.hosts if evidence.filtering else 0
    hosts = evidence.facts.hosts
    return counted(selected, "host") if hosts is None else f"{selected} of {len(hosts)} hosts"


def _not_applied(evidence: Evidence) -> Conclusion | None:
    """Return the conclusion if filters left no host, and some of them are not known."""
    if not evidence.not_applied or evidence.recorded is not Stage.FILTERS:
        return None
    hosts = list(evidence.filtering.fitting) if evidence.filtering else []
    return Conclusion(
        Stage.FILTERS,
        f"the filters left no host when the request failed, and {listed(hosts, 1)} "
        f"pass{'es' if len(hosts) == 1 else ''} the filters that were applied now; not applied: "
        f"{', '.join(evidence.not_applied)}",
    )


def _all_of(found: Filtering) -> str:
    return "the only host" if found.hosts == 1 else f"all {found.hosts} hosts"


def _named(causes: Sequence[FilterCause]) -> str:
    shown = [f"{each.cause} ({counted(each.hosts, 'host')})" for each in causes[:_CAUSES_NAMED]]
    more = len(causes) - len(shown)
    return "; ".join([*shown, *([f"{counted(more, 'other cause')}"] if more else [])])


def _fits(evidence: Evidence) -> str:
    hosts = list(evidence.filtering.fitting) if evidence.filtering else []
    text = f"host {listed(hosts, 1)} fit{'s' if len(hosts) == 1 else ''} now"
    if evidence.not_applied:
        unknown = ", ".join(evidence.not_applied)
        text += f", as far as the filters were applied; not applied: {unknown}"
    record = evidence.facts.record
    if record is None:
        return text
    if not record.fault:
        return f"{text}; server {record.name!r} has no recorded fault"
    since = f" {ago(record.failed_at, evidence.asked_at)}" if record.failed_at else ""
    hint = ", such as a requested host" if evidence.recorded is Stage.PLACEMENT else ""
    return (
        f"{text}; the request failed{since}, for a cause that no longer holds or that no API "
        f"shows{hint}"
    )


def ago(moment: str, now: datetime.datetime) -> str:
    """Return how long ago the moment was, in its greatest unit."""
    try:
        then = datetime.datetime.fromisoformat(moment)
    except ValueError:
        return f"at {moment}"
    if then.tzinfo is None:
        then = then.replace(tzinfo=datetime.UTC)
    seconds = max(int((now - then).total_seconds()), 0)
    for unit, length in (("day", 86_400), ("hour", 3600), ("minute", 60)):
        if seconds >= length:
            return f"{counted(seconds // length, unit)} ago"
    return f"{counted(seconds, 'second')} ago"
