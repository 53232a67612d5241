"""The backend ganeti on a real Ganeti: tags, names, jobs and access."""

import contextlib
import pathlib
import random

import pytest

from steelyard.errors import (
    BackendRefused,
    InvalidTag,
    OutcomeUnknown,
)
from steelyard.tags import decode, encode
from steelyard.tags.backends.base import JobStatus
from steelyard.tags.backends.ganeti import GanetiBackend
from steelyard.tags.codec import Tag
from steelyard.tags.service import Caller, Operator
from steelyard.tags.states.values import Status
from support.services.ganeti_cluster import (
    INST1,
    INST2,
    Cluster,
    done,
    filtered,
    remove_from_archive,
    tags_of,
)

CALLER, OPERATOR = Caller("p", "u"), Operator()
ACTIVE, PENDADD = Status.ACTIVE, Status.PENDADD
USER, SYSTEM = "cyclades:user:", "cyclades:system:"


def test_invalid_tag_is_not_sent(backend: GanetiBackend) -> None:
    before = backend.horizon()
    for tag in ("", "a b", "é", "a,b", "a%20", "a~", "x" * 129, "a\n", "日本"):
        for change in (backend.add, backend.delete, backend.create):
            with pytest.raises(BackendRefused, match="invalid Ganeti tag"):
                change(INST1, ["good", tag])
    assert backend.horizon() == before
    assert tags_of(backend) == set()


def test_valid_tags_are_added_and_deleted(backend: GanetiBackend) -> None:
    tags = ["x" * 128, "a_b@c", "A.+*/:-9", "+", "++", "a+b", "%2B".replace("%", "/")]
    done(backend, backend.add(INST1, tags))
    done(backend, backend.add(INST1, tags))
    assert tags_of(backend) == set(tags)
    done(backend, backend.delete(INST1, ["a_b@c", "absent"]), expected=JobStatus.FAILED)
    assert tags_of(backend) == set(tags)
    done(backend, backend.delete(INST1, [*tags, *tags]))
    assert tags_of(backend) == set()


def test_instances_are_listed_with_their_full_names(backend: GanetiBackend) -> None:
    found = set(backend.instances())
    assert {INST1, INST2} <= found
    assert backend.tags(found).keys() == found


def test_partial_or_differently_cased_name_is_refused(backend: GanetiBackend) -> None:
    # Ganeti itself accepts a part of a name, in upper or lower case.
    before = backend.horizon()
    for name in ("inst1", "INST1.gnt.test", "inst9.gnt.test", "../inst1.gnt.test"):
        for change in (backend.add, backend.delete):
            with pytest.raises(BackendRefused, match=r"no instance|invalid instance name"):
                change(name, ["a"])
        assert backend.tags([name, INST1, ""]) == {INST1: set()}
    assert backend.horizon() == before


def test_instance_accepts_4096_tags(
    backend: GanetiBackend, cluster: Cluster, tmp_path: pathlib.Path
) -> None:
    tags = [f"{USER}{number:04}" for number in range(4096)]
    listed = tmp_path / "tags"
    listed.write_text("\n".join(tags[:-1]))
    cluster.inside("gnt-instance", "add-tags", f"--from={listed}", INST1)
    done(backend, backend.add(INST1, tags[-1:]))
    assert tags_of(backend) == set(tags)
    for one_more in ("one-more", tags[0]):  # even one that the instance has
        done(backend, backend.add(INST1, [one_more]), expected=JobStatus.FAILED)
    cluster.inside("gnt-instance", "remove-tags", f"--from={listed}", INST1)
    assert tags_of(backend) == set(tags[-1:])


