"""Quotas enforced by a real oslo.limit, with limits from a small Keystone."""

import pathlib
import re
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
from oslo_config import cfg
from oslo_limit import limit
from oslo_limit.exception import ProjectOverLimit

from steelyard.consumers import ConsumerStore, QuotaUsage
from support.clients.keystone import keystone
from support.consumers.store_laws import C1, C2, C3, body
from support.repository import DOCS

pytestmark = [
    pytest.mark.usefixtures("closed_databases"),
    pytest.mark.filterwarnings("ignore:.*(InfluxDB|service_type|_compute_attributes)"),
]

GUIDE = DOCS / "guides" / "enforce-quotas-with-oslo-limit.rst"
REGISTERED = {"servers": 2, "migrations": 5, "class:VCPU": 8, "class:DISK_GB": -1}
LIMITS = {"servers": "INSTANCE", "migrations": "MIGRATION"}


@pytest.fixture
def configured(tmp_path: pathlib.Path, monkeypatch: Any) -> Iterator[None]:
    """Configure oslo.limit in this process as the guide does, for another Keystone."""
    (block,) = re.findall(r"^   \[oslo_limit\]\n(?:   .+\n)+", GUIDE.read_text(), re.MULTILINE)
    with keystone(REGISTERED, {("big", "servers"): 3}) as url:
        path = tmp_path / "service.conf"
        path.write_text(textwrap.dedent(block).replace("https://keystone.example.org/v3", url))
        cfg.CONF([], default_config_files=[str(path)], default_config_dirs=[])
        monkeypatch.setattr(limit, "_SDK_CONNECTION", None)
        yield
        cfg.CONF.reset()


@pytest.fixture
def store(tmp_path: pathlib.Path) -> ConsumerStore:
    made = ConsumerStore(f"sqlite:///{tmp_path}/consumers.db")
    made.upgrade()
    made.put_allocations(C1, body(p1={"VCPU": 2, "DISK_GB": 100}))
    made.put_allocations(C2, body(kind="MIGRATION", p1={"VCPU": 4}))
    return made


@pytest.mark.usefixtures("configured")
def test_enforcer_counts_types_and_resource_classes(store: ConsumerStore) -> None:
    enforcer = limit.Enforcer(QuotaUsage(store, LIMITS))
    deltas = {"servers": 1, "class:VCPU": 2, "class:DISK_GB": 10**6}
    enforcer.enforce("p", deltas)
    enforcer.enforce("nobody", {"servers": 2, "class:VCPU": 8})
    with pytest.raises(ProjectOverLimit) as caught:
        enforcer.enforce("p", {"servers": 2, "class:VCPU": 3, "migrations": 4})
    over = [
        (each.resource_name, each.limit, each.current_usage, each.delta)
        for each in caught.value.over_limit_info_list
    ]
    assert over == [("class:VCPU", 8, 6, 3), ("servers", 2, 1, 2)]
    store.put_allocations(C3, body(p1={"VCPU": 2}))
    with pytest.raises(ProjectOverLimit):
        enforcer.enforce("p", deltas)
    used = enforcer.calculate_usage("p", ["servers", "migrations", "class:VCPU"])
    assert used == {"servers": (2, 2), "migrations": (5, 1), "class:VCPU": (8, 8)}


@pytest.mark.usefixtures("configured")
def test_enforcer_reads_the_limit_of_the_project(store: ConsumerStore) -> None:
    enforcer = limit.Enforcer(QuotaUsage(store, LIMITS))
    assert enforcer.calculate_usage("big", ["servers"]) == {"servers": (3, 0)}
    assert enforcer.calculate_usage("p", ["servers"]) == {"servers": (2, 1)}
