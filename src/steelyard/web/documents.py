"""Resources that are the same document for every caller."""

from typing import Any

import falcon

from steelyard.web.requests import json_bytes


class PublicDocument:
    """A JSON document that needs no identity of the caller."""

    def __init__(self, value: Any) -> None:
        self._data = json_bytes(value)

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.data = self._data

    on_head = on_get
