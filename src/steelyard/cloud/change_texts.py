"""Changes as the options of ``steelyard whatif`` write them."""

import dataclasses
from collections.abc import Callable, Mapping

from steelyard import errors
from steelyard.aggregates import FORCE_KEY
from steelyard.cloud.changes import (
    Change,
    KeyedPart,
    SetKey,
    SetMembership,
    TakeIn,
    TakeOut,
    TakeOutAggregate,
    TakeOutByMetadata,
)
from steelyard.cloud.model import Cloud
from steelyard.text import spelling


def parse(option: str, text: str, cloud: Cloud) -> Change:
    """Return the change that the option with this value requests.

    A name in the value is the longest name in the cloud that a colon follows. Raises BadRequest if
    the value is malformed, and NotFound if no name in the cloud begins it.
    """
    found = OPTIONS[option]
    return found.parse(_Value(text, found.expected), cloud)


@dataclasses.dataclass(frozen=True)
class _Value:
    """The value of an option, and its expected form."""

    text: str
    expected: str

    def split(self, kind: str, rest: str, there: Mapping[str, object]) -> tuple[str, str]:
        """Return the name that begins the rest of the value, and the text after its colon."""
        names = [name for name in there if rest.startswith(f"{name}:")]
        name = max(names, key=len, default=rest.partition(":")[0])
        after = rest[len(name) + 1 :]
        if not (name and after):
            raise self.malformed()
        if not names:
            raise errors.NotFound(f"no {kind} {name!r}{spelling.near(name, there)}", name)
        return name, after

    def place(self, cloud: Cloud) -> tuple[KeyedPart, str, str]:
        """Return the part of the cloud, its name, and the text after the name."""
        kind, _, rest = self.text.partition(":")
        if kind not in list(KeyedPart):
            raise self.malformed()
        part = KeyedPart(kind)
        there: Mapping[str, object] = (
            cloud.flavors if part is KeyedPart.FLAVOR else cloud.aggregates
        )
        return part, *self.split(part, rest, there)

    def malformed(self) -> errors.BadRequest:
        """Return the error about a malformed value."""
        return errors.BadRequest(
            f"invalid value {self.text!r}: expected {self.expected}", self.text
        )


def _set(value: _Value, cloud: Cloud) -> Change:
    part, name, rest = value.place(cloud)
    key, equals, text = rest.partition("=")
    if not (key and equals):
        raise value.malformed()
    return SetKey(part, name, key, text)


def _unset(value: _Value, cloud: Cloud) -> Change:
    return SetKey(*value.place(cloud), None)


def _force(value: _Value, cloud: Cloud) -> Change:
    return SetKey(KeyedPart.AGGREGATE, value.text, FORCE_KEY, "true")


def _unforce(value: _Value, cloud: Cloud) -> Change:
    return SetKey(KeyedPart.AGGREGATE, value.text, FORCE_KEY, None)


def _add_host(value: _Value, cloud: Cloud) -> Change:
    return SetMembership(
        *value.split(KeyedPart.AGGREGATE, value.text, cloud.aggregates), joins=True
    )


def _remove_host(value: _Value, cloud: Cloud) -> Change:
    return SetMembership(
        *value.split(KeyedPart.AGGREGATE, value.text, cloud.aggregates), joins=False
    )


def _out(value: _Value, cloud: Cloud) -> Change:
    kind, _, name = value.text.partition(":")
    if kind == "host" and name:
        return TakeOut(name)
    if kind == "aggregate" and name:
        return TakeOutAggregate(name)
    key, _, text = value.text.partition("=")
    if not (key and text):
        raise value.malformed()
    return TakeOutByMetadata(key, text)


def _in(value: _Value, cloud: Cloud) -> Change:
    kind, _, name = value.text.partition(":")
    if kind != "host" or not name:
        raise value.malformed()
    return TakeIn(name)


@dataclasses.dataclass(frozen=True)
class Option:
    """An option that requests a change."""

    expected: str
    """The form of its value."""
    help: str
    parse: Callable[[_Value, Cloud], Change]


OPTIONS: Mapping[str, Option] = {
    "--set": Option(
        "flavor:NAME:KEY=VALUE or aggregate:NAME:KEY=VALUE",
        "set an extra spec of a flavor, or a metadata key of an aggregate",
        _set,
    ),
    "--unset": Option(
        "flavor:NAME:KEY or aggregate:NAME:KEY",
        "remove an extra spec of a flavor, or a metadata key of an aggregate",
        _unset,
    ),
    "--force": Option("AGGREGATE", "set force_metadata_check of an aggregate to true", _force),
    "--unforce": Option("AGGREGATE", "remove force_metadata_check of an aggregate", _unforce),
    "--add-host": Option("AGGREGATE:HOST", "add a host to an aggregate", _add_host),
    "--remove-host": Option("AGGREGATE:HOST", "remove a host from an aggregate", _remove_host),
    "--out": Option(
        "host:NAME, aggregate:NAME or KEY=VALUE",
        "take a host out of service, all hosts of an aggregate, or those of all aggregates with "
        "this metadata, of which a part between commas suffices",
        _out,
    ),
    "--in": Option("host:NAME", "put a host back into service", _in),
}
"""The options by name."""
