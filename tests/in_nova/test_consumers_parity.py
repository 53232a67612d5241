"""The same answers from the store as from a real Placement, over generated sequences of requests.

What is different on purpose has a name, and a test of it.
"""

import collections
import copy
import dataclasses
import itertools
from collections.abc import Callable, Iterator
from typing import Any

import placements
import pytest
from consumers_in_both import (
    LATEST,
    PROVIDERS,
    Both,
    body,
    new,
    placement_with_plenty,
    status,
    store_in,
)
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from steelyard.consumers import ConsumerStore, PlacementConsumers
from steelyard.errors import Conflict, InvalidAllocations, InvalidConsumerType

NUMBERS = itertools.count()


@pytest.fixture(scope="module")
def placement() -> Iterator[Any]:
    with placement_with_plenty() as client:
        yield client


@pytest.fixture(scope="module")
def store(tmp_path_factory: Any) -> ConsumerStore:
    return store_in(tmp_path_factory.mktemp("store"))


@pytest.fixture
def both(placement: Any, store: ConsumerStore) -> Both:
    return Both(placement, store)


@dataclasses.dataclass(frozen=True)
class Fault:
    """Something that is wrong with a body, mostly: what is done at which of its places."""

    how: str
    place: int
    name: str
    scrap: Any


@dataclasses.dataclass(frozen=True)
class Said:
    """What is said of a consumer."""

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
takings = st.one_of(
    st.builds(lambda said: {"resources": said}, amounts),
    st.builds(lambda said: {"resources": said, "generation": 10**30}, amounts),
)
DASHLESS = PROVIDERS[0].replace("-", "")
scraps = among(
    *(None, True, False, "", "1", "x", "é", "instance", "unknown", "all", "ALL", " INSTANCE"),
    *("A" * 255, "A" * 256, -1, 0, 1, 1.0, 1.5, 2**31, -(2**31), 2**64, 10**30, 1e30),
    *([], [1], [PROVIDERS[0]], {}, {"x": 1}, {"VCPU": 1}, {PROVIDERS[0]: {}}),
)
odd_names = among("", "x", "vcpu", "VCPU\n", " VCPU", "A" * 256, DASHLESS, f"{{{PROVIDERS[0]}}}")
faults = st.builds(
    Fault, among("replace", "replace", "drop", "add", "rename"), st.integers(0), odd_names, scraps
)
# What can be made of a UUID, some of which is one too.
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda uuid: uuid,
    "dashless": lambda uuid: uuid.replace("-", ""),
    "braces": lambda uuid: f"{{{uuid}}}",
    "urn": lambda uuid: f"urn:uuid:{uuid}",
    "short": lambda uuid: uuid[:-1],
    "sign": lambda uuid: f"+{uuid[1:]}",
    "prefix": lambda uuid: f"0x{uuid[2:]}",
    "underscore": lambda uuid: f"{uuid[0]}_{uuid[2:]}",
    "digit of another script": lambda uuid: f"{uuid[:-1]}\N{ARABIC-INDIC DIGIT ONE}",
    "space": lambda uuid: f"{uuid[:-1]} ",
    "words": lambda uuid: "not a UUID",
}


def sayings(
    spellings: st.SearchStrategy[str],
    faults: st.SearchStrategy[Fault | None],
    generations: st.SearchStrategy[str],
    least: int = 0,
) -> st.SearchStrategy[Said]:
    return st.builds(
        Said,
        consumer=among(*CONSUMERS),
        spelling=spellings,
        allocations=st.dictionaries(among(*PROVIDERS), takings, min_size=least, max_size=2),
        project=among(0, 0, 1),
        user=among(*USERS),
        kind=among("INSTANCE", "MIGRATION", "UNKNOWN", "INTANCE"),
        generation=generations,
        mappings=among(..., ..., {"": PROVIDERS}, {"_a": [DASHLESS]}, {"?": "not looked at"}),
        fault=faults,
    )


def groups(said: st.SearchStrategy[Said], least: int = 0) -> st.SearchStrategy[list[Said]]:
    return st.lists(said, min_size=least, max_size=3, unique_by=lambda one: one.consumer)


