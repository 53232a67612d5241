"""Images, and the images of boot volumes, as Glance and Cinder show them now."""

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

from steelyard import errors
from steelyard.clients.image import Images
from steelyard.clients.volume import Volumes
from steelyard.live import fields
from steelyard.live.answers import SeenServer
from steelyard.text import spelling, uuids

TRAIT = "trait:"

_ATTRIBUTES = frozenset(
    (
        "checksum",
        "container_format",
        "created_at",
        "deleted",
        "deleted_at",
        "direct_url",
        "disk_format",
        "file",
        "id",
        "locations",
        "min_disk",
        "min_ram",
        "name",
        "os_hash_algo",
        "os_hash_value",
        "os_hidden",
        "owner",
        "protected",
        "schema",
        "self",
        "size",
        "status",
        "stores",
        "tags",
        "updated_at",
        "virtual_size",
        "visibility",
    )
)
"""The fields of an image that are not among its properties."""

_OF_VOLUMES = frozenset(
    (
        "checksum",
        "container_format",
        "disk_format",
        "image_id",
        "image_name",
        "min_disk",
        "min_ram",
        "size",
    )
)
"""The fields of the image of a volume that Nova does not take as properties."""

_BASE = "base_image_ref"

_MOST_NAMES = 500


@dataclasses.dataclass(frozen=True, slots=True)
class SeenImage:
    """An image with the properties that Nova reads."""

    uuid: str
    name: str
    properties: Mapping[str, str]
    disk_format: str = ""

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "SeenImage":
        return cls(
            fields.read(record, "id", fields.text),
            fields.text(record.get("name") or ""),
            _properties(record, _ATTRIBUTES),
            fields.text(record.get("disk_format") or ""),
        )

    @property
    def traits(self) -> dict[str, str]:
        """The properties that require traits, which Nova does not show with a server."""
        return {name: value for name, value in self.properties.items() if name.startswith(TRAIT)}


@dataclasses.dataclass(frozen=True, slots=True)
class SeenVolume:
    """A volume with the image that it was created from, as Nova reads it."""

    bootable: bool
    image: SeenImage

    @classmethod
    def of(cls, record: Mapping[str, Any]) -> "SeenVolume":
        image = record.get("volume_image_metadata") or {}
        return cls(
            record.get("bootable") in (True, "true"),
            SeenImage(
                fields.text(image.get("image_id") or ""),
                fields.text(image.get("image_name") or ""),
                _properties(image, _OF_VOLUMES),
            ),
        )


def _properties(record: Mapping[str, Any], others: frozenset[str]) -> dict[str, str]:
    found = {
        name: value
        for name, value in fields.mapping(record).items()
        if name not in others and value is not None
    }
    return fields.by_name(found, fields.as_text)


def recorded(server: SeenServer) -> SeenImage | None:
    """Return the image as it was when the server was requested, if Nova shows all of it.

    Nova 31 shows everything that it recorded, with the traits and the disk format. Later releases
    show only the properties that they know.
    """
    shown = server.image_properties
    if _BASE not in shown:
        return None
    properties = {name: value for name, value in shown.items() if name != _BASE}
    return SeenImage(
        shown[_BASE], "", _properties(properties, _ATTRIBUTES), shown.get("disk_format", "")
    )


def named(images: Images, wanted: str) -> SeenImage:
    """Return the image of this UUID or name.

    Raises NotFound if there is none, and BadRequest if several have the name.
    """
    uuid = uuids.canonical(wanted)
    if uuid is not None:
        try:
            return images.one(uuid, SeenImage.of)
        except errors.NotFound:
            raise errors.NotFound(
                f"no image {wanted!r} that these credentials show; it may be deleted", wanted
            ) from None
    found = [each for each in images.listing(SeenImage.of, name=wanted) if each.name == wanted]
    if not found:
        names = [each.name for each in images.listing(SeenImage.of, limit=_MOST_NAMES)]
        raise errors.NotFound(f"no image {wanted!r}{spelling.near(wanted, names)}", wanted)
    if len(found) > 1:
        listing = ", ".join(each.uuid for each in found)
        raise errors.BadRequest(
            f"{len(found)} images are named {wanted!r}: {listing}; name one by its UUID", wanted
        )
    return found[0]


def of_boot_volume(volumes: Volumes, uuids_of_volumes: Sequence[str]) -> SeenImage:
    """Return the image of the volume that the server boots from.

    Nova does not show which volume that is, so it must be the only one, or the only bootable one.
    Raises NotFound if none can be told apart.
    """
    if not uuids_of_volumes:
        raise errors.NotFound(
            "the server has no volume yet, so none shows the image; name the image with --image"
        )
    found = [volumes.one(uuid, SeenVolume.of) for uuid in uuids_of_volumes]
    bootable = [each for each in found if each.bootable] if len(found) > 1 else found
    if len(bootable) != 1:
        raise errors.NotFound(
            f"{len(bootable)} of the {len(found)} volumes of the server are bootable, and Nova "
            f"does not show which one it boots from; name the image with --image"
        )
    return bootable[0].image
