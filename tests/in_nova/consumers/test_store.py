"""The store compared with a real Placement, over generated sequences of requests.

The intended differences have tests in ``test_store_differences.py``.
"""

import copy
import dataclasses
import itertools
from collections.abc import Iterator
from typing import Any

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.consumers import ConsumerStore
from support.examples import examples
from support.nova.consumers_in_both import (
    DASHLESS,
    PROVIDERS,
    SPELLINGS,
    Both,
    spelled,
)

NUMBERS = itertools.count()


@dataclasses.dataclass(frozen=True)
class Fault:
    """A change at one place of a body that mostly makes it invalid."""

    action: str
    place: int
    name: str
    value: Any


@dataclasses.dataclass(frozen=True)
class GeneratedWrite:
    """A generated write of one consumer."""

    consumer: int
    spelling: str
    allocations: dict[str, Any]
    project: int
    user: str
    kind: str
    generation: str
    mappings: Any
    fault: Fault | None


def among(*values: Any) -> st.SearchStrategy[Any]:
    return st.sampled_from(values)


CONSUMERS = range(4)
USERS = ("u", "v", "U", "u ")
amounts = st.dictionaries(
    among("VCPU", "MEMORY_MB", "DISK_GB"), st.integers(1, 9), min_size=1, max_size=2
)
provider_allocations = st.one_of(
    st.builds(lambda found: {"resources": found}, amounts),
    st.builds(lambda found: {"resources": found, "generation": 10**30}, amounts),
)
fault_values = among(
    *(None, True, False, "", "1", "x", "é", "instance", "unknown", "all", "ALL", " INSTANCE"),
    *("A" * 255, "A" * 256, -1, 0, 1, 1.0, 1.5, 2**31, -(2**31), 2**64, 10**30, 1e30),
    *([], [1], [PROVIDERS[0]], {}, {"x": 1}, {"VCPU": 1}, {PROVIDERS[0]: {}}),
)
odd_names = among("", "x", "vcpu", "VCPU\n", " VCPU", "A" * 256, DASHLESS, f"{{{PROVIDERS[0]}}}")
faults = st.builds(
    Fault,
    among("replace", "replace", "drop", "add", "rename"),
    st.integers(0),
    odd_names,
    fault_values,
)


def writes_of(
    spellings: st.SearchStrategy[str],
    faults: st.SearchStrategy[Fault | None],
    generations: st.SearchStrategy[str],
    least: int = 0,
) -> st.SearchStrategy[GeneratedWrite]:
    return st.builds(
        GeneratedWrite,
        consumer=among(*CONSUMERS),
        spelling=spellings,
        allocations=st.dictionaries(
            among(*PROVIDERS), provider_allocations, min_size=least, max_size=2
        ),
        project=among(0, 0, 1),
        user=among(*USERS),
        kind=among("INSTANCE", "MIGRATION", "UNKNOWN", "INTANCE"),
        generation=generations,
        mappings=among(..., ..., {"": PROVIDERS}, {"_a": [DASHLESS]}, {"?": "ignored"}),
        fault=faults,
    )


def groups(
    writes: st.SearchStrategy[GeneratedWrite], least: int = 0
) -> st.SearchStrategy[list[GeneratedWrite]]:
    return st.lists(writes, min_size=least, max_size=3, unique_by=lambda one: one.consumer)


plain, flawless = st.just("as it is"), st.none()
# Mostly the generation of the last answer; else the next one, or none.
generations = among("read", "read", "read", "read", "later", "none")
spellings = st.one_of(plain, among(*SPELLINGS))
first = writes_of(plain, flawless, st.just("none"), 1)
sound = writes_of(plain, flawless, generations)
later = writes_of(plain, flawless, among("later", "none"), 1)
faulty = writes_of(plain, faults, st.just("read"))
odd = writes_of(spellings, st.one_of(flawless, faults), generations)
single = st.one_of(sound, sound, later, faulty, odd)
many = st.one_of(groups(sound, 1), groups(sound, 1), groups(later, 1), groups(faulty), groups(odd))
queries = st.tuples(
    among(*["first"] * 6, "second", "padded", "nobody's", "", "p" * 255, "p" * 256),
    among(*[None] * 4, *USERS, "", "u" * 255, "u" * 256),
    among(
        *[None] * 3,
        *("all", "INSTANCE", "UNKNOWN", "NOBODY", "ALL", "A" * 255),
        *("A" * 256, "", "instance", "INSTANCE ", "INSTANCE,MIGRATION"),
    ),
)
operations = st.one_of(
    st.tuples(st.just("put"), single),
    st.tuples(among("post", "reshape"), many),
    st.tuples(st.just("delete"), among(*CONSUMERS)),
    st.tuples(st.just("get"), among(*CONSUMERS)),
    st.tuples(st.just("usages"), queries),
)
sequences = st.builds(
    lambda beginning, rest: [("post", beginning), *rest],
    groups(first, 2),
    st.lists(operations, min_size=6, max_size=16),
)