plain, flawless = st.just("as it is"), st.none()
# A generation is what the last answer said, mostly; or one more, or none.
generations = among("read", "read", "read", "read", "later", "none")
spellings = st.one_of(plain, among(*SPELLINGS))
first = sayings(plain, flawless, st.just("none"), 1)
sound = sayings(plain, flawless, generations)
later = sayings(plain, flawless, among("later", "none"), 1)
faulty = sayings(plain, faults, st.just("read"))
odd = sayings(spellings, st.one_of(flawless, faults), generations)
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
    """Every name in every object, with the object."""
    for name in found if isinstance(found, dict) else ():
        yield found, name
        yield from places(found[name])


def spoiled(whole: dict[str, Any], fault: Fault) -> dict[str, Any]:
    made = copy.deepcopy(whole)
    every = list(places(made))
    inside, name = every[fault.place % len(every)]
    match fault.how:
        case "replace":
            inside[name] = fault.scrap
        case "drop":
            del inside[name]
        case "add":
            inside[fault.name] = fault.scrap
        case "rename":
            inside[fault.name] = inside.pop(name)
    return made


def spelled(uuid: str, spelling: str) -> str:
    return SPELLINGS[spelling](uuid)


class Sequence:
    """What happens to a few consumers of two new projects."""

    def __init__(self, both: Both) -> None:
        self.both = both
        number = next(NUMBERS)
        self.consumers = [f"2{number:07x}-abcd-4000-8000-00000000000{n}" for n in CONSUMERS]
        self.projects = [f"project {number}", f"PROJECT {number}"]

    def happen(self, operation: str, what: Any) -> None:
        match operation:
            case "put":
                self.both.put(
                    spelled(self.consumers[what.consumer], what.spelling), self.body(what)
                )
                self.both.get(self.consumers[what.consumer])
            case "post" | "reshape":
                whole = {
                    spelled(self.consumers[one.consumer], one.spelling): self.body(one)
                    for one in what
                }
                getattr(self.both, operation)(whole)
                for one in what:
                    self.both.get(self.consumers[one.consumer])
            case "delete" | "get":
                getattr(self.both, operation)(self.consumers[what])
            case "usages":
                project, user, kind = what
                first, second = self.projects
                known = {"first": first, "second": second, "padded": f"{first} "}
                self.both.usages(known.get(project, project), user, kind)

    def body(self, what: Said) -> dict[str, Any]:
        read = self.both.store.get_allocations(self.consumers[what.consumer])
        generation = read.get("consumer_generation")
        generations = {"read": generation, "later": (generation or 0) + 1, "none": None}
        whole = {
            "allocations": what.allocations,
            "project_id": self.projects[what.project],
            "user_id": what.user,
            "consumer_generation": generations[what.generation],
            "consumer_type": what.kind,
            "mappings": what.mappings,
        }
        whole = {name: value for name, value in whole.items() if value is not ...}
        if what.fault:
            whole = spoiled(whole, what.fault)
        if generation is None and whole.get("allocations") == {}:
            # Nothing, for a consumer that is not there: a difference that has a name.
            whole["allocations"] = {PROVIDERS[0]: {"resources": {"VCPU": 1}}}
        return whole

    def look(self) -> None:
        """The end of it is the same."""
        for consumer in self.consumers:
            self.both.get(consumer)
        for project in self.projects:
            for user, kind in ((None, None), ("u", None), (None, "all")):
                self.both.usages(project, user, kind)


def test_the_same_answers(placement: Any, store: ConsumerStore) -> None:
    seen: collections.Counter[tuple[str, int | str]] = collections.Counter()

    # The same examples in each run: a new one that tells the two apart is for a person to judge.
    @settings(
        max_examples=180, derandomize=True, deadline=None, suppress_health_check=list(HealthCheck)
    )
    @given(operations=sequences)
    def law(operations: Any) -> None:
        both = Both(placement, store)
        sequence = Sequence(both)
        for operation, what in operations:
            sequence.happen(operation, what)
        sequence.look()
        seen.update(both.seen)

    law()
    # The examples reach every answer of every operation.
    for operation, answers in {
        "put": (204, 400, 409),
        "post": (204, 400, 409),
        "reshape": (204, 400, 409),
        "delete": (204, 404),
        "get": ("something", "nothing"),
        "usages": (200, 400),
    }.items():
        for answer in answers:
            assert seen[operation, answer] > 20, seen


def taking(resources: Any, provider: str = PROVIDERS[0]) -> Any:
    return {"allocations": {provider: {"resources": resources}}}


