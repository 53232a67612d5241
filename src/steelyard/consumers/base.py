"""The contract of consumer models.

Third-party models register in the entry point group ``steelyard.consumer_models``. They have the
methods of :class:`ConsumerModel`. The store and the client have all methods of :class:`Consumers`.
"""

import abc
import copy
import random
import time
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Protocol

from steelyard import errors, plugins
from steelyard.consumers.names import ALL

# Seconds before each attempt at an update, varied at random so that writers that conflict do not
# retry in step.
_PAUSES = (0, 0.02, 0.04, 0.08, 0.16, 0.32, 0.64, 0.64, 0.64, 0.64)

Body = dict[str, Any]


class ConsumerModel(Protocol):
    """A place that keeps consumers with their types and allocations.

    The constructor takes one argument that names the place, such as the URL of a database or a
    session. Request and response bodies are those of Placement at microversion 1.38.
    """

    def post_allocations(self, body: object) -> None:
        """Replace the allocations of all consumers in the body, or of none on an error."""

    def get_allocations(self, consumer: str) -> Body:
        """Return the consumer's allocations as a body that can be sent back in a PUT."""

    def usages(
        self, project_id: str, user_id: str | None = None, consumer_type: str | None = None
    ) -> Body:
        """Return the usage by type, or of one type, or of all types together.

        Without ``consumer_type``, usages are by type. ``"all"`` adds up all types.
        """

    def count(self, project_id: str, user_id: str | None = None, consumer_type: str = ALL) -> int:
        """Return the number of consumers of the type in a project, or of one of its users."""


class Consumers(abc.ABC):
    """The methods of the store and of the client, with equal errors and answers."""

    @abc.abstractmethod
    def put_allocations(self, consumer: str, body: object) -> None:
        """Replace the allocations of one consumer, as ``PUT /allocations/{consumer}`` does.

        Empty allocations remove the consumer. Raises InvalidAllocations for a malformed body,
        ConcurrentUpdate if the generation in the body is not the consumer's, and OverCapacity if
        Placement has no room. On an error, nothing changes.
        """

    @abc.abstractmethod
    def post_allocations(self, body: object) -> None:
        """Replace the allocations of all consumers in the body, as ``POST /allocations`` does.

        On an error, it changes none of them.
        """

    @abc.abstractmethod
    def delete_allocations(self, consumer: str) -> None:
        """Delete the consumer, as ``DELETE /allocations/{consumer}`` does, whatever its generation.

        Raises NotFound if the consumer has no allocations.
        """

    @abc.abstractmethod
    def reshape(self, body: object) -> None:
        """Replace the allocations of all consumers in the body of ``POST /reshaper``."""

    @abc.abstractmethod
    def get_allocations(self, consumer: str) -> Body:
        """Return the body of ``GET /allocations/{consumer}``, which can be sent back in a PUT.

        The allocations of a missing consumer are empty, without project, user, generation and type.
        The type of a consumer without one is UNKNOWN.
        """

    @abc.abstractmethod
    def usages(
        self, project_id: str, user_id: str | None = None, consumer_type: str | None = None
    ) -> Body:
        """Return the body of ``GET /usages``: by type, of one type, or of all types together.

        Without ``consumer_type``, usages are by type. ``"all"`` adds up all types. Each group has
        the number of consumers as ``consumer_count``.
        """

    @abc.abstractmethod
    def types(self, project_id: str | None = None, user_id: str | None = None) -> dict[str, int]:
        """Return the number of consumers of each type in a project, or of one of its users.

        Types without consumers are included only if no project is given. Placement needs a project.
        """

    @abc.abstractmethod
    def consumers_of(
        self,
        *,
        project: str | None = None,
        type: str | None = None,  # noqa: A002  (a public keyword)
        provider: str | None = None,
    ) -> Iterator[str]:
        """Return an iterator over the UUIDs of the consumers with this project, type and provider.

        The consumers are read in pages. Each one that exists all the time is yielded once; others
        may be missing. Placement needs a provider.
        """

    @abc.abstractmethod
    def count(self, project_id: str, user_id: str | None = None, consumer_type: str = ALL) -> int:
        """Return the number of consumers of the type in a project, or of one of its users."""

    def update(self, consumer: str, change: Callable[[Body], Mapping[str, Any]]) -> bool:
        """Read the consumer, write what ``change`` makes of it, and return whether it differs.

        ``change`` gets the answer of :meth:`get_allocations` and returns the body of a PUT, whose
        generation is set here. If it returns what it got, nothing is written. If another client
        writes the consumer meanwhile, all of this is repeated, at most ten times; after that, the
        last ConcurrentUpdate is raised. So ``change`` must have no other effects.
        """
        for pause in _PAUSES:
            time.sleep(pause * random.uniform(0.5, 1.5))
            found = self.get_allocations(consumer)
            wanted = change(copy.deepcopy(found))
            if not isinstance(wanted, Mapping):
                raise errors.BadRequest(
                    f"invalid result of the change of consumer {consumer}: expected the body of a "
                    f"PUT, got {wanted!r:.100}; return the changed body"
                )
            if wanted == found:
                return False
            generation = found.get("consumer_generation")
            try:
                self.put_allocations(consumer, {**wanted, "consumer_generation": generation})
            except errors.ConcurrentUpdate as error:
                failure = error
            else:
                return True
        raise errors.ConcurrentUpdate(
            f"cannot update consumer {consumer}: other clients changed it or its provider during "
            f"each of {len(_PAUSES)} attempts; retry later"
        ) from failure


CONSUMER_MODELS = plugins.of_protocol(
    "steelyard.consumer_models", ConsumerModel, kind="consumer model"
)


def load_model(name: str, where: Any) -> ConsumerModel:
    """Return the consumer model with this name for ``where``, such as a database or a session.

    Raises PluginError if the plugin is missing or broken, or its constructor fails.
    """
    model: ConsumerModel = plugins.load_with(CONSUMER_MODELS, name, where)
    return model
