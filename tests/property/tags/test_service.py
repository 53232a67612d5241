"""Invariants of tags under faults between the database and the backend."""

import functools
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import hypothesis
import pytest
import sqlalchemy as sa
from hypothesis.stateful import run_state_machine_as_test

from steelyard.tags import TagService, TagStore
from steelyard.tags.names import Owner
from steelyard.tags.service import Asking, Caller
from steelyard.tags.states.values import Instance
from support.examples import examples
from support.tags.failing_service import UNSURE, Fault
from support.tags.state_machine import HERE, MANY, NAMES, NEW, Tags

# Coverage doubles the time of these tests, and others reach the same lines.
pytestmark = pytest.mark.usefixtures("no_cover")


@pytest.fixture
def engine() -> Iterator[sa.Engine]:
    engine = sa.create_engine("sqlite://", poolclass=sa.StaticPool)
    TagStore(engine).upgrade()
    yield engine
    engine.dispose()


def test_state_machine_keeps_the_invariants(engine: sa.Engine) -> None:
    machine: Any = functools.partial(Tags, engine)
    found = hypothesis.settings(max_examples=examples(10), stateful_step_count=40)
    run_state_machine_as_test(machine, settings=found)


Call = Callable[[TagService, Asking], object]

# The number of jobs, the instance and the call. A job takes 20 tags; 30 of MANY exist.
CALLS: Sequence[tuple[int, Instance, Call]] = [
    (1, HERE[0], lambda service, asking: service.add(asking, HERE[0].id, NAMES[0])),
    (1, HERE[0], lambda service, asking: service.delete(asking, HERE[0].id, MANY[0])),
    (2, HERE[0], lambda service, asking: service.clear(asking, HERE[0].id)),
    (3, HERE[0], lambda service, asking: service.replace(asking, HERE[0].id, MANY[20:55])),
    (1, NEW, lambda service, _: service.create(Caller("p", "u"), NEW.name, ["b"], NEW.id)),
]


def called(
    machine: Tags, server: Instance, call: Call, faults: Iterable[Fault | None] = ()
) -> None:
    with machine.call(server, Owner.USER, faults, [NAMES[0], "b", *MANY]) as asking:
        call(machine.service, asking)
    machine.check_changed_instances()


def reconciled(machine: Tags, *_: object) -> None:
    machine.reconcile_all(give_up_after=0.0, others=False, working=False)
    machine.check_changed_instances()


# The places of a fault: the number of jobs before it, the instance and the call.
PLACES = [(before, server, call) for jobs, server, call in CALLS for before in range(jobs)]

# The next step: outcomes alone, the same call again, or a reconciliation.
NEXT: Sequence[Callable[[Tags, Instance, Call], None]] = [
    lambda machine, server, call: None,
    called,
    reconciled,
]


@pytest.mark.parametrize("fault", Fault)
def test_fault_at_each_step_keeps_the_invariants(engine: sa.Engine, fault: Fault) -> None:
    # Random histories rarely reach some of these faults.
    for place, (before, server, call) in enumerate(PLACES):
        # By default one next step: each follows each fault, and each place.
        for more in range(min(examples(1), len(NEXT))):
            follow = NEXT[(fault.value + place + more) % len(NEXT)]
            machine = Tags(engine)
            machine.register_instances()
            called(
                machine,
                HERE[0],
                lambda service, asking: service.replace(asking, HERE[0].id, MANY[:30]),
            )
            machine.finish_all_jobs(list, reconciled=False)
            machine.check_changed_instances()
            called(machine, server, call, [None] * before + [fault])
            assert machine.faults.happened[before] is fault
            # An operation with an unknown outcome stays pending until its job is found.
            assert fault not in UNSURE or machine.without_job()
            follow(machine, server, call)
            machine.finish_all_jobs(list.reverse, reconciled=False)
            machine.check_changed_instances()
            machine.teardown()