# By what is different: the change of a body that is in order, Placement's status and ours.
NAMED: dict[str, tuple[Any, int, int]] = {
    "a newline after a type": ({"consumer_type": "INSTANCE\n"}, 204, 400),
    "NUL in a project": ({"project_id": "p\0"}, 204, 400),
    "NUL in a user": ({"user_id": "\0"}, 204, 400),
    "a lone surrogate in a project": ({"project_id": "\ud800"}, 500, 400),
    "a lone surrogate in a user": ({"user_id": "u\udfff"}, 500, 400),
    "an amount beyond the tables": (taking({"VCPU": 2**31}), 409, 400),
    "a generation beyond the tables": ({"consumer_generation": 2**31 - 1}, 409, 400),
    "a generation below the tables": ({"consumer_generation": -(2**31)}, 409, 400),
    "a provider that is not there": (taking({"VCPU": 1}, new()), 400, 204),
    "a provider in upper case": (taking({"VCPU": 1}, PROVIDERS[0].upper()), 400, 204),
    "a provider with other dashes": (taking({"VCPU": 1}, f"{DASHLESS}----"), 400, 204),
    "a class that is not there": (taking({"CUSTOM_NOT_THERE": 1}), 400, 204),
    "a class without inventory": (taking({"PCI_DEVICE": 1}), 409, 204),
    "more than there is": (taking({"VCPU": 10**9 + 1}), 409, 204),
}


@pytest.mark.parametrize("name", NAMED)
def test_differences_of_writes(both: Both, name: str) -> None:
    change, theirs, ours = NAMED[name]
    whole = body(one={"VCPU": 1}) | change
    both.put(new(), whole, (theirs, ours))
    both.post({new(): whole}, (theirs, ours))
    both.reshape({new(): whole}, (theirs, ours))


def test_the_largest_and_the_longest_are_the_same(both: Both) -> None:
    """Beside the differences; what the store has no room for is told by its limit."""
    consumer = new()
    project, user, kind = "é" * 255, "🦊" * 255, "A" * 255
    much = {"VCPU": 10**9 - 10**6}
    assert both.put(consumer, body(None, kind, project=project, user=user, one=much)) == 204
    found = both.get(consumer)
    assert both.usages(project, user, kind) == {kind: {"consumer_count": 1, **much}}
    for generation in (2**31 - 2, 0, -1, -(2**31) + 1):
        assert both.put(consumer, {**found, "consumer_generation": generation}) == 409
    assert both.delete(consumer) == 204
    with pytest.raises(InvalidAllocations, match=r"VCPU: 2147483648 is greater than the maximum"):
        both.store.put_allocations(consumer, body(one={"VCPU": 2**31}))


@pytest.mark.parametrize("spelling", SPELLINGS)
def test_spellings_of_uuids(both: Both, spelling: str) -> None:
    """A PUT takes what is a UUID in any way, a POST and a reshape only the usual way."""
    first, second, third = (spelled(new(), spelling) for _ in range(3))
    written = both.put(first, body(one={"VCPU": 1}))
    assert written == (204 if spelling in {"as it is", "dashless", "braces", "urn"} else 400)
    usual = 204 if spelling == "as it is" else 400
    assert both.post({second: body(one={"VCPU": 1})}) == usual
    assert both.reshape({third: body(one={"VCPU": 1})}) == usual
    mapped = body(one={"VCPU": 1}) | {"mappings": {"a": [first]}}
    assert both.put(new(), mapped) == written


def test_differences_of_uuids(both: Both) -> None:
    """Placement reads the UUID of a PUT, and takes others as they are written."""
    consumer = "4abcdef0-0000-4000-8000-000000000001"
    whole = body(one={"VCPU": 1})
    assert both.put(consumer.upper(), whole) == 204
    both.get(consumer)
    assert status(lambda: both.store.get_allocations(consumer.upper()))[1] == both.get(consumer)
    answer = both.placement.get(f"/allocations/{consumer.upper()}", headers=LATEST)
    assert answer.json() == {"allocations": {}}
    other = new()
    both.post({other: whole, other.upper(): whole}, (204, 400))
    both.post({f"{new()}\n": whole}, (204, 400))
    both.post({"-" * 36: whole}, (204, 400))
    both.delete("not a UUID", (404, 400))
    assert both.placement.get("/allocations/x", headers=LATEST).json() == {"allocations": {}}
    assert status(lambda: both.store.get_allocations("x"))[0] == 400


