"""The kinds of a cloud's hosts: equal hosts are examined once."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import TypeVar

from steelyard import plugins
from steelyard.cloud.host_state import HostState, Request
from steelyard.filters.base import FILTERS, Filter, answers
from steelyard.scheduler.kinds import Kinds
from steelyard.verdict import Verdict

AnswerT = TypeVar("AnswerT")


class HostKinds:
    """Hosts, and the kind of each of them.

    If a filter's ``by_kind`` is true for a request, the filter is asked about the first host of
    each kind, and its answer applies to all hosts of the kind. Any other filter is asked about
    every host.
    """

    def __init__(self, hosts: Iterable[HostState]) -> None:
        self.hosts = list(hosts)
        kinds = Kinds(self.hosts)
        self._kind_of = dict(zip(self.hosts, kinds.of_host, strict=True))
        self._all_differ = len(kinds.samples) == len(self.hosts)

    def ask(
        self,
        name: str,
        filter_: Filter,
        hosts: Sequence[HostState],
        request: Request,
        question: Callable[[Sequence[HostState]], Iterable[AnswerT]],
    ) -> list[AnswerT]:
        """Return the answer of the filter for each of the hosts.

        ``question`` asks the filter about the hosts that it is given. Raises PluginError with the
        name of the filter if it fails.
        """
        with plugins.blamed(FILTERS, name):
            if self._all_differ or not filter_.by_kind(request):
                return _answered(question, hosts)
            kinds = [self._kind_of[host] for host in hosts]
            # Later entries replace earlier ones, so the first host of each kind remains.
            first = dict(zip(reversed(kinds), reversed(hosts), strict=True))
            found = dict(zip(first, _answered(question, list(first.values())), strict=True))
            return [found[kind] for kind in kinds]

    def passing(
        self, name: str, filter_: Filter, hosts: Sequence[HostState], request: Request
    ) -> list[bool]:
        """Return whether each host passes the filter."""
        return self.ask(
            name, filter_, hosts, request, lambda asked: answers(filter_, asked, request)
        )

    def first_rejections(
        self, name: str, filter_: Filter, hosts: Sequence[HostState], request: Request
    ) -> list[Verdict]:
        """Return the first rejection of each host, for hosts that do not pass the filter."""
        return self.ask(
            name, filter_, hosts, request, lambda asked: filter_.first_rejections(asked, request)
        )

    def rejections(
        self, name: str, filter_: Filter, hosts: Sequence[HostState], request: Request
    ) -> list[tuple[Verdict, ...]]:
        """Return all rejections of each host; none for a host that passes."""

        def question(asked: Sequence[HostState]) -> Iterator[tuple[Verdict, ...]]:
            return map(tuple, filter_.rejections_all(asked, request))

        return self.ask(name, filter_, hosts, request, question)


def _answered(
    question: Callable[[Sequence[HostState]], Iterable[AnswerT]], hosts: Sequence[HostState]
) -> list[AnswerT]:
    found = list(question(hosts))
    if len(found) != len(hosts):
        raise ValueError(f"expected {len(hosts)} answers, got {len(found)}")
    return found
