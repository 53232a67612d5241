"""steelyard explain"""

import argparse
from typing import Any

from steelyard.cli.app import NO_VALID_HOST
from steelyard.cli.columns import Number, Why
from steelyard.cli.requests import RequestListing
from steelyard.scheduler import Decision, HostExplanation, NoValidHost


class Explain(RequestListing):
    """Show for every host whether it fits, what it weighs, or why it was rejected.

    The exit status is 0 when some host fits, 1 when none does, and 2 when something is wrong with
    what was given.
    """

    def run(self, parsed_args: argparse.Namespace) -> int:
        self._decision: Decision | None = None
        status = super().run(parsed_args)
        if self._decision is None or self._decision.server is not None:
            return status
        return self.end(NoValidHost([self._decision], 1), NO_VALID_HOST)

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return "Host", "Verdict", "Weight", "Why"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        scheduler = self.scheduler(parsed_args)
        request = self.request(parsed_args, scheduler)
        try:
            (self._decision,) = scheduler.select(request).decisions
        except NoValidHost as error:
            self._decision = error.decision
        return [
            (each.host, _verdict(each), Number(each.weight), Why(each))
            for each in self._decision.hosts
        ]


def _verdict(explanation: HostExplanation) -> str:
    if explanation.chosen:
        return "chosen"
    return "fits" if explanation.fits else "rejected"
