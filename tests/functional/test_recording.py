"""Servers that the scheduler places, recorded as consumers."""

import io
import json
import pathlib
from typing import Any

import pytest

from steelyard import cli
from steelyard.consumers import ConsumerStore
from steelyard.errors import BadRequest, Conflict, InvalidConsumerType, NoAccess, ServiceError
from steelyard.scheduler import Cloud, FilterScheduler, Flavor, Host
from steelyard.scheduler.cloud_file import uuid_of
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
def url(tmp_path: Any) -> str:
    return f"sqlite:///{tmp_path}/consumers.db"


@pytest.fixture
def store(url: str) -> ConsumerStore:
    made = ConsumerStore(url)
    made.upgrade()
    return made


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
    """A server that is there, and recorded with the generation 1."""
    selection = scheduler.select(scheduler.request("small"))
    with Recorder(scheduler, store, "p", "u").recorded(selection):
        scheduler.commit(selection)
    return selection.servers[0].uuid


def idle(body: Any) -> None:
    pass


class Model:
    """A store, before and after whose first write something is done."""

    def __init__(self, store: ConsumerStore, before: Any = idle, after: Any = idle) -> None:
        self.store = store
        self.before = before
        self.after = after

    def get_allocations(self, uuid: str) -> Any:
        return self.store.get_allocations(uuid)

    def post_allocations(self, body: Any) -> None:
        before, after = self.before, self.after
        self.before = self.after = idle
        before(body)
        self.store.post_allocations(body)
        after(body)


class Strict(Model):
    """Nobody can tell it that a type is not known; as a Placement."""

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


