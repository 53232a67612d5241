"""The backfill of consumer types in a real Placement, with conflicts and interruptions."""

import collections
import contextlib
import json
import random
import signal
import uuid
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from keystoneauth1 import adapter

from steelyard.consumers import ConsumerType, PlacementConsumers
from steelyard.consumers.backfill import (
    Backfill,
    BackfillOutcome,
    BackfillResult,
    Goal,
    candidates_of_providers,
)
from steelyard.errors import MicroversionTooLow
from support.examples import examples
from support.nova import placements
from support.nova.served_placement import PATIENCE, Steelyard, commands_on

AT = placements.at("1.39")
OLD = placements.at("1.37")
CLASSES = ("VCPU", "MEMORY_MB", "DISK_GB")
TYPES = (None, None, None, "UNKNOWN", "INSTANCE", "MIGRATION", "A_9")


class Cloud:
    """A Placement and its providers and consumers, which tests change directly."""

    def __init__(self, client: Any) -> None:
        self.client = client
        self.providers: list[str] = []

    def ask(self, method: str, url: str, headers: Any = AT, **more: Any) -> Any:
        answer = self.client.request(url, method, headers=headers, raise_exc=False, **more)
        assert answer.status_code in (200, 204), answer.text
        return answer.json() if answer.content else None

    def provider(self, **inventory: Any) -> str:
        made = str(uuid.uuid4())
        self.ask("POST", "/resource_providers", json={"name": made, "uuid": made})
        self.providers.append(made)
        self.inventory(made, **inventory)
        return made

    def inventory(self, provider: str, **changes: Any) -> None:
        url = f"/resource_providers/{provider}"
        body = {
            "inventories": {name: {"total": 10**6, **changes} for name in CLASSES},
            "resource_provider_generation": self.ask("GET", url)["generation"],
        }
        self.ask("PUT", f"{url}/inventories", json=body)

    def consumer(self, kind: str | None = None, project: str = "p", **more: Any) -> str:
        """Create a consumer with the type, or without one, as older services do."""
        made = str(uuid.uuid4())
        self.write(made, kind, project, **more)
        return made

    def write(self, consumer: str, kind: str | None, project: str, **more: Any) -> None:
        body = {
            "allocations": {self.providers[0]: {"resources": {"VCPU": 2, "DISK_GB": 7}}},
            "project_id": project,
            "user_id": "u",
            "consumer_generation": self.found(consumer).get("consumer_generation"),
            **more,
            **({} if kind is None else {"consumer_type": kind}),
        }
        self.ask("PUT", f"/allocations/{consumer}", OLD if kind is None else AT, json=body)

    def found(self, consumer: str) -> Any:
        return self.ask("GET", f"/allocations/{consumer}")

    def state(self, consumers: list[str]) -> dict[str, Any]:
        return {consumer: self.found(consumer) for consumer in consumers}

    def resources(self, consumers: list[str]) -> bytes:
        """Return everything that a backfill must not change, with usages and inventories."""
        owned = {}
        for consumer, found in self.state(consumers).items():
            for provider in found["allocations"].values():
                del provider["generation"]  # Placement increments it with each write
            found.pop("consumer_generation", None)
            found.pop("consumer_type", None)
            owned[consumer] = found
        used = [
            self.ask("GET", f"/resource_providers/{uuid}/usages")["usages"]
            for uuid in self.providers
        ]
        inventories = [
            self.ask("GET", f"/resource_providers/{uuid}/inventories")["inventories"]
            for uuid in self.providers
        ]
        return json.dumps([owned, used, inventories], sort_keys=True).encode()

    def populate(self, generator: random.Random, count: int) -> list[str]:
        """Create consumers of several types, projects and users, on up to three providers."""
        while len(self.providers) < 3:
            self.provider()
        return [
            self.consumer(
                generator.choice(TYPES),
                generator.choice("ppq"),
                user_id=generator.choice("uuv"),
                allocations=self.amounts(generator),
            )
            for _ in range(count)
        ]

    def amounts(self, generator: random.Random) -> Any:
        return {
            provider: {
                "resources": {
                    name: generator.randint(1, 99)
                    for name in generator.sample(CLASSES, generator.randint(1, 3))
                }
            }
            for provider in generator.sample(self.providers, generator.randint(1, 3))
        }


@pytest.fixture
def database_url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/placement.db"


@pytest.fixture
def cloud(database_url: str) -> Iterator[Cloud]:
    with placements.placement(database_url) as client:
        made = Cloud(client)
        made.provider()
        yield made


class Interceptor(adapter.Adapter):
    """An adapter that runs a function before it sends a request."""

    def __init__(self, cloud: Cloud, intercept: Callable[[str, str], None]) -> None:
        super().__init__(cloud.client.session, service_type="placement", raise_exc=False)
        self.intercept = intercept
        self.sent: collections.Counter[str] = collections.Counter()

    def request(self, url: str, method: str, **more: Any) -> Any:
        self.intercept(method, url)
        self.sent[method] += 1
        return super().request(url, method, **more)


