"""A client of Cinder over HTTP, which only reads."""

from typing import Any

from steelyard.clients.reading import Parse, ServiceReader, ValueT


class Volumes:
    """A client of Cinder that only reads.

    ``session`` is a keystoneauth1 adapter whose endpoint includes the version, ``/v3``, and the
    project if the cloud has it there. ``parse`` converts one record to a value. A malformed answer
    raises ServiceError.
    """

    def __init__(self, session: Any) -> None:
        self._reader = ServiceReader("Cinder", session, "block-storage")

    def one(self, uuid: str, parse: Parse[ValueT]) -> ValueT:
        """Return the value of one volume; raise NotFound if it does not exist."""
        path = f"/volumes/{uuid}"

        def of_answer(answer: Any) -> ValueT:
            return parse(answer["volume"])

        return self._reader.parsed(path, "volume", of_answer, self._reader.content(path, {}, {}))
