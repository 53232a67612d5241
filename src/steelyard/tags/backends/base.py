"""The contract of tag backends, which are in the entry point group steelyard.tag_backends."""

import abc
import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from steelyard import errors, plugins
from steelyard.tags.states.values import Kind

GREATEST_JOB = 2**63 - 1
"""The greatest number of a job that a database can keep."""

# A job whose number exceeds the horizon by more than this cannot be running.
_FAR = 100_000

_LONGEST = {"driver": 64, "name": 255}


@dataclasses.dataclass(frozen=True, slots=True)
class BackendIdentity:
    """The identity of a backend: its driver, and the name that the backend gives itself."""

    driver: str
    name: str

    def __post_init__(self) -> None:
        for field, longest in _LONGEST.items():
            value = getattr(self, field)
            if not (isinstance(value, str) and 0 < len(value) <= longest and value.isprintable()):
                raise errors.BadRequest(
                    f"invalid {field} {value!r:.100} of a tag backend: expected 1 to {longest} "
                    f"printable characters"
                )

    def __str__(self) -> str:
        return f"{self.driver} {self.name!r}"


class JobStatus(enum.StrEnum):
    """The status of a job."""

    RUNNING = "running"
    """The job is waiting or running."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"
    """The backend does not know the job, and never will."""


@dataclasses.dataclass(frozen=True, slots=True)
class TagJob:
    """The effect of a job on the tags of one instance."""

    instance: str
    kind: Kind
    tags: frozenset[str]
    """The encoded tags. A removal affects all tags of the instance, listed here or not."""


class TagBackend(abc.ABC):
    """A backend that applies tags by jobs.

    Tags are encoded, in ASCII. ``create``, ``add`` and ``delete`` submit a job and return its
    number; the backend runs the job later.

    Every method raises BackendRefused if the backend refuses the request, and BackendUnreachable if
    it is unreachable: nothing has changed then. OutcomeUnknown means that a change may have been
    made or may still be made, and so does any other error of ``create``, ``add`` and ``delete``.

    The constructor gets the configuration and reads all options. It opens no files and connections,
    and starts no threads: workers are forked after it.
    """

    in_process: ClassVar[bool] = False
    """Whether the backend is part of the process that uses it.

    Its jobs and instances end with the process, and no other process sees them. So the process
    polls for the jobs itself, and gives the backend the instances of the database by ``adopt``.
    """

    @abc.abstractmethod
    def identity(self) -> BackendIdentity:
        """Return the driver's name and the backend's own name, for example a cluster's.

        A database records this identity, and processes with another one cannot write to it. So
        the name must be the same in every process.
        """

    @abc.abstractmethod
    def create(self, instance: str, tags: Sequence[str]) -> int:
        """Submit a job that creates an instance with these tags, and return its number.

        Job numbers are from 1 to ``GREATEST_JOB``, and each is greater than those before it.
        """

    @abc.abstractmethod
    def add(self, instance: str, tags: Sequence[str]) -> int:
        """Submit a job that adds the tags, all or none, and return its number.

        A tag that the instance already has is not an error.
        """

    @abc.abstractmethod
    def delete(self, instance: str, tags: Sequence[str]) -> int:
        """Submit a job that deletes the tags, all or none, and return its number.

        The job fails if a tag is missing.
        """

    @abc.abstractmethod
    def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
        """Return the status of each of the jobs; LOST for unknown numbers."""

    @abc.abstractmethod
    def horizon(self) -> int:
        """Return a number up to which all jobs are finished; the greater, the better."""

    @abc.abstractmethod
    def tags(self, instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        """Return the encoded tags of the instances; instances that do not exist are left out."""

    def instances(self) -> Iterable[str]:
        """Return the names of all instances.

        By default, raises BackendRefused: the backend cannot list its instances.
        """
        raise errors.BackendRefused("the backend cannot list its instances; register each by name")

    def check_name(self, instance: str) -> None:  # noqa: B027  (most backends need none)
        """Raise BadRequest if the backend cannot have an instance of this name.

        By default, all names are valid.
        """

    def adopt(  # noqa: B027  (only backends in the process need it)
        self, there: Mapping[str, Iterable[str]], last_job: int = 0
    ) -> None:
        """Take over these instances with their encoded tags; number jobs after ``last_job``.

        Only backends within the process implement this. Others have instances of their own.
        """

    def reasons(self, numbers: Iterable[int]) -> Mapping[int, str]:
        """Return the reasons of failed jobs by number; jobs without a known one are left out.

        By default, no reason is known.
        """
        return {}

    def jobs_since(self, number: int) -> Mapping[int, JobStatus] | None:
        """Return the status of each listed job with a greater number; None without a list of jobs.

        Job numbers must be consecutive. The service calls ``jobs`` for numbers that are missing in
        the list, and reconciles all instances if these jobs are lost.
        """
        return None

    def tag_jobs(self, numbers: Iterable[int]) -> Mapping[int, Sequence[TagJob]]:
        """Return the effects of each of these finished jobs on tags, in the order of its steps.

        Failed jobs, and jobs that change no tags, may be left out.
        """
        return {}

    def has_issued(self, number: int) -> bool:
        """Return whether a job can have this number.

        By default, False for unknown jobs with numbers far beyond the horizon. Backends that know
        exactly override this.
        """
        return number <= self.horizon() + _FAR or self.jobs([number])[number] is not JobStatus.LOST

    def batches(self, instance: str, tags: Sequence[str]) -> list[Sequence[str]]:
        """Split the tags so that each batch fits into one job; by default, all fit into one."""
        return [tags]


TAG_BACKENDS = plugins.of_subclasses("steelyard.tag_backends", TagBackend, kind="tag backend")
