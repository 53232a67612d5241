"""RejectionCells with the possible typos that explain them, as commands write them."""

import itertools

from steelyard.analysis import suggestions
from steelyard.analysis.suggestions import Suggestions
from steelyard.cli.outputs.columns import Causes, Why
from steelyard.scheduler import Decision, FilterScheduler, NoValidHost


class RejectionCells:
    """The cells about rejections by a scheduler."""

    def __init__(self, scheduler: FilterScheduler) -> None:
        self._suggestions = Suggestions(scheduler.cloud, scheduler.filters.values())

    def causes(self, decision: Decision) -> Causes:
        """Return the causes for which hosts were rejected."""
        typos = self._suggestions.by_cause(decision.request.flavor, decision.verdicts)
        return Causes(decision.causes, typos)

    def trial_causes(self, decision: Decision) -> Causes:
        """Return the causes for which filters on trial would have rejected hosts."""
        typos = self._suggestions.by_cause(decision.request.flavor, decision.trial_verdicts)
        return Causes(decision.trial_causes, typos)

    def all_causes(self, decision: Decision) -> Causes:
        """Return the causes of both kinds."""
        both = [*decision.verdicts, *decision.trial_verdicts]
        typos = self._suggestions.by_cause(decision.request.flavor, both)
        return Causes([*decision.causes, *decision.trial_causes], typos)

    def of_hosts(self, decision: Decision) -> list[Why]:
        """Return the reasons for each host of the decision."""
        both = [*decision.verdicts, *decision.trial_verdicts]
        typos = self._suggestions.by_host(decision.request.flavor, both)
        return [Why(each, typos.get(each.host, ())) for each in decision.hosts]

    def note_typos(self, error: NoValidHost) -> None:
        """Add the possible typos that explain the rejections to the error, a line each."""
        decision = error.decision
        typos = self._suggestions.by_cause(decision.request.flavor, decision.verdicts)
        for line in suggestions.told(list(dict.fromkeys(itertools.chain(*typos.values())))):
            error.add_note(line)
