"""The tag backend in memory."""

import pytest

from steelyard.errors import BackendRefused
from steelyard.tags.backends.base import JobStatus, TagBackend
from steelyard.tags.backends.memory import MemoryBackend


def backend(**tags: list[str]) -> MemoryBackend:
    found = MemoryBackend(patient=True)
    found.adopt(tags)
    return found


def there(found: TagBackend, instance: str = "vm") -> set[str]:
    return set(found.tags([instance])[instance])


def test_jobs_wait_and_run_in_order() -> None:
    found = backend(vm=["a"])
    jobs = [found.add("vm", ["b"]), found.delete("vm", ["a", "b"]), found.add("vm", ["a"])]
    assert jobs == sorted(set(jobs))
    assert set(found.jobs(jobs).values()) == {JobStatus.RUNNING}
    assert there(found) == {"a"}
    seen = []
    for _ in jobs:
        found.run(1)
        seen.append(there(found))
    assert seen == [{"a", "b"}, set(), {"a"}]
    assert set(found.jobs(jobs).values()) == {JobStatus.SUCCEEDED}


def test_jobs_runs_waiting_jobs_unless_patient() -> None:
    found = MemoryBackend()
    job = found.create("vm", ["a"])
    assert found.tags(["vm"]) == {}
    assert found.jobs([job]) == {job: JobStatus.SUCCEEDED}
    assert there(found) == {"a"}


def test_create_existing_instance_is_refused() -> None:
    found = backend(vm=["a"])
    with pytest.raises(BackendRefused, match="cannot create instance 'vm': it exists already"):
        found.create("vm", [])
    jobs = [found.create("other", ["b"]), found.create("other", ["c"])]
    found.run()
    assert list(found.jobs(jobs).values()) == [JobStatus.SUCCEEDED, JobStatus.FAILED]
    assert found.tags(["vm", "other", "nowhere"]) == {"vm": {"a"}, "other": {"b"}}


def test_failed_creation_leaves_no_instance() -> None:
    found = backend()
    jobs = [found.create("vm", ["a"]), found.create("other", ["a", "no tag"])]
    found.fail(jobs[0])
    found.run()
    assert list(found.jobs(jobs).values()) == [JobStatus.FAILED, JobStatus.FAILED]
    assert found.tags(["vm", "other"]) == {}
    with pytest.raises(BackendRefused, match="no instance 'vm'"):
        found.add("vm", ["a"])


@pytest.mark.parametrize("ask", ["add", "delete"])
def test_unknown_instance_is_refused(ask: str) -> None:
    with pytest.raises(BackendRefused, match="no instance 'nowhere'"):
        getattr(backend(), ask)("nowhere", ["a"])


def test_add_present_tag_succeeds() -> None:
    found = backend(vm=["a"])
    job = found.add("vm", ["a", "b"])
    found.run()
    assert found.jobs([job]) == {job: JobStatus.SUCCEEDED}
    assert there(found) == {"a", "b"}


def test_delete_missing_tag_fails_the_whole_job() -> None:
    found = backend(vm=["a"])
    job = found.delete("vm", ["a", "b"])
    found.run()
    assert found.jobs([job]) == {job: JobStatus.FAILED}
    assert there(found) == {"a"}


def test_instance_has_at_most_4096_tags() -> None:
    found = backend(vm=[f"a{number}" for number in range(4094)])
    jobs = [found.add("vm", tags) for tags in (["b", "c", "d"], ["b", "c"], ["d"], ["c", "a1"])]
    found.run()
    assert list(found.jobs(jobs).values()) == ["failed", "succeeded", "failed", "succeeded"]
    assert len(there(found)) == 4096


@pytest.mark.parametrize("tag", ["", "a b", "\u00e9", "a,b", "a%20", "a~", "x" * 129, "a\n"])
def test_invalid_tag_fails_the_whole_job(tag: str) -> None:
    found = backend(vm=[])
    job = found.add("vm", ["b", tag])
    found.run()
    assert found.jobs([job]) == {job: JobStatus.FAILED}
    assert there(found) == set()


@pytest.mark.parametrize("tag", ["x" * 128, "a_b@c", "A.+*/:-9"])
def test_tags_valid_in_ganeti_are_valid(tag: str) -> None:
    found = backend(vm=[])
    found.add("vm", [tag])
    found.run()
    assert there(found) == {tag}


def test_unknown_job_is_lost() -> None:
    assert backend().jobs([7]) == {7: JobStatus.LOST}


def test_fail_affects_only_waiting_jobs() -> None:
    found = backend(vm=[])
    first, second = found.add("vm", ["a"]), found.add("vm", ["b"])
    found.fail(first)
    found.run()
    found.fail(second)
    assert list(found.jobs([first, second]).values()) == [JobStatus.FAILED, JobStatus.SUCCEEDED]
    assert there(found) == {"b"}


def test_adopt_continues_job_numbers() -> None:
    found = MemoryBackend()
    found.adopt({"vm": []}, 41)
    assert found.add("vm", ["a"]) == 42


def test_lost_job_can_be_lost_again() -> None:
    found = backend(vm=[])
    job = found.add("vm", ["a"])
    found.run()
    for _ in range(2):
        found.lose(job)
        assert found.jobs([job]) == {job: JobStatus.LOST}