def test_what_is_committed_is_recorded_and_moves_along(
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


def test_without_a_file_the_record_alone_is_kept(store: ConsumerStore, url: str) -> None:
    argv = ["schedule", "--example", "--flavor", "db.medium", "--group", "db", "--count", "3"]
    assert cli.main([*argv, "--commit", "--url", url]) == 0
    resources = {"VCPU": 12, "MEMORY_MB": 49152, "DISK_GB": 300}
    assert store.usages("default", "default", "INSTANCE")["usages"]["INSTANCE"] == {
        "consumer_count": 3,
        **resources,
    }


def test_what_cannot_be_saved_is_not_recorded(
    store: ConsumerStore, url: str, path: pathlib.Path, scheduler: FilterScheduler
) -> None:
    """Somebody else changes the file between reading and saving it."""
    recorder = Recorder(scheduler, scheduler.consumers(url), "p", "u")
    selection = scheduler.select(scheduler.request("small"), 2)

    def save() -> None:
        assert store.count("p") == 2
        raise Conflict("changed meanwhile")

    with pytest.raises(Conflict, match="changed meanwhile"), recorder.recorded(selection):
        save()
    assert store.count("p") == 0


def test_a_move_that_fails_leaves_the_record_as_it_was(
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


def test_what_cannot_be_taken_back_is_said(
    store: ConsumerStore, scheduler: FilterScheduler
) -> None:
    recorder = Recorder(scheduler, store, "p", "u")
    selection = scheduler.select(scheduler.request("small"))
    (server,) = selection.servers

    def save() -> None:
        store.put_allocations(server.uuid, store.get_allocations(server.uuid))
        raise OSError("the disk is full")

    with (
        pytest.raises(ServiceError, match="the disk is full; what was recorded before that for"),
        recorder.recorded(selection),
    ):
        save()


@pytest.mark.parametrize("error", [NoAccess("time-out"), ServiceError("500"), KeyboardInterrupt()])
def test_a_write_whose_answer_is_lost_is_taken_back(
    store: ConsumerStore, scheduler: FilterScheduler, error: BaseException
) -> None:
    model = Model(store, after=raising(error))
    recorder = Recorder(scheduler, model, "p", "u")
    selection = scheduler.select(scheduler.request("small"), 2)
    with pytest.raises(type(error)) as raised, recorder.recorded(selection):
        pytest.fail("nothing may follow what is not known to be done")
    assert raised.value is error
    assert store.count("p") == 0


def test_a_move_whose_answer_is_lost_is_taken_back(
    store: ConsumerStore, scheduler: FilterScheduler, placed: str
) -> None:
    before = store.get_allocations(placed)
    recorder = Recorder(scheduler, Model(store, after=raising(NoAccess("time-out"))), "p", "u")
    with pytest.raises(NoAccess), recorder.recorded(scheduler.select_move(placed)):
        pytest.fail("nothing may follow what is not known to be done")
    assert of(store, placed) == {**before, "consumer_generation": 3}


def test_who_may_be_recorded_later_is_named(
    store: ConsumerStore, scheduler: FilterScheduler
) -> None:
    """A time-out, with the server still at work."""
    recorder = Recorder(scheduler, Model(store, before=raising(NoAccess("time-out"))), "p", "u")
    selection = scheduler.select(scheduler.request("small"), 2)
    with pytest.raises(ServiceError) as raised, recorder.recorded(selection):
        pytest.fail("nothing may follow what is not known to be done")
    one, other = (server.uuid for server in selection.servers)
    assert str(raised.value) == f"time-out; so far, it is not recorded for {one}, {other}"


def test_what_others_write_after_a_lost_answer_is_theirs(
    store: ConsumerStore, scheduler: FilterScheduler, placed: str
) -> None:
    theirs = {A: {"resources": {"VCPU": 7}}}

    def meddle(body: Any) -> None:
        store.put_allocations(placed, of(store, placed, allocations=theirs))
        raise KeyboardInterrupt

    for moment in ("before", "after"):
        recorder = Recorder(scheduler, Model(store, **{moment: meddle}), "p", "u")
        move = scheduler.select_move(placed)
        with (
            pytest.raises(ServiceError, match=f"^KeyboardInterrupt; so far, .* for {placed}$"),
            recorder.recorded(move),
        ):
            pytest.fail("nothing may follow what is not known to be done")
        assert store.get_allocations(placed)["allocations"] == theirs


def test_who_cannot_be_looked_at_after_a_lost_answer_is_named(
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
        pytest.fail("nothing may follow what is not known to be done")
    assert str(raised.value) == (
        f"time-out; whether it is recorded for {selection.servers[0].uuid} cannot be found out: "
        f"no route"
    )


def test_what_is_refused_is_said_as_it_is(store: ConsumerStore, scheduler: FilterScheduler) -> None:
    recorder = Recorder(scheduler, Model(store, before=raising(Conflict("full"))), "p", "u")
    selection = scheduler.select(scheduler.request("small"))
    with pytest.raises(Conflict, match=r"^full$"), recorder.recorded(selection):
        pytest.fail("there is nothing to go on with")


def test_a_move_leaves_alone_what_others_have_recorded(
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
            "from its host 'a' (10000000-0000-4000-8000-000000000001), but from",
        ),
        ({A: 1, B: 1}, "from host 'b' (10000000-0000-4000-8000-000000000002) already"),
    ],
)
def test_a_move_of_what_is_not_where_the_file_says(
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
        pytest.fail("there is nothing to go on with")
    assert f"server 'small-1' ({placed}) {said}" in str(raised.value)
    assert store.get_allocations(placed) == before


@pytest.mark.parametrize(("kind", "left"), [(Model, "UNKNOWN"), (Strict, "INSTANCE")])
def test_a_move_gives_a_type_to_who_has_none(
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


def test_the_same_seed_again_is_explained(store: ConsumerStore, url: str, capsys: Any) -> None:
    argv = ["schedule", "--example", "--commit", "--seed", "1", "--url", url]
    assert cli.main(argv) == 0
    before = store.usages("default")
    assert cli.main(argv) == 2
    said = capsys.readouterr().err
    assert "is recorded already: the same seed draws the same UUIDs; give another seed, or" in said
    assert store.usages("default") == before


class Full(io.StringIO):
    """As /dev/full is."""

    def write(self, text: str) -> int:
        raise OSError("no space left on device")


def test_a_notice_that_cannot_be_given_changes_nothing(
    store: ConsumerStore, url: str, tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    path = tmp_path / "cloud.yaml"
    path.write_text(f"# mine\n{json.dumps(CLOUD)}\n")
    monkeypatch.setattr("sys.stderr", Full())
    record = ["--cloud", str(path), "--url", url]
    assert cli.main(["schedule", "--flavor", "small", "--commit", *record]) == 70
    (server,) = Cloud.load(path).servers.values()
    assert list(store.get_allocations(server.uuid)["allocations"]) == [A]
    path.write_text(f"# mine\n{path.read_text()}")
    assert cli.main(["server", "move", server.name, *record]) == 70
    assert Cloud.load(path).servers[server.uuid].host == "b"
    assert list(store.get_allocations(server.uuid)["allocations"]) == [B]


def test_a_refused_record_changes_no_file(
    url: str, tmp_path: pathlib.Path, path: pathlib.Path, capsys: Any
) -> None:
    (tmp_path / "consumers.db").touch()
    before = path.read_bytes()
    argv = ["schedule", "--cloud", str(path), "--flavor", "small", "--commit", "--url", url]
    assert cli.main(argv) == 2
    assert "steelyard db upgrade brings the tables" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_server_of_which_nothing_is_recorded(
    store: ConsumerStore, url: str, path: pathlib.Path, capsys: Any
) -> None:
    assert cli.main(["schedule", "--cloud", str(path), "--flavor", "small", "--commit"]) == 0
    before = path.read_bytes()
    assert cli.main(["server", "move", "small-1", "--cloud", str(path), "--url", url]) == 2
    assert "nothing is recorded as allocated to server 'small-1'" in capsys.readouterr().err
    assert path.read_bytes() == before


def test_a_flavor_that_asks_for_nothing(store: ConsumerStore, scheduler: FilterScheduler) -> None:
    recorder = Recorder(scheduler, store, "p", "u")
    selection = scheduler.select(scheduler.request("none"))
    with (
        pytest.raises(BadRequest, match="there are no resources; ask for some"),
        recorder.recorded(selection),
    ):
        pytest.fail("there is nothing to go on with")


def test_a_host_without_a_uuid_has_one_that_follows_from_its_name(store: ConsumerStore) -> None:
    cloud = Cloud({"h": Host("h", 4, 4096, 100)}, flavors={"f": Flavor("f", 1, 1, 1)})
    scheduler = FilterScheduler(cloud)
    selection = scheduler.select(scheduler.request("f"))
    with Recorder(scheduler, store, "p", "u").recorded(selection):
        (server,) = selection.servers
    assert list(store.get_allocations(server.uuid)["allocations"]) == [uuid_of("h")]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--url", "sqlite://"], "only what is committed is recorded: add --commit"),
        (["--os-cloud", "x"], "only what is committed is recorded: add --commit"),
        (["--commit"], "there is no file to change; name one with --cloud"),
        (["--project", "shop"], "whose the recorded allocations are: add --url or --os-cloud"),
        (["--commit", "--user", "ada"], "whose the recorded allocations are: add --url or"),
        (["--commit", "--url", "sqlite:///no/such.db"], "there is no file 'no/such.db'"),
    ],
)
def test_mistakes(argv: list[str], said: str, capsys: Any) -> None:
    assert cli.main(["schedule", "--example", *argv]) == 2
    assert said in capsys.readouterr().err


@pytest.mark.parametrize(
    ("model", "said"),
    [
        ("placement", "--url and the option consumer_model = placement contradict each other"),
        ("nosql", "there is no consumer model 'nosql'; installed are placement"),
    ],
)
def test_the_model_is_the_one_that_is_configured(
    path: pathlib.Path, tmp_path: pathlib.Path, model: str, said: str, capsys: Any
) -> None:
    configured = tmp_path / "steelyard.conf"
    configured.write_text(f"[steelyard]\nconsumer_model = {model}\n")
    argv = ["schedule", "--cloud", str(path), "--flavor", "small", "--commit"]
    assert cli.main(["--config-file", str(configured), *argv, "--url", "sqlite://"]) == 2
    assert said in capsys.readouterr().err
