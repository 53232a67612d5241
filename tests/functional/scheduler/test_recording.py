"""Recording of placed servers in a consumer store."""

import io
import json
import pathlib
from typing import Any

import pytest

from steelyard import cli
from steelyard.cloud import Cloud, Flavor, Host
from steelyard.cloud.derived_uuids import uuid_of
from steelyard.consumers import ConsumerStore
from steelyard.errors import BadRequest, Conflict, InvalidConsumerType, NoAccess, ServiceError
from steelyard.scheduler import FilterScheduler
from steelyard.scheduler.recording import Recorder

pytestmark = pytest.mark.usefixtures("closed_databases")

A, B = (f"10000000-0000-4000-8000-00000000000{n}" for n in (1, 2))
HAS = {"vcpus": 8, "disk_gb": 100, "resources": {"CUSTOM_LICENCE": 8, "VGPU": 8}}
CLOUD = {
    "hosts": {"a": {**HAS, "ram_mb": 8192, "uuid": A}, "b": {**HAS, "ram_mb": 4096, "uuid": B}},
    "flavors": {
        "small": {
            "vcpus": 1,
            "ram_mb": 512,
            "disk_gb": 0,
            "extra_specs": {"resources:CUSTOM_LICENCE": "2", "resources1:VGPU": "1"},
        },
        "none": {"vcpus": 0, "ram_mb": 0, "disk_gb": 0},
    },
}
USED = {"VCPU": 1, "MEMORY_MB": 512, "CUSTOM_LICENCE": 2, "VGPU": 1}


@pytest.fixture
def path(tmp_path: pathlib.Path) -> pathlib.Path:
    made = tmp_path / "cloud.json"
    made.write_text(json.dumps(CLOUD))
    return made


@pytest.fixture
def scheduler(path: pathlib.Path) -> FilterScheduler:
    return FilterScheduler(Cloud.load(path))


@pytest.fixture
def placed(store: ConsumerStore, scheduler: FilterScheduler) -> str:
    """Return the UUID of a placed server that is recorded with generation 1."""
    selection = scheduler.select(scheduler.request("small"))
    with Recorder(scheduler, store, "p", "u").recorded(selection):
        scheduler.commit(selection)
    return selection.servers[0].uuid


def idle(body: Any) -> None:
    pass


class Model:
    """A store that calls ``before`` and ``after`` around its first write."""

    def __init__(self, store: ConsumerStore, before: Any = idle, after: Any = idle) -> None:
        self.store = store
        self.before = before
        self.after = after

        self.get_allocations = store.get_allocations
        self.usages = store.usages
        self.count = store.count

    def post_allocations(self, body: Any) -> None:
        before, after = self.before, self.after
        self.before = self.after = idle
        before(body)
        self.store.post_allocations(body)
        after(body)


class Strict(Model):
    """A store that, as Placement, rejects writes of the type UNKNOWN."""

    def post_allocations(self, body: Any) -> None:
        if any(said["consumer_type"] == "UNKNOWN" for said in body.values()):
            raise InvalidConsumerType("UNKNOWN")
        super().post_allocations(body)


def raising(error: BaseException) -> Any:
    def act(body: Any) -> None:
        raise error

    return act


def of(store: ConsumerStore, uuid: str, **changed: Any) -> Any:
    return {**store.get_allocations(uuid), **changed}


def test_schedule_records_servers_and_move_updates_record(
    store: ConsumerStore, url: str, path: pathlib.Path, capsys: Any
) -> None:
    schedule = ["schedule", "--cloud", str(path), "--flavor", "small", "--count", "2", "--commit"]
    assert cli.main([*schedule, "--url", url, "--project", "p", "--user", "u"]) == 0
    used = {name: 2 * amount for name, amount in USED.items()}
    assert store.usages("p", "u") == {"usages": {"INSTANCE": {"consumer_count": 2, **used}}}
    servers = Cloud.load(path).servers
    assert {server.host for server in servers.values()} == {"a"}
    one, other = servers
    assert store.get_allocations(one)["allocations"] == {A: {"resources": USED}}

    assert cli.main(["server", "move", "small-1", "--cloud", str(path), "--url", url]) == 0
    assert Cloud.load(path).servers[one].host == "b"
    assert of(store, one) == {
        "allocations": {B: {"resources": USED}},
        "project_id": "p",
        "user_id": "u",
        "consumer_generation": 2,
        "consumer_type": "INSTANCE",
    }
    assert store.get_allocations(other)["allocations"] == {A: {"resources": USED}}


