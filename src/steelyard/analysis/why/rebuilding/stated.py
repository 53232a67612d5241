"""The extra specs of a flavor and the properties of an image, as Nova reads them together."""

import dataclasses
from collections.abc import Collection, Mapping

from steelyard.cloud.image_properties import named_as_now
from steelyard.cloud.wanted import Source, WantedServer

_TRUE = frozenset({"1", "t", "true", "on", "y", "yes"})


class RequestFails(Exception):
    """The end of a request that Nova itself refuses; its text is the reason."""


@dataclasses.dataclass(frozen=True, slots=True)
class Origin:
    """The place that states a demand."""

    text: str
    source: Source


class Stated:
    """The extra specs and the image properties of a wanted server."""

    def __init__(self, wanted: WantedServer) -> None:
        self.wanted = wanted
        self.specs: Mapping[str, str] = wanted.flavor.extra_specs
        self.properties = named_as_now(wanted.image_properties)
        self.image_traits = frozenset(
            key.removeprefix("trait:")
            for key, value in wanted.image_properties.items()
            if key.startswith("trait:") and value == "required"
        )

    def source(self, field: str) -> Source:
        """Return the source of a field of the wanted server."""
        return self.wanted.sources[field]

    def flavor_itself(self) -> Origin:
        return Origin(f"flavor {self.wanted.flavor.name!r}", self.source("flavor"))

    def spec(self, key: str) -> Origin:
        """Return the extra spec with this key as an origin."""
        return Origin(f"{self.flavor_itself().text}, extra spec {key!r}", self.source("flavor"))

    def image_trait(self, trait: str) -> Origin:
        field = "image traits" if "image traits" in self.wanted.sources else "image_properties"
        return Origin(f"image property 'trait:{trait}'", self.source(field))

    def image_property(self, key: str) -> Origin:
        return Origin(f"image property {key!r}", self.source("image_properties"))

    def both(self, key: str, prefix: str = "hw") -> tuple[str | None, str | None]:
        """Return the values of the extra spec and of the image property with this key."""
        return self.specs.get(f"{prefix}:{key}"), self.properties.get(f"{prefix}_{key}")

    def origin(self, key: str, prefix: str = "hw") -> Origin:
        """Return the extra spec, the image property, or both, as an origin."""
        spec, image = f"{prefix}:{key}", f"{prefix}_{key}"
        if spec not in self.specs:
            return self.image_property(image)
        if image not in self.properties:
            return self.spec(spec)
        return joined(self.spec(spec), self.image_property(image))

    def agreed(self, key: str, allowed: Collection[str] = (), prefix: str = "hw") -> str | None:
        """Return the value of the flavor or the image; an absent one is None.

        Raises RequestFails if both have one and they differ, or if it is not an allowed one.
        """
        flavor, image = self.both(key, prefix)
        if flavor and image and flavor != image:
            raise self._conflict(key, prefix)
        value = flavor or image
        if value is not None and allowed and value not in allowed:
            raise RequestFails(
                f"invalid {self.origin(key, prefix).text} = {value!r}: expected one of "
                f"{', '.join(map(repr, allowed))}"
            )
        return value

    def flag(self, key: str) -> bool:
        """Return the truth value of the flavor or the image.

        Raises RequestFails if both have one and they differ.
        """
        flavor, image = (None if value is None else is_true(value) for value in self.both(key))
        if flavor is not None and image is not None and flavor != image:
            raise self._conflict(key, "hw")
        return bool(flavor or image)

    def image_flag(self, key: str) -> bool:
        """Return the truth value of an image property."""
        return is_true(self.properties.get(key, ""))

    def _conflict(self, key: str, prefix: str) -> RequestFails:
        flavor, image = self.both(key, prefix)
        return RequestFails(
            f"{self.spec(f'{prefix}:{key}').text} is {flavor!r}, but image property "
            f"'{prefix}_{key}' is {image!r}"
        )


def is_true(text: str) -> bool:
    """Return the truth value of the text, as Nova reads it."""
    return text.strip().lower() in _TRUE


def joined(one: Origin, other: Origin) -> Origin:
    """Return two origins of one demand as one, with the source of the first."""
    return one if one == other else Origin(f"{one.text} and {other.text}", one.source)
