"""The commands of tags on a real Ganeti, through RabbitMQ into PostgreSQL."""

import contextlib
import json
import pathlib

import pytest
import sqlalchemy as sa

from steelyard import cli
from steelyard.tags import TagService, TagStore, encode
from steelyard.tags.backends.base import BackendIdentity
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states.values import Instance, Status
from support.services.ganeti_cluster import (
    CREATION,
    INST1,
    NEW,
    Cluster,
    filtered,
    last_job,
    settle,
    tags_of,
    wait,
)
from support.soaks import outcome_soak
from support.tags import queues
from support.tags.databases import RECORDING, WRITING, dump

CALLER, OPERATOR = Caller("p", "u"), Operator()
ACTIVE, PENDADD = Status.ACTIVE, Status.PENDADD
USER, SYSTEM = "cyclades:user:", "cyclades:system:"


def test_commands_apply_a_tag_through_watch_and_dispatch(
    cluster: Cluster,
    upgraded_postgresql: sa.Engine,
    host: str,
    tmp_path: pathlib.Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Check the path from Ganeti through the watch, the broker and the dispatcher to the tables."""
    store = TagStore(upgraded_postgresql)
    store.record_backend(cluster.backend().identity())
    service = TagService(store, cluster.backend())
    service.register(Instance("s1", INST1, "p", "u"))
    with queues.own_queue(host) as broker, contextlib.ExitStack() as stack:
        file = outcome_soak.configuration(str(tmp_path), broker, host, upgraded_postgresql)
        file.write_text("\n".join([file.read_text(), *cluster.lines(), "poll_interval = 0.2"]))
        processes = [
            stack.enter_context(outcome_soak.started(file, name)) for name in ("watch", "dispatch")
        ]
        for process in processes:
            stack.callback(process.kill)
        service.replace(CALLER, "s1", ["größe", "gone"])
        wait(lambda: service.tags(CALLER, "s1") == {"gone": ACTIVE, "größe": ACTIVE})
        service.delete(CALLER, "s1", "gone")
        with filtered(cluster, "REJECT"):
            service.add(CALLER, "s1", "rejected")
            wait(lambda: service.tags(CALLER, "s1") == {"größe": ACTIVE})
        wait(lambda: not store.pending())
        for process in processes:
            process.terminate()
        assert [process.communicate(timeout=60) for process in processes] == [("", "")] * 2
        assert queues.count(broker, broker.queue) == 0
        assert queues.dead_letters(broker) == []
    assert [process.returncode for process in processes] == [0, 0]
    assert tags_of(service.backend) == {encode("größe", USER)}
    cluster.inside("gnt-instance", "add-tags", INST1, USER + "by+hand")
    for options, actions in (
        (["--dry-run"], ["created"]),
        ([], ["created"]),
        ([], ["nothing to do"]),
    ):
        command = ["--config-file", str(file), "tags", "reconcile", "-f", "json", *options]
        capsys.readouterr()
        assert cli.main(command) == 0
        said = json.loads(capsys.readouterr().out)
        assert [each["action"] for each in said["actions"]] == actions
    assert service.tags(CALLER, "s1") == {"by hand": ACTIVE, "größe": ACTIVE}


def test_upgrade_records_the_name_of_the_cluster(
    cluster: Cluster, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = configuration(cluster, tmp_path)
    argv = ["--config-file", str(file), "db", "upgrade", "--schema", "tags"]
    assert cli.main(argv) == 0
    name = cluster.inside("gnt-cluster", "info").splitlines()[0].removeprefix("Cluster name: ")
    ours = BackendIdentity("ganeti", name)
    assert f"the database belongs to backend {ours}" in capsys.readouterr().out
    assert TagStore(f"sqlite:///{tmp_path}/tags.db").backend() == ours
    assert cli.main(argv) == 0


def test_commands_without_configuration_change_nothing_beside_a_running_service(
    cluster: Cluster, tmp_path: pathlib.Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Check jobs of Ganeti for two instances, one of which it is creating."""
    file, url = configuration(cluster, tmp_path), f"sqlite:///{tmp_path}/tags.db"
    assert cli.main(["--config-file", str(file), "db", "upgrade", "--schema", "tags"]) == 0
    service = TagService(TagStore(url), cluster.backend(ganeti_instance=CREATION))
    service.register(Instance("s1", INST1, "p", "u"))
    service.replace(CALLER, "s1", ["smtp", "old"])
    settle(service)
    with contextlib.ExitStack() as stack:
        watch = stack.enter_context(outcome_soak.started(file, "watch"))
        stack.callback(watch.terminate)
        # Its first look reconciles, which would change the database beside the commands.
        wait(lambda: service.store.watched().reconciled is not None)
        with filtered(cluster, "PAUSE"):
            service.add(CALLER, "s1", "new")
            service.delete(CALLER, "s1", "old")
            service.create(Caller("q", "v"), NEW, ["first"], "s2")
            before, jobs, tags = dump(url), last_job(cluster), tags_of(service.backend)
            capsys.readouterr()
            for command in [*WRITING.values(), *RECORDING.values()]:
                assert cli.main(["tags", *command, "--url", url]) == 2, command
                said = capsys.readouterr().err
                assert "ganeti 'cluster.gnt.test'" in said, command
                assert "memory 'in-process'" in said, command
            alone = tmp_path / "alone.conf"
            alone.write_text(f"[steelyard_tags]\nconnection = {url}\n")
            assert cli.main(["--config-file", str(alone), "tags", "watch"]) == 2
            assert dump(url) == before
            assert last_job(cluster) == jobs
            assert tags_of(service.backend) == tags
        wait(lambda: not service.store.pending())
        assert service.tags(CALLER, "s1") == {"smtp": ACTIVE, "new": ACTIVE}
        assert service.tags(Caller("q", "v"), "s2") == {"first": ACTIVE}


def configuration(cluster: Cluster, directory: pathlib.Path) -> pathlib.Path:
    """Write the options of a service of the cluster, with a database in the directory."""
    file = directory / "tags.conf"
    lines = ["[steelyard_tags]", f"connection = sqlite:///{directory}/tags.db", *cluster.lines()]
    file.write_text("\n".join([*lines, "poll_interval = 0.2", ""]))
    file.chmod(0o600)
    return file


# Changes by hand, which the watch finds in the list of jobs
