"""A client of Glance over HTTP, which only reads."""

from typing import Any

from steelyard.clients.reading import Parse, ServiceReader, ValueT


class Images:
    """A client of Glance that only reads.

    ``session`` is a keystoneauth1 adapter whose endpoint includes the version, ``/v2``. ``parse``
    converts one record to a value. A malformed answer raises ServiceError.
    """

    def __init__(self, session: Any) -> None:
        self._reader = ServiceReader("Glance", session, "image")

    def one(self, uuid: str, parse: Parse[ValueT]) -> ValueT:
        """Return the value of one image; raise NotFound if it does not exist."""
        path = f"/images/{uuid}"
        return self._reader.parsed(path, "image", parse, self._reader.content(path, {}, {}))

    def listing(self, parse: Parse[ValueT], **query: Any) -> list[ValueT]:
        """Return the values of one page of the list of images."""
        records = self._reader.records("/images", "images", query, {})
        return [self._reader.parsed("/images", "images", parse, record) for record in records]
