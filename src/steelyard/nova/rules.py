"""The rules of Nova's filter, from the Nova that is installed here."""

import functools
import importlib.metadata
from collections.abc import Iterable, Mapping
from typing import Any

from nova import objects
from nova.scheduler import host_manager
from nova.scheduler.filters import utils
from nova.scheduler.filters.aggregate_instance_extra_specs import AggregateInstanceExtraSpecsFilter

from steelyard.desk.rules import NovaVerdict, Outcome, demands, ends_in
from steelyard.scheduler import Aggregate

_UUID = "00000000-0000-4000-8000-000000000000"

Texts = Mapping[str, str]


class InstalledRules:
    """Nova's filter itself, asked with Nova's own objects.

    Whatever it raises would fail a request in Nova, so it is an answer here.
    """

    def __init__(self) -> None:
        objects.register_all()
        self.name = f"nova {_version()}"
        self._filter = AggregateInstanceExtraSpecsFilter()
        self._host_of = functools.lru_cache(maxsize=4096)(_host_of_aggregates)
        self._why_raises = functools.lru_cache(maxsize=65536)(self._raised_by)

    def judge(self, extra_specs: Texts, aggregates: tuple[Aggregate, ...]) -> NovaVerdict:
        """The answer; where a value raises, also whether there is another in another order."""
        host, offers = self._host_of(aggregates)
        raising = {
            key: {
                value: why
                for value in offers.get(bare, ())
                if (why := self._why_raises(key, text, value))
            }
            for key, bare, text in demands(extra_specs)
        }
        for key, values in raising.items():
            if values:
                avoidable = self._avoidable(extra_specs, offers, raising)
                outcome = Outcome.MAY_ABORT if avoidable else Outcome.ABORTS
                return NovaVerdict(outcome, f"key {key!r}: {values[min(values)]}")
        try:
            passes = self._passes(extra_specs, host)
        except Exception as error:  # noqa: BLE001  (whatever Nova raises is its answer)
            return NovaVerdict(Outcome.ABORTS, f"it ends in {type(error).__name__}: {error}")
        return NovaVerdict(Outcome.PASSES if passes else Outcome.REJECTS)

    def _avoidable(
        self,
        extra_specs: Texts,
        offers: Mapping[str, Iterable[str]],
        raising: Mapping[str, Mapping[str, str]],
    ) -> bool:
        """Whether Nova can come to an answer before it meets what raises.

        It does where every key has another value that matches, or where a key is rejected
        without anything that raises.
        """
        all_match = True
        for key, bare, text in demands(extra_specs):
            rest = [value for value in offers.get(bare, ()) if value not in raising[key]]
            if not self._passes({key: text}, _host([{bare: ",".join(rest)}] if rest else [])):
                if not raising[key]:
                    return True
                all_match = False
        return all_match

    def _raised_by(self, key: str, text: str, value: str) -> str:
        """What asking for the text raises where this value alone is offered; empty for nothing."""
        _, bare, _ = next(demands({key: text}))
        try:
            self._passes({key: text}, _host([{bare: value}]))
        except Exception as error:  # noqa: BLE001  (whatever Nova raises is its answer)
            return ends_in(text, value, error)
        return ""

    def _passes(self, extra_specs: Texts, host: Any) -> bool:
        flavor = objects.Flavor(extra_specs=dict(extra_specs))
        request = objects.RequestSpec(flavor=flavor, scheduler_hints={})
        return bool(self._filter.host_passes(host, request))


def _host_of_aggregates(aggregates: tuple[Aggregate, ...]) -> tuple[Any, dict[str, set[str]]]:
    """The host as Nova has it, and the values that Nova reads from its aggregates."""
    host = _host([aggregate.metadata for aggregate in aggregates])
    return host, dict(utils.aggregate_metadata_get_by_host(host))


def _host(metadata: Iterable[Texts]) -> Any:
    host = host_manager.HostState("host", "node", _UUID)
    host.aggregates = [objects.Aggregate(metadata=dict(said)) for said in metadata]
    return host


def _version() -> str:
    try:
        return importlib.metadata.version("nova")
    except importlib.metadata.PackageNotFoundError:  # there as a folder of source only
        return "of an unknown version"