def places(found: Any) -> Iterator[tuple[dict[str, Any], str]]:
    """Yield each name in each nested object, with the object."""
    for name in found if isinstance(found, dict) else ():
        yield found, name
        yield from places(found[name])


def with_fault(whole: dict[str, Any], fault: Fault) -> dict[str, Any]:
    made = copy.deepcopy(whole)
    every = list(places(made))
    inside, name = every[fault.place % len(every)]
    match fault.action:
        case "replace":
            inside[name] = fault.value
        case "drop":
            del inside[name]
        case "add":
            inside[fault.name] = fault.value
        case "rename":
            inside[fault.name] = inside.pop(name)
    return made


class Sequence:
    """A few consumers of two new projects, on which both models run the same operations."""

    def __init__(self, both: Both) -> None:
        self.both = both
        number = next(NUMBERS)
        self.consumers = [f"2{number:07x}-abcd-4000-8000-00000000000{n}" for n in CONSUMERS]
        self.projects = [f"project {number}", f"PROJECT {number}"]

    def run(self, operation: str, operand: Any) -> None:
        match operation:
            case "put":
                self.both.put(
                    spelled(self.consumers[operand.consumer], operand.spelling), self.body(operand)
                )
                self.both.get(self.consumers[operand.consumer])
            case "post" | "reshape":
                whole = {
                    spelled(self.consumers[one.consumer], one.spelling): self.body(one)
                    for one in operand
                }
                getattr(self.both, operation)(whole)
                for one in operand:
                    self.both.get(self.consumers[one.consumer])
            case "delete" | "get":
                getattr(self.both, operation)(self.consumers[operand])
            case "usages":
                project, user, kind = operand
                first, second = self.projects
                known = {"first": first, "second": second, "padded": f"{first} "}
                self.both.usages(known.get(project, project), user, kind)

    def body(self, operand: GeneratedWrite) -> dict[str, Any]:
        read = self.both.store.get_allocations(self.consumers[operand.consumer])
        generation = read.get("consumer_generation")
        generations = {"read": generation, "later": (generation or 0) + 1, "none": None}
        whole = {
            "allocations": operand.allocations,
            "project_id": self.projects[operand.project],
            "user_id": operand.user,
            "consumer_generation": generations[operand.generation],
            "consumer_type": operand.kind,
            "mappings": operand.mappings,
        }
        whole = {name: value for name, value in whole.items() if value is not ...}
        if operand.fault:
            whole = with_fault(whole, operand.fault)
        if generation is None and whole.get("allocations") == {}:
            # Writing nothing for a missing consumer is an intended difference.
            whole["allocations"] = {PROVIDERS[0]: {"resources": {"VCPU": 1}}}
        return whole

    def compare(self) -> None:
        """Compare the final state of both models."""
        for consumer in self.consumers:
            self.both.get(consumer)
        for project in self.projects:
            for user, kind in ((None, None), ("u", None), (None, "all")):
                self.both.usages(project, user, kind)


# Each run has the same examples, since a person must judge a new difference. The tests in
# test_store_gabbi_cases.py cover each answer of each operation.
@settings(max_examples=examples(25), suppress_health_check=list(HealthCheck))
@given(operations=sequences)
def test_store_answers_as_placement(placement: Any, store: ConsumerStore, operations: Any) -> None:
    sequence = Sequence(Both(placement, store))
    for operation, operand in operations:
        sequence.run(operation, operand)
    sequence.compare()
