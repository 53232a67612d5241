"""Nova's own unit tests for its filter, with ours in its place.

They feed metadata by patching a helper of Nova's: here, what the helper gives becomes an
aggregate. None of them is left out; what differs is listed in the parity tests.
"""

from types import SimpleNamespace
from typing import Any

from nova.scheduler.filters import utils
from nova.tests.unit.scheduler.filters import test_aggregate_instance_extra_specs_filters as novas

import steelyard.nova
from steelyard.attributes import read


class Shim(steelyard.nova.AggregateInstanceTypeFilter):  # type: ignore[misc]  # made at run time
    def host_passes(self, host: Any, spec: Any) -> bool:
        if not read(spec.flavor, "extra_specs"):  # then Nova does not look at the metadata
            return bool(super().host_passes(host, spec))
        found = utils.aggregate_metadata_get_by_host(host)
        metadata = {key: ", ".join(sorted(values)) for key, values in found.items()}
        host.aggregates = [SimpleNamespace(name="patched", metadata=metadata)]
        return bool(super().host_passes(host, spec))


class NovasOwnTests(novas.TestAggregateInstanceExtraSpecsFilter):  # type: ignore[misc]  # as above
    def setUp(self) -> None:
        super().setUp()
        self.filt_cls = Shim()
