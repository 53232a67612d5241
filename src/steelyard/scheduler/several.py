"""The selection of hosts for several requests, all or none."""

import dataclasses
import itertools
from collections.abc import Sequence

from steelyard.cloud.request_file import WantedServers
from steelyard.scheduler.decision import Decision
from steelyard.scheduler.pipeline import FilterScheduler, NoValidHost, Selection
from steelyard.text.wording import counted


def select_all(scheduler: FilterScheduler, requests: Sequence[WantedServers]) -> Selection:
    """Select hosts for the servers of all requests, each as if the ones before it were placed.

    Nothing changes until ``commit``. Raises the errors of ``FilterScheduler.select``; a note of
    NoValidHost names the request.
    """
    cloud = scheduler.cloud
    taken = {server.name for server in cloud.servers.values()}
    taken.update(name for wanted in requests for name in wanted.own_names())
    decisions: list[Decision] = []
    try:
        for number, wanted in enumerate(requests, 1):
            request = scheduler.request(wanted.flavor, wanted.group)
            try:
                selection = scheduler.select(request, wanted.count)
            except NoValidHost as error:
                error.add_note(
                    f"request {number} of {len(requests)}, {_described(wanted)}, has no valid "
                    f"host: no server of any request was placed"
                )
                raise
            named = _named(selection, wanted, taken)
            scheduler.commit(named)
            decisions += named.decisions
    finally:
        scheduler.cloud = cloud
    return Selection(cloud, tuple(decisions))


def _named(selection: Selection, wanted: WantedServers, taken: set[str]) -> Selection:
    """Return the selection with the names of the request, or else with names not taken."""
    numbered = (f"{wanted.flavor}-{number}" for number in itertools.count(1))
    names = wanted.own_names() or list(
        itertools.islice((name for name in numbered if name not in taken), wanted.count)
    )
    taken.update(names)
    return Selection(
        selection.cloud,
        tuple(
            dataclasses.replace(
                decision,
                server=decision.server and dataclasses.replace(decision.server, name=name),
            )
            for decision, name in zip(selection.decisions, names, strict=True)
        ),
    )


def _described(wanted: WantedServers) -> str:
    of = f"{counted(wanted.count, 'server')} of flavor {wanted.flavor!r}"
    group = "" if wanted.group is None else f" in group {wanted.group!r}"
    return f"{'' if wanted.name is None else f'{wanted.name!r}, '}{of}{group}"