def test_schedule_of_example_records_without_saving(store: ConsumerStore, url: str) -> None:
    argv = ["schedule", "--example", "--flavor", "db.medium", "--group", "db", "--count", "3"]
    assert cli.main([*argv, "--commit", "--url", url]) == 0
    resources = {"VCPU": 12, "MEMORY_MB": 49152, "DISK_GB": 300}
    assert store.usages("default", "default", "INSTANCE")["usages"]["INSTANCE"] == {
        "consumer_count": 3,
        **resources,
    }


def test_recorded_undoes_record_if_saving_fails(
    store: ConsumerStore, url: str, path: pathlib.Path, scheduler: FilterScheduler
) -> None:
    recorder = Recorder(scheduler, scheduler.consumers(url), "p", "u")
    selection = scheduler.select(scheduler.request("small"), 2)

    def save() -> None:
        assert store.count("p") == 2
        raise Conflict("changed meanwhile")

    with pytest.raises(Conflict, match="changed meanwhile"), recorder.recorded(selection):
        save()
    assert store.count("p") == 0


def test_recorded_restores_record_if_move_fails(
    store: ConsumerStore, scheduler: FilterScheduler
) -> None:
    recorder = Recorder(scheduler, store, "p", "u")
    selection = scheduler.select(scheduler.request("small"))
    with recorder.recorded(selection):
        scheduler.commit(selection)
    (server,) = scheduler.cloud.servers
    before = store.get_allocations(server)

    def save() -> None:
        assert store.get_allocations(server)["allocations"] == {B: {"resources": USED}}
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt), recorder.recorded(scheduler.select_move(server)):
        save()
    assert of(store, server) == {**before, "consumer_generation": 3}


def test_failed_undo_is_reported(store: ConsumerStore, scheduler: FilterScheduler) -> None:
    recorder = Recorder(scheduler, store, "p", "u")
    selection = scheduler.select(scheduler.request("small"))
    (server,) = selection.servers

    def save() -> None:
        store.put_allocations(server.uuid, store.get_allocations(server.uuid))
        raise OSError("the disk is full")

    with (
        pytest.raises(
            ServiceError, match="the disk is full; cannot undo the recorded allocations of"
        ),
        recorder.recorded(selection),
    ):
        save()


@pytest.mark.parametrize("error", [NoAccess("time-out"), ServiceError("500"), KeyboardInterrupt()])
def test_recorded_undoes_write_with_lost_response(
    store: ConsumerStore, scheduler: FilterScheduler, error: BaseException
) -> None:
    model = Model(store, after=raising(error))
    recorder = Recorder(scheduler, model, "p", "u")
    selection = scheduler.select(scheduler.request("small"), 2)
    with pytest.raises(type(error)) as raised, recorder.recorded(selection):
        pytest.fail("the block must not run after a failed write")
    assert raised.value is error
    assert store.count("p") == 0


def test_recorded_undoes_move_with_lost_response(
    store: ConsumerStore, scheduler: FilterScheduler, placed: str
) -> None:
    before = store.get_allocations(placed)
    recorder = Recorder(scheduler, Model(store, after=raising(NoAccess("time-out"))), "p", "u")
    with pytest.raises(NoAccess), recorder.recorded(scheduler.select_move(placed)):
        pytest.fail("the block must not run after a failed write")
    assert of(store, placed) == {**before, "consumer_generation": 3}


def test_unfinished_write_names_servers(store: ConsumerStore, scheduler: FilterScheduler) -> None:
    recorder = Recorder(scheduler, Model(store, before=raising(NoAccess("time-out"))), "p", "u")
    selection = scheduler.select(scheduler.request("small"), 2)
    with pytest.raises(ServiceError) as raised, recorder.recorded(selection):
        pytest.fail("the block must not run after a failed write")
    one, other = (server.uuid for server in selection.servers)
    assert str(raised.value) == (
        f"time-out; allocations of {one}, {other} are not recorded yet, but may be later"
    )


