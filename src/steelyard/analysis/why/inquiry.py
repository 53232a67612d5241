"""The way from facts to an answer: Placement, then the filters, then the conclusion."""

import dataclasses
import datetime
from collections.abc import Mapping

from oslo_config import cfg

from steelyard import errors
from steelyard.analysis.progress import Watching, unwatched
from steelyard.analysis.why import building, repair
from steelyard.analysis.why.answer import Answer
from steelyard.analysis.why.building import Built
from steelyard.analysis.why.comparing import InstalledNova, compared
from steelyard.analysis.why.conclusion import Evidence, GroupHost, concluded
from steelyard.analysis.why.facts import Facts
from steelyard.analysis.why.filtering import filtered
from steelyard.analysis.why.novas_filters import NovasFilters
from steelyard.analysis.why.placement_view import PlacementView
from steelyard.analysis.why.switches import Switches
from steelyard.cloud.wanted import Source
from steelyard.groups import Policy
from steelyard.scheduler.rules import NovaRules


@dataclasses.dataclass(frozen=True, kw_only=True)
class Inquiry:
    """The means to answer why servers were not placed."""

    switches: Switches
    placement: PlacementView | None
    """None if there is no Placement to ask."""
    observed: Source
    """The source of the data on hosts and Placement."""
    rules: NovaRules | None = None
    """The rules of an installed Nova, if there is one."""
    nova: InstalledNova | None = None
    """The code of an installed Nova that builds the request, if there is one."""
    conf: cfg.ConfigOpts | None = None
    """The configuration of steelyard's filters; None is the global one."""
    watch: Watching = unwatched
    """The function that shows the progress of the requests to Placement."""

    def answer(self, facts: Facts, asked_at: datetime.datetime) -> Answer:
        """Return the answer. It names data that cannot be read, and does not guess them."""
        built = building.built(facts, self.switches, self.observed)
        filters = NovasFilters(
            self.switches.enabled_filters,
            facts,
            self.rules,
            self.conf,
            self.switches.image_properties_default_architecture,
        )
        evidence = Evidence(
            facts=facts,
            asked_at=asked_at,
            failure=built.failure,
            not_applied=filters.not_applied,
        )
        unanswered: list[str] = []
        try:
            evidence = self._searched(evidence, built, filters)
        except errors.SteelyardError as error:
            unanswered.append(f"whether Placement has candidates: {error}")
        if evidence.interruption:
            unanswered.append(f"all demands to mend: {evidence.interruption}")
        conclusion = concluded(evidence)
        return Answer(
            stage=conclusion.stage,
            text=conclusion.text,
            evidence=evidence,
            observed=self.observed,
            assumptions=[
                *facts.assumptions,
                *built.assumptions,
                *self._assumed_filters(),
            ],
            not_known=[*facts.not_known, *built.not_known, *unanswered],
            ignored=built.ignored,
            differences=self._compared(facts, built),
        )

    def _compared(self, facts: Facts, built: Built) -> list[str]:
        return [] if self.nova is None else compared(facts, self.switches, built, self.nova)

    def _searched(self, evidence: Evidence, built: Built, filters: NovasFilters) -> Evidence:
        """Return the evidence with the answers of Placement and of the filters."""
        if built.failure or evidence.is_placed:
            return evidence
        if self.placement is None:
            raise errors.NoAccess("Placement is not in the service catalog")
        searched = repair.searched(built.demands, built.limit, self.placement, self.watch)
        filtering = None
        if searched.repaired is not None:
            roots = searched.repaired.roots
            filtering = filtered(evidence.facts, roots, filters, _amounts(built))
        found = dataclasses.replace(evidence, searched=searched, filtering=filtering)
        return dataclasses.replace(found, group_host=self._group_host(found))

    def _group_host(self, evidence: Evidence) -> GroupHost | None:
        """Return the host of an affinity group, if Placement does not select it.

        The filters reject all other hosts, so the answer has to tell what this one lacks.
        """
        facts, filtering = evidence.facts, evidence.filtering
        group = facts.wanted.group
        if group is None or group.policy is not Policy.AFFINITY or not group.hosts:
            return None
        if evidence.repair or filtering is None or filtering.fitting or self.placement is None:
            return None
        name = min(group.hosts)
        roots = {} if evidence.searched is None else evidence.searched.candidates.roots
        if any(each.uuid in roots and each.is_named(name) for each in facts.hosts or ()):
            return None  # it has candidates, and the filters reject it, too
        sources = {**facts.wanted.sources, "host": self.observed}
        wanted = dataclasses.replace(facts.wanted, host=name, sources=sources)
        there = dataclasses.replace(facts, wanted=wanted)
        built = building.built(there, self.switches, self.observed)
        searched = repair.searched_without_candidates(built.demands, self.placement, self.watch)
        return GroupHost(name, searched) if searched.repair or searched.interruption else None

    def _assumed_filters(self) -> list[str]:
        if not self.switches.assumed:
            return []
        listed = ", ".join(self.switches.enabled_filters)
        return [
            f"Nova's filters are its defaults: {listed}; name the files of Nova's configuration "
            f"with --config-file to apply others"
        ]


def _amounts(built: Built) -> list[Mapping[str, int]]:
    """Return the amounts that one server uses of the root provider, for each request."""
    return [each.groups[""].resources for each in built.requests if "" in each.groups]
