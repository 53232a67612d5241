"""Servers of a real Nova that were not placed, and the facts that steelyard reads of them.

Nova's fixtures take the places of Glance and Cinder. They are served over HTTP, too.
"""

import json
import warnings
from collections.abc import Iterable
from typing import Any

from support.nova.imports import Imports  # before the rest of Nova; see there

# isort: split
from nova import context, exception
from nova.volume import cinder

from steelyard.analysis.why.facts import Facts, GivenRequest
from steelyard.cli.inputs import os_clouds
from steelyard.live.why.looking import look

_OF_NOVA = ("properties", "is_public", "deleted", "deleted_at")
"""Keys of the images of Nova's fixture that Glance does not show."""


class Looks(Imports):
    """A cloud to look at, with image and volume services."""

    def prepare(self) -> None:
        super().prepare()
        self.served.apps |= {"image": self._images, "volume": self._volumes}
        self.served.catalogue |= {"image": "image/v2", "block-storage": "volume/v3"}

    def looked(self, server: str | None = None, cloud: str = "admin", **options: Any) -> Facts:
        """Return the facts about the server, or about a request with the options."""
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # as in Imports.run_import
            clients = os_clouds.connect(cloud).clients()
            return look(clients, server, GivenRequest(**options), unwatched)

    def lost(self, **more: Any) -> dict[str, Any]:
        """Request a server that no host has room for; return it when Nova has given up."""
        return self.settled(self.asked_for(None, None, 40_000, {}, **more)["id"])

    def _images(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ["PATH_INFO"].removeprefix("/v2")
        if path in ("", "/"):
            return self._versions(environ, start_response, "v2.15", "image/v2/")
        if path == "/images":
            return answered(start_response, {"images": [*map(_image, self.glance.detail(None))]})
        try:
            image = self.glance.show(None, path.removeprefix("/images/"))
        except exception.ImageNotFound:
            return answered(start_response, {}, "404 Not Found")
        return answered(start_response, _image(image))

    def _volumes(self, environ: dict[str, Any], start_response: Any) -> Iterable[bytes]:
        path = environ["PATH_INFO"]
        if path == "/":
            return self._versions(environ, start_response, "v3.70", "volume/v3/")
        admin = context.get_admin_context()
        volume = cinder.API().get(admin, path.removeprefix("/v3/volumes/"))
        return answered(start_response, {"volume": volume})

    def _versions(
        self, environ: dict[str, Any], start_response: Any, version: str, path: str
    ) -> Iterable[bytes]:
        links = [{"rel": "self", "href": f"{self.served.url}/{path}"}]
        found = {"versions": [{"id": version, "status": "CURRENT", "links": links}]}
        return answered(start_response, found, "300 Multiple Choices")


def unwatched(items: Iterable[Any], what: str, total: int | None = None) -> Iterable[Any]:
    """Return the items; a progress that shows nothing."""
    return items


def answered(start_response: Any, body: Any, status: str = "200 OK") -> Iterable[bytes]:
    start_response(status, [("Content-Type", "application/json")])
    return [json.dumps(body, default=str).encode()]


def _image(image: dict[str, Any]) -> dict[str, Any]:
    """Return the image as Glance shows it: its properties are fields like the others."""
    shown = {name: value for name, value in image.items() if name not in _OF_NOVA}
    return {**shown, **image["properties"]}
