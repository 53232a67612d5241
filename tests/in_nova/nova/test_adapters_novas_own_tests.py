"""Nova's own unit tests of its filter and soft-affinity weighers, run on steelyard's plugins.

Nova's tests of the filter patch a helper that returns metadata: a shim turns the metadata into an
aggregate. The tests of the weighers set Nova's multipliers: shims read these. All of Nova's tests
run; the parity tests list the differences.
"""

from types import SimpleNamespace
from typing import Any
from unittest import mock

from nova.tests.unit.scheduler.filters import test_aggregate_instance_extra_specs_filters as novas
from nova.tests.unit.scheduler.weights import test_weights_affinity as novas_weighers

# isort: split
from nova import conf
from nova.scheduler.filters import utils
from nova.scheduler.weights import affinity

import steelyard.nova
from steelyard.attributes import read
from support.nova.clouds import UnderPytest


class FilterShim(steelyard.nova.AggregateInstanceTypeFilter):  # type: ignore[misc]  # made at run time
    def host_passes(self, host: Any, spec: Any) -> bool:
        if not read(spec.flavor, "extra_specs"):  # then Nova does not read the metadata
            return bool(super().host_passes(host, spec))
        found = utils.aggregate_metadata_get_by_host(host)
        metadata = {key: ", ".join(sorted(values)) for key, values in found.items()}
        host.aggregates = [SimpleNamespace(name="patched", metadata=metadata)]
        return bool(super().host_passes(host, spec))


class NovasOwnTests(UnderPytest, novas.TestAggregateInstanceExtraSpecsFilter):  # type: ignore[misc]  # as above
    def setUp(self) -> None:
        super().setUp()
        self.filt_cls = FilterShim()


class SoftAffinityShim(steelyard.nova.ServerGroupSoftAffinityWeigher):  # type: ignore[misc]  # as above
    def multiplier(self) -> float:
        return float(conf.CONF.filter_scheduler.soft_affinity_weight_multiplier)


class SoftAntiAffinityShim(steelyard.nova.ServerGroupSoftAntiAffinityWeigher):  # type: ignore[misc]  # as above
    def multiplier(self) -> float:
        return float(conf.CONF.filter_scheduler.soft_anti_affinity_weight_multiplier)


class NovasOwnSoftAffinityTests(UnderPytest, novas_weighers.SoftAffinityWeigherTestCase):  # type: ignore[misc]  # as above
    def setUp(self) -> None:
        with mock.patch.object(affinity, "ServerGroupSoftAffinityWeigher", SoftAffinityShim):
            super().setUp()
        assert isinstance(self.weighers[0], SoftAffinityShim)


class NovasOwnSoftAntiAffinityTests(UnderPytest, novas_weighers.SoftAntiAffinityWeigherTestCase):  # type: ignore[misc]  # as above
    def setUp(self) -> None:
        with mock.patch.object(
            affinity, "ServerGroupSoftAntiAffinityWeigher", SoftAntiAffinityShim
        ):
            super().setUp()
        assert isinstance(self.weighers[0], SoftAntiAffinityShim)