def test_undo_keeps_concurrent_change(
    store: ConsumerStore, scheduler: FilterScheduler, placed: str
) -> None:
    theirs = {A: {"resources": {"VCPU": 7}}}

    def write_concurrently(body: Any) -> None:
        store.put_allocations(placed, of(store, placed, allocations=theirs))
        raise KeyboardInterrupt

    for moment in ("before", "after"):
        recorder = Recorder(scheduler, Model(store, **{moment: write_concurrently}), "p", "u")
        move = scheduler.select_move(placed)
        with (
            pytest.raises(
                ServiceError, match=f"^KeyboardInterrupt; allocations of {placed} are not recorded"
            ),
            recorder.recorded(move),
        ):
            pytest.fail("the block must not run after a failed write")
        assert store.get_allocations(placed)["allocations"] == theirs


def test_unreadable_outcome_names_servers(
    store: ConsumerStore, scheduler: FilterScheduler, monkeypatch: Any
) -> None:
    model = Model(store)

    def lose(body: Any) -> None:
        monkeypatch.setattr(model, "get_allocations", raising(OSError("no route")))
        raise NoAccess("time-out")

    model.after = lose
    selection = scheduler.select(scheduler.request("small"))
    with (
        pytest.raises(ServiceError) as raised,
        Recorder(scheduler, model, "p", "u").recorded(selection),
    ):
        pytest.fail("the block must not run after a failed write")
    assert str(raised.value) == (
        f"time-out; allocations of {selection.servers[0].uuid} may be recorded, and cannot be read: "
        f"no route"
    )


def test_rejected_write_raises_original_error(
    store: ConsumerStore, scheduler: FilterScheduler
) -> None:
    recorder = Recorder(scheduler, Model(store, before=raising(Conflict("full"))), "p", "u")
    selection = scheduler.select(scheduler.request("small"))
    with pytest.raises(Conflict, match=r"^full$"), recorder.recorded(selection):
        pytest.fail("the block must not run after a rejected write")


def test_move_keeps_allocations_of_other_services(
    store: ConsumerStore, scheduler: FilterScheduler, placed: str
) -> None:
    card = {uuid_of("card"): {"resources": {"SRIOV_NET_VF": 1}}}
    at_host = {A: {"resources": {**USED, "PCPU": 3}}}
    kept = of(store, placed, allocations={**at_host, **card}, consumer_type="BAREMETAL")
    store.put_allocations(placed, kept)
    move = scheduler.select_move(placed)

    with pytest.raises(Conflict), Recorder(scheduler, store, "p", "u").recorded(move):
        raise Conflict
    assert of(store, placed) == {**kept, "consumer_generation": 4}

    with Recorder(scheduler, store, "p", "u").recorded(move):
        pass
    moved = {B: at_host[A], **card}
    assert of(store, placed) == {**kept, "consumer_generation": 5, "allocations": moved}


@pytest.mark.parametrize(
    ("there", "said"),
    [
        (
            {uuid_of("card"): 1},
            "on its host 'a' (10000000-0000-4000-8000-000000000001), only on",
        ),
        ({A: 1, B: 1}, "are already recorded on host 'b' (10000000-0000-4000-8000-000000000002)"),
    ],
)
def test_move_rejects_record_that_differs_from_cloud_file(
    store: ConsumerStore,
    scheduler: FilterScheduler,
    placed: str,
    there: dict[str, int],
    said: str,
) -> None:
    allocations = {provider: {"resources": {"VCPU": used}} for provider, used in there.items()}
    store.put_allocations(placed, of(store, placed, allocations=allocations))
    before = store.get_allocations(placed)
    move = scheduler.select_move(placed)
    with pytest.raises(Conflict) as raised, Recorder(scheduler, store, "p", "u").recorded(move):
        pytest.fail("the block must not run after a rejected write")
    assert f"of server 'small-1' ({placed}) {said}" in str(raised.value)
    assert store.get_allocations(placed) == before


@pytest.mark.parametrize(("kind", "left"), [(Model, "UNKNOWN"), (Strict, "INSTANCE")])
def test_move_replaces_unknown_type(
    store: ConsumerStore, scheduler: FilterScheduler, placed: str, kind: type[Model], left: str
) -> None:
    store.put_allocations(placed, of(store, placed, consumer_type="UNKNOWN"))
    recorder = Recorder(scheduler, kind(store), "p", "u")

    def save() -> None:
        assert of(store, placed)["consumer_type"] == "INSTANCE"
        raise Conflict("changed meanwhile")

    with pytest.raises(Conflict), recorder.recorded(scheduler.select_move(placed)):
        save()
    assert of(store, placed)["consumer_type"] == left


