"""The answer to the question why a server was not placed."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard.analysis.why.conclusion import Evidence
from steelyard.analysis.why.demands import PlacementDemand
from steelyard.analysis.why.facts import ServerEvent
from steelyard.analysis.why.repair import RepairMember
from steelyard.analysis.why.stages import Stage
from steelyard.cloud.wanted import Source


@dataclasses.dataclass(frozen=True, slots=True, kw_only=True)
class Answer:
    """The answer to the question why a server was not placed, with its evidence."""

    stage: Stage | None
    """None if nothing could be read that tells it."""
    text: str
    """One sentence."""
    evidence: Evidence
    observed: Source
    """The source of the data on hosts and Placement."""
    assumptions: Sequence[str]
    not_known: Sequence[str]
    ignored: Sequence[str] = ()
    """The extra specs and image properties that Nova ignores, with the reasons."""
    differences: Sequence[str] = ()
    """The differences between the rebuilt request and those of an installed Nova."""

    @property
    def explains(self) -> bool:
        """Whether a cause or a later failure is named."""
        return self.stage not in (None, Stage.FITS_NOW)


def as_dict(answer: Answer) -> dict[str, Any]:
    """Return the answer as JSON and YAML have it."""
    evidence = answer.evidence
    record = evidence.facts.record
    return {
        "summary": {
            "server": None if record is None else record.name,
            "stage": None if answer.stage is None else answer.stage.value,
            "answer": answer.text,
            "asked_at": evidence.asked_at.isoformat(timespec="seconds"),
            "failed_at": None if record is None else record.failed_at or None,
            "requests_to_placement": evidence.requests,
        },
        "repair": [_member(each, evidence.possible_typos(each)) for each in evidence.repair],
        "not_judged": [_demand(each) for each in evidence.not_judged],
        "causes": [
            {
                "filter": each.filter,
                "cause": each.cause,
                "hosts": each.hosts,
                "possible_typos": list(each.possible_typos),
                "source": answer.observed.value,
            }
            for each in evidence.causes
        ],
        "nearest": [
            {
                "host": each.host,
                "reasons": [f"{name}: {reason}" for name, reason in each.reasons],
                "source": answer.observed.value,
            }
            for each in evidence.nearest
        ],
        "events": [_event(each) for each in evidence.events],
        "assumptions": list(answer.assumptions),
        "not_known": list(answer.not_known),
        "ignored": list(answer.ignored),
        "differences": list(answer.differences),
        "filters_not_applied": list(evidence.not_applied),
    }


def _member(member: RepairMember, typo_of: Sequence[str]) -> dict[str, Any]:
    return {
        **_demand(member.demand),
        "refusal": member.refusal or None,
        "possible_typos": list(typo_of),
        "providers_alone": member.providers_alone,
        "providers_without": member.providers_without,
    }


def _demand(demand: PlacementDemand) -> dict[str, Any]:
    return {
        "kind": demand.kind.value,
        "demand": demand.text,
        "from": demand.origin,
        "source": demand.source.value,
    }


def _event(event: ServerEvent) -> Mapping[str, str]:
    return {**dataclasses.asdict(event), "source": Source.RECORD.value}
