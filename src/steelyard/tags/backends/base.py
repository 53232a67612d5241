"""What a backend of tags does. Others are found in the entry point group steelyard.tag_backends."""

import abc
import dataclasses
import enum
from collections.abc import Iterable, Mapping, Sequence

from steelyard import errors

_LONGEST = {"driver": 64, "name": 255}


@dataclasses.dataclass(frozen=True, slots=True)
class BackendIdentity:
    """A backend as a database records it: its driver, and the name that it gives itself."""

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
    """How far a job is."""

    RUNNING = "running"
    """Waiting its turn, or being done."""

    SUCCEEDED = "succeeded"
    FAILED = "failed"
    LOST = "lost"
    """The backend knows nothing of it, and will say no more."""


class TagBackend(abc.ABC):
    """Takes encoded tags, and nothing but ASCII; what it is asked for it does later, as a job.

    Whatever it is asked, a backend that says no raises BackendRefused: nothing has happened.
    OutcomeUnknown says that it may have.

    It is made with the configuration, reads its options once, and opens nothing: workers are
    forked after that.
    """

    @abc.abstractmethod
    def identity(self) -> BackendIdentity:
        """Return the driver's name and the backend's own name, for example a cluster's.

        A database belongs to the backend with the identity that it records. Writers with another
        backend are refused, so the name must not change between two processes.
        """

    @abc.abstractmethod
    def create(self, instance: str, tags: Sequence[str]) -> int:
        """Has an instance created, with these tags; the number of the job."""

    @abc.abstractmethod
    def add(self, instance: str, tags: Sequence[str]) -> int:
        """Has tags added, all or none; those that are there already are no fault."""

    @abc.abstractmethod
    def delete(self, instance: str, tags: Sequence[str]) -> int:
        """Has tags deleted, all or none: if one is not there, the job fails."""

    @abc.abstractmethod
    def jobs(self, numbers: Iterable[int]) -> Mapping[int, JobStatus]:
        """How far each of the jobs is."""

    @abc.abstractmethod
    def horizon(self) -> int:
        """A number, the greater the better: all jobs up to it are over. Numbers of jobs rise."""

    @abc.abstractmethod
    def tags(self, instances: Iterable[str]) -> Mapping[str, frozenset[str]]:
        """The tags of each of the instances, of which those that are not there are left out."""

    def batches(self, instance: str, tags: Sequence[str]) -> list[Sequence[str]]:
        """The tags as they go into jobs, where not all of them go into one."""
        return [tags]