def before_writing(*acts: Callable[[], Any]) -> Callable[[str, str], None]:
    """Return a function for Interceptor that runs the next action before each write."""
    todo = list(acts)

    def intercept(method: str, url: str) -> None:
        if method == "PUT" and todo:
            todo.pop(0)()

    return intercept


GOAL = Goal(ConsumerType("INSTANCE"), "p")


def backfill(
    cloud: Cloud, goal: Goal = GOAL, intercept: Any = lambda method, url: None
) -> Backfill:
    return Backfill(PlacementConsumers(Interceptor(cloud, intercept)), goal)


def all_candidates(cloud: Cloud) -> list[str]:
    client = PlacementConsumers(cloud.client)
    return candidates_of_providers(client, client.providers())


@pytest.mark.parametrize("seed", range(examples(1)))
@pytest.mark.parametrize("goal", [GOAL, Goal(ConsumerType("B"), "p", "v")])
def test_backfill_changes_only_types(cloud: Cloud, seed: int, goal: Goal) -> None:
    consumers = cloud.populate(random.Random(seed), 20)
    consumers += [cloud.consumer(user_id="v"), cloud.consumer("INSTANCE")]
    before, resources = cloud.state(consumers), cloud.resources(consumers)
    assert sorted(all_candidates(cloud)) == sorted(consumers)
    work = backfill(cloud, goal)
    foreseen = [work.examine(consumer) for consumer in all_candidates(cloud)]
    assert cloud.state(consumers) == before
    done = [work.change(consumer) for consumer in all_candidates(cloud)]
    assert cloud.resources(consumers) == resources
    assert [result.reason for result in done] == [result.reason for result in foreseen]
    changed = {result.consumer for result in done if result.outcome is BackfillOutcome.CHANGED}
    assert changed == {
        consumer
        for consumer, found in before.items()
        if found["consumer_type"] in ("unknown", "UNKNOWN")
        and found["project_id"] == goal.project
        and goal.user in (None, found["user_id"])
    }
    assert 0 < len(changed) < len(consumers)
    after = cloud.state(consumers)
    for consumer, found in after.items():
        was = before[consumer]
        added = int(consumer in changed)
        assert found["consumer_generation"] == was["consumer_generation"] + added
        assert found["consumer_type"] == (goal.type.name if added else was["consumer_type"])
    # A second run has nothing to do.
    again = [work.change(consumer) for consumer in all_candidates(cloud)]
    assert {result.outcome for result in again} == {BackfillOutcome.SKIPPED}
    assert cloud.state(consumers) == after


@pytest.mark.parametrize("seed", range(examples(1)))
def test_interrupted_backfills_complete_without_loss(cloud: Cloud, seed: int) -> None:
    generator = random.Random(seed)
    consumers = cloud.populate(generator, 25)
    resources = cloud.resources(consumers)
    unknown = ("unknown", "UNKNOWN")
    expected = {
        consumer: "INSTANCE"
        if found["project_id"] == "p" and found["consumer_type"] in unknown
        else found["consumer_type"]
        for consumer, found in cloud.state(consumers).items()
    }

    def types() -> dict[str, str]:
        return {key: found["consumer_type"] for key, found in cloud.state(consumers).items()}

    patience = interruptions = 0
    while types() != expected:
        patience += generator.randint(1, 12)
        left = patience

        def intercept(method: str, url: str) -> None:
            nonlocal left
            left -= 1
            if left == 0:
                raise KeyboardInterrupt

        work = backfill(cloud, intercept=intercept)
        with contextlib.suppress(KeyboardInterrupt):
            for consumer in consumers:
                work.change(consumer)
        interruptions += left == 0
        assert cloud.resources(consumers) == resources
    assert interruptions > 1  # the first two runs are too short to finish


def test_usages_count_the_new_type(cloud: Cloud) -> None:
    consumers = [cloud.consumer() for _ in range(3)]
    for consumer in consumers:
        backfill(cloud).change(consumer)
    found = PlacementConsumers(cloud.client).usages("p")
    assert found == {"usages": {"INSTANCE": {"consumer_count": 3, "VCPU": 6, "DISK_GB": 21}}}


def test_change_keeps_concurrent_writes(cloud: Cloud) -> None:
    consumer, more = cloud.consumer(), {cloud.providers[0]: {"resources": {"VCPU": 5}}}
    work = backfill(
        cloud,
        intercept=before_writing(
            lambda: cloud.write(consumer, None, "p", allocations=more),
            lambda: cloud.write(consumer, None, "p"),
            lambda: cloud.write(consumer, None, "p", allocations=more),
        ),
    )
    assert work.change(consumer) == BackfillResult(consumer, BackfillOutcome.CHANGED)
    found = cloud.found(consumer)
    assert found["consumer_type"] == "INSTANCE"
    assert found["allocations"][cloud.providers[0]]["resources"] == {"VCPU": 5}