@pytest.mark.parametrize(
    ("project", "user", "kind", "theirs"),
    [
        # Ours is UNKNOWN.
        ("p", None, "unknown", 200),
        # What only begins with "all" passes in Placement, and is no type that anybody has.
        ("p", None, "allocations", 200),
        ("p", None, "INSTANCE\n", 200),
        ("p\0", None, None, 200),
        ("p", "u\0", None, 200),
        ("\ud800", None, None, 500),
        ("p", "\ud800", None, 500),
    ],
)
def test_differences_of_queries(
    both: Both, project: str, user: Any, kind: Any, theirs: int
) -> None:
    both.usages(project, user, kind, named=(theirs, 400))


def test_writing_nothing_for_a_consumer_that_is_not_there(both: Both) -> None:
    """Placement then has a consumer without allocations, with the generation 0; we have none."""
    for write in (both.put, lambda consumer, said, named: both.post({consumer: said}, named)):
        consumer = new()
        write(consumer, body(), (204, 204))
        write(consumer, body(), (409, 204))
        assert both.get(consumer) == {"allocations": {}}


def write(consumer: str, generation: int | None, kind: str, project: str, **amounts: int) -> Any:
    return {consumer: body(generation, kind, project=project, one=amounts)}


def test_the_client_says_what_the_store_says(placement: Any, store: ConsumerStore) -> None:
    one, other = (f"4fffffff-0000-4000-8000-00000000000{n}" for n in (1, 2))
    project = "of the client"
    client = PlacementConsumers(placement)
    for model in (client, store):
        said = write(one, None, "INSTANCE", project, VCPU=2)
        model.post_allocations(said | write(other, None, "MIGRATION", project, VCPU=3))
        found = model.get_allocations(one)
        assert (found["consumer_generation"], found["consumer_type"]) == (1, "INSTANCE")
        model.put_allocations(one, found)
        with pytest.raises(Conflict):
            model.put_allocations(one, found)
        with pytest.raises(InvalidAllocations):
            model.put_allocations(one, {**found, "consumer_type": "instance"})
    for asked in ((), ("u",), ("u", "all"), (None, "INSTANCE"), (None, "UNKNOWN"), ("v", None)):
        assert client.usages(project, *asked) == store.usages(project, *asked)
    assert client.count(project) == store.count(project) == 2
    assert client.count(project, "u", "INSTANCE") == 1
    with pytest.raises(InvalidConsumerType, match="UNKNOWN cannot be written to Placement"):
        client.post_allocations(write(one, 2, "UNKNOWN", project, VCPU=1))
    with pytest.raises(InvalidConsumerType, match="'instance' is no consumer type"):
        client.usages(project, None, "instance")


def test_what_has_no_type_and_what_is_called_unknown_are_one(placement: Any, caplog: Any) -> None:
    untyped, called = (f"5fffffff-0000-4000-8000-00000000000{n}" for n in (1, 2))
    project = "of nobody knows whom"
    old = write(untyped, None, "", project, VCPU=2)
    del old[untyped]["consumer_type"]
    assert placement.post("/allocations", json=old, headers=placements.at("1.37")).ok
    client = PlacementConsumers(placement)
    assert client.get_allocations(untyped)["consumer_type"] == "UNKNOWN"
    one = {"consumer_count": 1, "VCPU": 2}
    assert client.usages(project) == {"usages": {"UNKNOWN": one}}
    stored = write(called, None, "UNKNOWN", project, VCPU=5)
    assert placement.post("/allocations", json=stored, headers=LATEST).ok
    both = {"usages": {"UNKNOWN": {"consumer_count": 2, "VCPU": 7}}}
    with caplog.at_level("WARNING"):
        assert client.usages(project) == client.usages(project, None, "UNKNOWN") == both
    assert "Somebody has stored consumers with the type UNKNOWN" in caplog.text


def test_the_client_reshapes(placement: Any) -> None:
    consumer = "6fffffff-0000-4000-8000-000000000001"
    client = PlacementConsumers(placement)
    client.post_allocations(write(consumer, None, "INSTANCE", "of the reshaper", VCPU=2))
    url = f"/resource_providers/{PROVIDERS[1]}/inventories"
    there = placement.get(url, headers=LATEST).json()
    moved = write(consumer, 1, "MIGRATION", "of the reshaper", VCPU=3)
    client.reshape({"inventories": {PROVIDERS[1]: there}, "allocations": moved})
    found = client.get_allocations(consumer)
    assert (found["consumer_type"], found["consumer_generation"]) == ("MIGRATION", 2)