def test_schedule_with_repeated_seed_is_rejected(
    store: ConsumerStore, url: str, capsys: Any
) -> None:
    argv = ["schedule", "--example", "--commit", "--seed", "1", "--url", url]
    assert cli.main(argv) == 0
    before = store.usages("default")
    assert cli.main(argv) == 2
    said = capsys.readouterr().err
    assert "already recorded: the same seed yields the same UUIDs; use another seed, or" in said
    assert store.usages("default") == before


class Full(io.StringIO):
    """A stream that accepts no text, as /dev/full."""

    def write(self, text: str) -> int:
        raise OSError("no space left on device")


def test_unwritable_stderr_does_not_affect_commit(
    store: ConsumerStore, url: str, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    path = tmp_path / "cloud.yaml"
    path.write_text(f"# mine\n{json.dumps(CLOUD)}\n")
    monkeypatch.setattr("sys.stderr", Full())
    record = ["--cloud", str(path), "--url", url]
    assert cli.main(["schedule", "--flavor", "small", "--commit", *record]) == 0
    (server,) = Cloud.load(path).servers.values()
    assert list(store.get_allocations(server.uuid)["allocations"]) == [A]
    path.write_text(f"# mine\n{path.read_text()}")
    assert cli.main(["server", "move", server.name, *record]) == 0
    assert Cloud.load(path).servers[server.uuid].host == "b"
    assert list(store.get_allocations(server.uuid)["allocations"]) == [B]


def test_rejected_record_leaves_cloud_file_unchanged(
    url: str, tmp_path: pathlib.Path, path: pathlib.Path, capsys: Any
) -> None:
    (tmp_path / "consumers.db").touch()
    before = path.read_bytes()
    argv = ["schedule", "--cloud", str(path), "--flavor", "small", "--commit", "--url", url]
    assert cli.main(argv) == 2
    assert "run 'steelyard db upgrade'" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_move_of_unrecorded_server_is_rejected(
    store: ConsumerStore, url: str, path: pathlib.Path, capsys: Any
) -> None:
    assert cli.main(["schedule", "--cloud", str(path), "--flavor", "small", "--commit"]) == 0
    before = path.read_bytes()
    assert cli.main(["server", "move", "small-1", "--cloud", str(path), "--url", url]) == 2
    assert "no recorded allocations of server 'small-1'" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_recorded_rejects_flavor_without_resources(
    store: ConsumerStore, scheduler: FilterScheduler
) -> None:
    recorder = Recorder(scheduler, store, "p", "u")
    selection = scheduler.select(scheduler.request("none"))
    with (
        pytest.raises(BadRequest, match="missing resources; request some"),
        recorder.recorded(selection),
    ):
        pytest.fail("the block must not run after a rejected write")


def test_provider_uuid_is_derived_from_host_name(store: ConsumerStore) -> None:
    cloud = Cloud({"h": Host("h", 4, 4096, 100)}, flavors={"f": Flavor("f", 1, 1, 1)})
    scheduler = FilterScheduler(cloud)
    selection = scheduler.select(scheduler.request("f"))
    with Recorder(scheduler, store, "p", "u").recorded(selection):
        (server,) = selection.servers
    assert list(store.get_allocations(server.uuid)["allocations"]) == [uuid_of("h")]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--url", "sqlite://"], "only committed servers are recorded: add --commit"),
        (["--os-cloud", "x"], "only committed servers are recorded: add --commit"),
        (["--commit"], "no file to change: name one with --cloud"),
        (["--project", "shop"], "the owner of recorded allocations: add --url or --os-cloud"),
        (["--commit", "--user", "ada"], "the owner of recorded allocations: add --url or"),
        (["--commit", "--url", "sqlite:////no/such.db"], "no file '/no/such.db'"),
    ],
)
def test_schedule_rejects_contradictory_options(argv: list[str], said: str, capsys: Any) -> None:
    assert cli.main(["schedule", "--example", *argv]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("placement", "--url and the option consumer_model = placement contradict each other"),
        ("nosql", "no consumer model 'nosql'; installed: placement"),
    ],
)
def test_consumer_model_option_is_checked(
    path: pathlib.Path, tmp_path: pathlib.Path, model: str, said: str, capsys: Any
) -> None:
    configured = tmp_path / "steelyard.conf"
    configured.write_text(f"[steelyard]\nconsumer_model = {model}\n")
    argv = ["schedule", "--cloud", str(path), "--flavor", "small", "--commit"]
    assert cli.main(["--config-file", str(configured), *argv, "--url", "sqlite://"]) == 2
    assert said in capsys.readouterr().err