def test_change_skips_consumer_with_concurrent_type_or_project(cloud: Cloud) -> None:
    typed, moved, gone, unused = (cloud.consumer() for _ in range(4))
    writers = {
        typed: lambda: cloud.write(typed, "MIGRATION", "p"),
        moved: lambda: cloud.write(moved, None, "q"),
        gone: lambda: cloud.ask("DELETE", f"/allocations/{gone}"),
    }
    results = {
        consumer: backfill(cloud, intercept=before_writing(intercept)).change(consumer)
        for consumer, intercept in writers.items()
    }
    assert results[typed].reason == "already has type MIGRATION"
    assert results[moved].reason == "belongs to another project"
    assert results[gone].reason == "has no allocations; it may have been deleted"
    assert {result.outcome for result in results.values()} == {BackfillOutcome.SKIPPED}
    assert cloud.found(typed)["consumer_type"] == "MIGRATION"
    assert cloud.found(moved)["consumer_type"] == "unknown"
    assert cloud.found(gone) == {"allocations": {}}
    assert set(all_candidates(cloud)) == {typed, moved, unused}


def test_change_reads_recreated_consumer_again(cloud: Cloud) -> None:
    consumer = cloud.consumer()
    cloud.write(consumer, None, "p")  # generation 2, which the new consumer does not have

    def replace() -> None:
        cloud.ask("DELETE", f"/allocations/{consumer}")
        cloud.write(consumer, None, "q")

    work = backfill(cloud, intercept=before_writing(replace))
    assert work.change(consumer).reason == "belongs to another project"


def test_change_after_repeated_conflicts_fails(cloud: Cloud) -> None:
    consumer = cloud.consumer()
    work = backfill(
        cloud, intercept=before_writing(*[lambda: cloud.write(consumer, None, "p")] * 12)
    )
    result = work.change(consumer)
    assert result.outcome is BackfillOutcome.FAILED
    assert "other clients changed it or its provider" in result.reason
    assert cloud.found(consumer)["consumer_type"] == "unknown"


def test_change_over_max_unit_fails_with_the_reason_of_placement(cloud: Cloud) -> None:
    consumer = cloud.consumer()
    cloud.inventory(cloud.providers[0], max_unit=1)
    before = cloud.state([consumer])
    interceptor = Interceptor(cloud, lambda method, url: None)
    result = Backfill(PlacementConsumers(interceptor), GOAL).change(consumer)
    assert result.outcome is BackfillOutcome.FAILED
    assert "answered 409" in result.reason
    assert "violate" in result.reason or "constraint" in result.reason, result.reason
    assert interceptor.sent["PUT"] == 1
    assert cloud.state([consumer]) == before


def test_change_over_capacity_keeps_allocations(cloud: Cloud) -> None:
    # Newer Placements accept a write that does not increase the overcommit.
    consumer = cloud.consumer()
    resources = cloud.found(consumer)["allocations"][cloud.providers[0]]["resources"]
    cloud.inventory(cloud.providers[0], total=1)
    result = backfill(cloud).change(consumer)
    assert result.outcome is BackfillOutcome.CHANGED or "answered 409" in result.reason
    found = cloud.found(consumer)
    assert found["allocations"][cloud.providers[0]]["resources"] == resources
    assert (found["consumer_type"] == "INSTANCE") is (result.outcome is BackfillOutcome.CHANGED)


def test_candidates_skip_deleted_provider(cloud: Cloud) -> None:
    consumer, provider = cloud.consumer(), cloud.provider()
    client = PlacementConsumers(cloud.client)
    providers = client.providers()
    cloud.ask("DELETE", f"/resource_providers/{provider}")
    assert candidates_of_providers(client, providers) == [consumer]


def test_change_with_unsupported_microversion_raises_error(cloud: Cloud) -> None:
    client = PlacementConsumers(Interceptor(cloud, lambda method, url: None))
    client.require_types()
    with pytest.MonkeyPatch.context() as patched:
        patched.setattr("steelyard.consumers.client._MICROVERSION", "1.99")
        with pytest.raises(MicroversionTooLow, match="answered 406"):
            Backfill(client, GOAL).change(cloud.consumer())
        with pytest.raises(MicroversionTooLow, match="consumer types need 1"):
            client.require_types()


@pytest.fixture
def served(cloud: Cloud, database_url: str, tmp_path: Any) -> Iterator[Steelyard]:
    with commands_on(database_url, tmp_path) as steelyard:
        yield steelyard


ARGV = ["consumer", "backfill", "--type", "INSTANCE", "--project", "p", "--os-cloud", "here"]


