"""The CPUs that the policies of flavors and images request."""

from collections.abc import Mapping

import pytest

from steelyard.analysis.why.rebuilding.cpus import CPUs, cpus
from steelyard.analysis.why.rebuilding.stated import RequestFails, Stated
from steelyard.cloud import Flavor
from support.analysis.wanted_servers import wanted_server

MIXED = {"hw:cpu_policy": "mixed"}
REALTIME = {**MIXED, "hw:cpu_realtime": "yes"}
DEDICATED = {"hw:cpu_policy": "dedicated"}


def read(extra_specs: Mapping[str, str], properties: Mapping[str, str] | None = None) -> CPUs:
    flavor = Flavor("m1", 4, 2048, 20, extra_specs)
    return cpus(Stated(wanted_server(flavor, image_properties=properties or {})))


@pytest.mark.parametrize(
    ("extra_specs", "properties", "amounts", "falls_back"),
    [
        ({}, {}, {}, False),
        ({"hw:cpu_policy": "shared"}, {}, {}, False),
        (DEDICATED, {}, {"PCPU": 4}, True),
        (DEDICATED, {"hw_cpu_policy": "shared"}, {"PCPU": 4}, True),
        ({}, {"hw_cpu_policy": "dedicated"}, {"PCPU": 4}, True),
        ({**DEDICATED, "hw:emulator_threads_policy": "isolate"}, {}, {"PCPU": 5}, True),
        ({**DEDICATED, "hw:emulator_threads_policy": "share"}, {}, {"PCPU": 4}, True),
        ({**MIXED, "hw:cpu_dedicated_mask": "0-2"}, {}, {"VCPU": 1, "PCPU": 3}, False),
        ({**MIXED, "hw:cpu_dedicated_mask": "^0-1"}, {}, {"VCPU": 2, "PCPU": 2}, False),
        ({**REALTIME, "hw:cpu_realtime_mask": "3"}, {}, {"VCPU": 3, "PCPU": 1}, False),
        (
            {**REALTIME, "hw:cpu_realtime_mask": "3"},
            {"hw_cpu_realtime_mask": "2,3"},
            {"VCPU": 2, "PCPU": 2},
            False,
        ),
    ],
)
def test_policies_request_cpus(
    extra_specs: dict[str, str],
    properties: dict[str, str],
    amounts: dict[str, int],
    falls_back: bool,
) -> None:
    found = read(extra_specs, properties)
    assert {name: amount for name, (amount, _) in found.amounts.items()} == amounts
    assert found.falls_back is falls_back


@pytest.mark.parametrize(
    ("extra_specs", "properties", "why"),
    [
        ({"hw:cpu_policy": "odd"}, {}, "'hw:cpu_policy' = 'odd': expected one of 'dedicated'"),
        ({}, {"hw_cpu_policy": "odd"}, "'hw_cpu_policy' = 'odd': expected one of"),
        (MIXED, {"hw_cpu_policy": "dedicated"}, "is forbidden by flavor 'm1', extra spec"),
        ({"hw:cpu_policy": "shared"}, {"hw_cpu_policy": "mixed"}, "is forbidden by flavor 'm1'"),
        ({"hw:emulator_threads_policy": "odd"}, {}, "expected 'share' or 'isolate'"),
        ({**MIXED, "hw:cpu_dedicated_mask": "0-3"}, {}, "expected some of the flavor's vCPUs"),
        ({**MIXED, "hw:cpu_dedicated_mask": "2-9"}, {}, "expected some of the flavor's vCPUs"),
        ({**MIXED, "hw:cpu_dedicated_mask": "2-x"}, {}, r"expected CPUs such as '0-3,\^1'"),
        ({**MIXED, "hw:cpu_dedicated_mask": "3-2"}, {}, r"expected CPUs such as '0-3,\^1'"),
        (REALTIME, {}, "'hw:cpu_realtime' without a mask: expected some"),
        ({**REALTIME, "hw:cpu_realtime_mask": "7"}, {}, "expected some of the flavor's vCPUs"),
        (
            {"hw:cpu_thread_policy": "require"},
            {"hw_cpu_thread_policy": "isolate"},
            "'hw_cpu_thread_policy' = 'isolate' is forbidden by",
        ),
    ],
)
def test_contradictory_policies_fail(
    extra_specs: dict[str, str], properties: dict[str, str], why: str
) -> None:
    with pytest.raises(RequestFails, match=why):
        read(extra_specs, properties)


@pytest.mark.parametrize(
    ("flavor", "image", "required"),
    [
        (None, None, None),
        ("prefer", "isolate", None),
        ("isolate", None, False),
        (None, "isolate", False),
        ("require", "require", True),
    ],
)
def test_thread_policies_decide_on_hyperthreading(
    flavor: str | None, image: str | None, required: bool | None
) -> None:
    specs = {} if flavor is None else {"hw:cpu_thread_policy": flavor}
    properties = {} if image is None else {"hw_cpu_thread_policy": image}
    found = read(specs, properties).hyperthreading
    assert (found and found[0]) == required