def test_longest_batch_is_accepted(backend: GanetiBackend) -> None:
    # The tags fill the request line of DELETE, the longer method, to the last character.
    line = len(f"DELETE /2/instances/{INST1}/tags? HTTP/1.1")
    tags = [f"{number:04}+" for number in range((8192 - line) // len("tag=0000%2B&"))]
    tags.append("x" * (8192 - line - len("tag=0000%2B&") * len(tags) - len("tag=") + 1))
    (first, *rest) = backend.batches(INST1, [*tags, "more"])
    assert (list(first), rest) in [(tags, [["more"]]), (tags[:-1], [[tags[-1], "more"]])]
    done(backend, backend.add(INST1, first))
    done(backend, backend.delete(INST1, first))
    with pytest.raises(OutcomeUnknown, match="did not answer"):
        backend.delete(INST1, [*tags, "more"])


def test_valid_names_are_kept_unchanged(
    backend: GanetiBackend,
) -> None:
    # The tags need several jobs.
    tags = {encode(name, USER): name for name in accepted_names(200)}
    assert len(tags) == 200
    for change, there in ((backend.add, set(tags)), (backend.delete, set())):
        jobs = [change(INST1, batch) for batch in backend.batches(INST1, list(tags))]
        assert len(jobs) > 1
        done(backend, *jobs)
        found = tags_of(backend)
        assert found == there
        assert {decode(tag) for tag in found} == {Tag(USER, tags[tag]) for tag in there}


def accepted_names(count: int) -> list[str]:
    """Return the same names in each run, with characters from all of Unicode."""
    chance = random.Random(1)
    special = "_*%~@+ .:-aZ09é\u0301ß\u3000\u200b\u2028\U0001f600"
    found: list[str] = []
    while len(found) < count:
        letters = (
            chance.choice(special)
            if chance.random() < 0.3
            else chr(chance.randrange(0x20, 0x110000))
            for _ in range(chance.randint(1, 12))
        )
        with contextlib.suppress(InvalidTag):
            encode(name := "".join(letters), USER)
            found.append(name)
    return found


def test_unknown_jobs_are_lost(backend: GanetiBackend, cluster: Cluster) -> None:
    job = backend.add(INST1, ["a"])
    done(backend, job)
    cluster.inside("gnt-job", "archive", str(job))
    found = dict(backend.jobs([job, 10**9, 2**70, 0, -1]))
    assert found.pop(job) is JobStatus.SUCCEEDED
    assert set(found.values()) == {JobStatus.LOST}
    assert backend.jobs([]) == {}
    known = backend.jobs(range(1, job + 1))
    assert len(known) == job
    assert JobStatus.RUNNING not in known.values()


def test_has_issued_knows_archived_and_removed_jobs(
    cluster: Cluster, backend: GanetiBackend
) -> None:
    done(backend, job := backend.add(INST1, [USER + "red"]))
    assert backend.has_issued(job)
    assert not backend.has_issued(job + 1)
    assert not backend.has_issued(2**63 - 1)
    cluster.inside("gnt-job", "archive", str(job))
    assert backend.has_issued(job)
    with filtered(cluster, "PAUSE", '[["opcode", ["=", "OP_ID", "OP_TAGS_SET"]]]'):
        paused = backend.add(INST1, [USER + "late"])
        done(backend, removed := backend.delete(INST1, [USER + "red"]))
        done(backend, last := backend.delete(INST1, [USER + "red"]), expected=JobStatus.FAILED)
        remove_from_archive(cluster, removed)
        assert backend.jobs([removed]) == {removed: JobStatus.LOST}
        assert backend.horizon() < removed
        assert backend.has_issued(removed)
        assert not backend.has_issued(last + 1)
    done(backend, paused)


def test_wrong_credentials_are_refused(cluster: Cluster) -> None:
    with pytest.raises(BackendRefused, match="rejected user 'tester'") as caught:
        cluster.backend(ganeti_password="hunter2").add(INST1, ["a"])
    assert "hunter2" not in str(caught.value)
    with pytest.raises(BackendRefused, match="does not let user 'tester-ro' submit jobs"):
        cluster.backend(ganeti_user="tester-ro").add(INST1, ["a"])


def test_untrusted_certificate_is_refused(cluster: Cluster) -> None:
    for changed in ({"ganeti_fingerprint": None}, {"ganeti_fingerprint": "0" * 64}):
        with pytest.raises(BackendRefused, match=r"untrusted certificate"):
            cluster.backend(**changed).horizon()