def row(outcome: str, count: int, reason: str | None = None) -> dict[str, Any]:
    return {"outcome": outcome, "consumers": count, "reason": reason}


def test_command_sets_types_and_reports_counts(cloud: Cloud, served: Steelyard) -> None:
    old = [cloud.consumer() for _ in range(3)]
    others = [cloud.consumer(project="q"), cloud.consumer("MIGRATION")]
    before, resources = cloud.state(old), cloud.resources(old + others)
    skipped = [
        row("skipped", 1, "already has type MIGRATION"),
        row("skipped", 1, "belongs to another project"),
    ]
    status, out, err = served(*ARGV, "--dry-run", "-f", "json")
    assert (status, err) == (0, "")
    assert json.loads(out)["outcomes"] == [row("would change", 3), *skipped]
    assert cloud.state(old) == before
    status, out, err = served(*ARGV)
    assert (status, err) == (0, "")
    assert "| changed |         3 |                            |" in out
    assert cloud.resources(old + others) == resources
    status, out, err = served(*ARGV, "-f", "json")
    assert (status, err) == (0, "")
    assert row("skipped", 3, "already has type INSTANCE") in json.loads(out)["outcomes"]
    assert {cloud.found(consumer)["consumer_type"] for consumer in old} == {"INSTANCE"}


def test_command_changes_only_listed_consumers(cloud: Cloud, served: Steelyard) -> None:
    listed, unlisted, gone = cloud.consumer(), cloud.consumer(), str(uuid.uuid4())
    text = f"# old\n\n{listed.upper()}\n{listed}\n{gone}  # deleted\n"
    status, out, _ = served(*ARGV, "--consumers", "-", "--long", "-f", "json", stdin=text)
    assert status == 0
    assert json.loads(out)["consumers"] == [
        {"consumer": listed, "outcome": "changed", "reason": None},
        {
            "consumer": gone,
            "outcome": "skipped",
            "reason": "has no allocations; it may have been deleted",
        },
    ]
    assert cloud.found(unlisted)["consumer_type"] == "unknown"


def test_list_with_malformed_line_sends_no_request(
    cloud: Cloud, served: Steelyard, tmp_path: Any
) -> None:
    path = tmp_path / "old.txt"
    path.write_text(f"{cloud.consumer()}\nweb-1\n")
    status, out, err = served(*ARGV, "--consumers", str(path))
    assert (status, out) == (2, "")
    assert err.startswith(f"steelyard: {path}, line 2: invalid UUID 'web-1'")
    assert served.requests() == []


def test_failed_consumer_sets_the_exit_status(cloud: Cloud, served: Steelyard) -> None:
    refused = cloud.consumer()
    cloud.inventory(cloud.providers[0], max_unit=1)
    fine = cloud.consumer(allocations={cloud.provider(): {"resources": {"VCPU": 1}}})
    status, out, err = served(*ARGV, "-f", "json")
    assert (status, err) == (1, "")
    changed, failed = json.loads(out)["outcomes"]
    assert changed == row("changed", 1)
    assert (failed["outcome"], failed["consumers"]) == ("failed", 1)
    assert "Placement answered 409" in failed["reason"]
    found = cloud.state([refused, fine])
    assert [each["consumer_type"] for each in found.values()] == ["unknown", "INSTANCE"]


def test_missing_permission_stops_with_one_error(cloud: Cloud, served: Steelyard) -> None:
    cloud.consumer()
    status, out, err = served(*ARGV, token="nobody")
    assert (status, out) == (2, "")
    assert err.startswith("steelyard: Placement answered 403: ")
    assert len(err.splitlines()) == 1


def test_backfill_when_interrupted_reports_finished_changes(
    cloud: Cloud, database_url: str, tmp_path: Any
) -> None:
    consumers = [cloud.consumer() for _ in range(6)]
    resources = cloud.resources(consumers)
    # Placement answers the third write only after the command has exited.
    with commands_on(database_url, tmp_path, held_write=3) as served:
        with served.started(*ARGV, "-f", "json") as process:
            served.wait_for_writes(3)
            process.send_signal(signal.SIGINT)
            out, err = process.communicate(timeout=PATIENCE)
        again = served(*ARGV, "-f", "json")
    assert process.returncode == 130
    assert json.loads(out)["outcomes"] == [row("changed", 2)]
    assert err == (
        "steelyard: interrupted\nsteelyard: stopped after 2 of 6 consumers; the listed ones are done, and the next one may be; run the command again for the rest\n"
    )
    # Placement has carried out the third write, although the command did not wait for it.
    status, out, _ = again
    assert status == 0
    assert json.loads(out)["outcomes"] == [
        row("changed", 3),
        row("skipped", 3, "already has type INSTANCE"),
    ]
    assert cloud.resources(consumers) == resources
