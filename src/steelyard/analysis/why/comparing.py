"""The comparison of the rebuilt request with the requests of an installed Nova."""

import contextlib
import dataclasses
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Protocol

from steelyard import errors
from steelyard.analysis.why.building import Built
from steelyard.analysis.why.facts import Facts
from steelyard.analysis.why.rebuilding.releases import HIBISCUS, Release
from steelyard.analysis.why.switches import Switches
from steelyard.cloud import Aggregate
from steelyard.cloud.wanted import WantedServer
from steelyard.traits import CandidatesRequest


class InstalledNova(Protocol):
    """The function of an installed Nova that returns its requests for a wanted server.

    It returns their query strings, and the reason why it sends none; usually empty.
    """

    def __call__(
        self,
        wanted: WantedServer,
        *,
        aggregates: Sequence[Aggregate],
        nodes: Mapping[str, Sequence[str]],
        options: Mapping[str, object],
        newest_computes: bool,
    ) -> tuple[Sequence[str], str]: ...


def compared(facts: Facts, switches: Switches, built: Built, nova: InstalledNova) -> list[str]:
    """Return the differences between the rebuilt request and those of an installed Nova."""
    wanted = dataclasses.replace(facts.wanted, availability_zone=switches.zone_of(facts.wanted))
    if facts.hosts is None:
        wanted = dataclasses.replace(wanted, host="")  # as in the rebuilt request
    nodes: dict[str, list[str]] = {}
    for host in facts.hosts or ():
        nodes.setdefault(host.name, []).append(host.uuid)
    query_strings, failure = nova(
        wanted,
        aggregates=[each for each in facts.aggregates or () if each.uuid],
        nodes=nodes,
        options=switches.of_requests,
        newest_computes=Release.of(facts.nova_microversion).is_surely(HIBISCUS),
    )
    return differences(built, query_strings, failure)


def differences(built: Built, query_strings: Iterable[str], failure: str) -> list[str]:
    """Return texts about the requests that only one of the two sends.

    ``query_strings`` are those of the installed Nova, and ``failure`` is the reason why it sends
    none; usually empty.
    """
    if failure or built.failure:
        if failure and built.failure:
            return []
        return [
            f"the installed Nova ends the request: {failure}"
            if failure
            else "the installed Nova does not end the request"
        ]
    ours = {_comparable(request) for request in built.requests}
    theirs = set(_accepted(query_strings))
    return [
        *(f"the installed Nova does not send {each}" for each in sorted(map(str, ours - theirs))),
        *(f"the installed Nova also sends {each}" for each in sorted(map(str, theirs - ours))),
    ]


def _accepted(query_strings: Iterable[str]) -> Iterator[CandidatesRequest]:
    """Yield the requests, without those that Placement refuses, which have no effect."""
    for text in query_strings:
        with contextlib.suppress(errors.InvalidQuery):
            yield _comparable(CandidatesRequest.parse(text))


def _comparable(request: CandidatesRequest) -> CandidatesRequest:
    """Return the request without a group policy that has no effect."""
    plain = request.groups[""].resources.keys() if "" in request.groups else set[str]()
    apart = [group.resources.keys() for suffix, group in request.groups.items() if suffix]
    if len(apart) > 1 or any(plain & names for names in apart):
        return request
    return dataclasses.replace(request, group_policy=None)
