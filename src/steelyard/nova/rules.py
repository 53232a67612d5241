"""The answers of Nova's filter, from the installed Nova."""

import functools
import importlib.metadata
from collections.abc import Iterable, Mapping
from typing import Any

from nova import objects
from nova.scheduler import host_manager
from nova.scheduler.filters import utils
from nova.scheduler.filters.aggregate_instance_extra_specs import AggregateInstanceExtraSpecsFilter

from steelyard.cloud import Aggregate
from steelyard.scheduler.rules import NovaAnswer, NovaVerdict, demands, ends_in

_UUID = "00000000-0000-4000-8000-000000000000"


class InstalledRules:
    """The answers of Nova's own filter, called with Nova's own objects.

    If the filter raises an error, which would fail a request in Nova, the error becomes the answer.
    """

    def __init__(self) -> None:
        objects.register_all()
        self.name = f"nova {_version()}"
        self._filter = AggregateInstanceExtraSpecsFilter()
        self._host_of = functools.lru_cache(maxsize=4096)(_host_of_aggregates)
        self._why_raises = functools.lru_cache(maxsize=65536)(self._raised_by)

    def judge(
        self, extra_specs: Mapping[str, str], aggregates: tuple[Aggregate, ...]
    ) -> NovaVerdict:
        """Return the answer of Nova's filter.

        If a value makes the filter raise, the answer tells whether another order of keys and values
        avoids that.
        """
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
                outcome = NovaAnswer.MAY_ABORT if avoidable else NovaAnswer.ABORTS
                return NovaVerdict(outcome, f"key {key!r}: {values[min(values)]}")
        try:
            passes = self._passes(extra_specs, host)
        except Exception as error:  # noqa: BLE001  (whatever Nova raises is its answer)
            return NovaVerdict(
                NovaAnswer.ABORTS, f"Nova's filter raises {type(error).__name__}: {error}"
            )
        return NovaVerdict(NovaAnswer.PASSES if passes else NovaAnswer.REJECTS)

    def _avoidable(
        self,
        extra_specs: Mapping[str, str],
        offers: Mapping[str, Iterable[str]],
        raising: Mapping[str, Mapping[str, str]],
    ) -> bool:
        """Return whether Nova can answer before it reads a value that raises.

        It can if every key has another value that matches, or if it rejects a key without such
        values.
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
        """Return a text about the error that this value alone raises, or an empty text."""
        _, bare, _ = next(demands({key: text}))
        try:
            self._passes({key: text}, _host([{bare: value}]))
        except Exception as error:  # noqa: BLE001  (whatever Nova raises is its answer)
            return ends_in(text, value, error)
        return ""

    def _passes(self, extra_specs: Mapping[str, str], host: Any) -> bool:
        flavor = objects.Flavor(extra_specs=dict(extra_specs))
        request = objects.RequestSpec(flavor=flavor, scheduler_hints={})
        return bool(self._filter.host_passes(host, request))


def _host_of_aggregates(aggregates: tuple[Aggregate, ...]) -> tuple[Any, dict[str, set[str]]]:
    """Return the host as Nova's own object, and the values that Nova reads from its aggregates."""
    host = _host([aggregate.metadata for aggregate in aggregates])
    return host, dict(utils.aggregate_metadata_get_by_host(host))


def _host(metadata: Iterable[Mapping[str, str]]) -> Any:
    host = host_manager.HostState("host", "node", _UUID)
    host.aggregates = [objects.Aggregate(metadata=dict(each)) for each in metadata]
    return host


def _version() -> str:
    try:
        return importlib.metadata.version("nova")
    except importlib.metadata.PackageNotFoundError:  # installed as a source folder only
        return "of an unknown version"
