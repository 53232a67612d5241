"""The options that make up a request to Placement, and the parameters that they stand for."""

import argparse
from collections.abc import Iterator
from typing import Any, NamedTuple

from steelyard import errors
from steelyard.traits import CandidatesRequest, ProvidersRequest

_IMAGE_FORM = "expected PROPERTY=VALUE, such as trait:CUSTOM_SSD=required"


class _Given(NamedTuple):
    """An option of a group of the request."""

    suffix: str
    name: str
    value: str


class OfGroup(argparse.Action):
    """The action of an option that belongs to the last ``--group`` before it."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        suffix = namespace.groups[-1] if namespace.groups else ""
        namespace.given = [*namespace.given, _Given(suffix, self.dest, values)]


class OncePerGroup(OfGroup):
    """The action of such an option that may be given once for each group."""

    def __call__(
        self, parser: Any, namespace: argparse.Namespace, values: Any, option: str | None = None
    ) -> None:
        suffix = namespace.groups[-1] if namespace.groups else ""
        if any((each.suffix, each.name) == (suffix, self.dest) for each in namespace.given):
            raise argparse.ArgumentError(self, "given more than once; it takes one value")
        super().__call__(parser, namespace, values, option)


def add(parser: argparse.ArgumentParser) -> None:
    """Add the options of a request that is built without a flavor."""
    parser.set_defaults(given=[])
    for option, metavar, text in (
        (
            "--resources",
            "CLASS:AMOUNT,...",
            "amounts of resource classes, such as VCPU:2,DISK_GB:20; may be repeated",
        ),
        (
            "--required",
            "TRAITS",
            "required traits, and forbidden ones after !, such as A,!B; or alternatives, such as "
            "in:A,B; may be repeated",
        ),
        (
            "--member-of",
            "AGGREGATE",
            "UUID of an aggregate, or alternatives, such as in:UUID,UUID; ! before them excludes "
            "them; may be repeated",
        ),
    ):
        parser.add_argument(option, action=OfGroup, metavar=metavar, help=text)
    parser.add_argument(
        "--in-tree",
        action=OncePerGroup,
        metavar="UUID",
        help="UUID of a resource provider in the tree to search",
    )
    parser.add_argument(
        "--group",
        action="append",
        dest="groups",
        metavar="SUFFIX",
        help="suffix of the group that the options after it belong to, such as 1 or _NIC; one "
        "provider must offer all of it; may be repeated",
    )
    parser.add_argument(
        "--group-policy",
        choices=("isolate", "none"),
        help="isolate if each group with a suffix needs another provider, otherwise none",
    )
    parser.add_argument(
        "--same-subtree",
        action="append",
        metavar="SUFFIX,...",
        help="suffixes of groups of which one provider must be above the others; may be repeated",
    )
    parser.add_argument(
        "--root-required",
        action="append",
        metavar="TRAITS",
        help="traits that the root provider must have, and those it must not have after !; may be "
        "repeated",
    )
    parser.add_argument("--limit", metavar="N", help="largest number of candidates")
    parser.add_argument(
        "--providers",
        action="store_true",
        help="request resource providers instead of allocation candidates",
    )


def add_image(parser: argparse.ArgumentParser) -> None:
    """Add the option for properties of the server's image."""
    parser.add_argument(
        "--image",
        action="append",
        metavar="PROPERTY=VALUE",
        help="property of the image of the server, such as trait:CUSTOM_SSD=required; may be "
        "repeated",
    )


def image(parsed_args: argparse.Namespace) -> dict[str, dict[str, str]] | None:
    """Return the image with the given properties; None if none is given. Raises BadRequest."""
    if parsed_args.image is None:
        return None
    properties: dict[str, str] = {}
    for text in parsed_args.image:
        name, equals, value = text.partition("=")
        if not name or not equals:
            raise errors.BadRequest(f"--image: invalid property {text!r}: {_IMAGE_FORM}")
        if name in properties:
            raise errors.BadRequest(f"--image: {name!r} is given twice; give each property once")
        properties[name] = value
    return {"properties": properties}


def request(parsed_args: argparse.Namespace) -> ProvidersRequest | CandidatesRequest:
    """Return the request that the options describe. Raises BadRequest."""
    if parsed_args.providers and parsed_args.groups:
        raise errors.BadRequest(
            "--providers excludes --group: a request for resource providers has one group"
        )
    if not parsed_args.providers and not any(
        each.name == "resources" for each in parsed_args.given
    ):
        raise errors.BadRequest(
            "missing --resources: allocation candidates need an amount, such as VCPU:1; to request "
            "resource providers instead, add --providers"
        )
    kind = ProvidersRequest if parsed_args.providers else CandidatesRequest
    return kind.of(params(parsed_args))


def params(parsed_args: argparse.Namespace) -> list[tuple[str, str]]:
    """Return the parameters of the query string. Raises BadRequest."""
    found = [("group_policy", parsed_args.group_policy), ("limit", parsed_args.limit)]
    # Placement takes only one of these, so that the options are joined.
    if parsed_args.root_required is not None:
        found.append(("root_required", ",".join(parsed_args.root_required)))
    found += [("same_subtree", each) for each in parsed_args.same_subtree or ()]
    return [
        *_of_groups(parsed_args),
        *((name, value) for name, value in found if value is not None),
    ]


def _of_groups(parsed_args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    given: dict[str, list[_Given]] = {}
    for each in parsed_args.given:
        given.setdefault(each.suffix, []).append(each)
    for suffix in dict.fromkeys(parsed_args.groups or ()):
        if not suffix:
            raise errors.BadRequest("--group: empty suffix; write one such as 1 or _NIC")
        if suffix not in given:
            raise errors.BadRequest(
                f"--group {suffix}: empty group; name its resources and traits after it"
            )
    for suffix, several in given.items():
        amounts = [each.value for each in several if each.name == "resources"]
        if amounts:
            yield f"resources{suffix}", _resources(amounts)
        for each in several:
            if each.name != "resources":
                yield f"{each.name}{suffix}", each.value


def _resources(given: list[str]) -> str:
    """Return all amounts as one parameter, because Placement reads only the last of several."""
    amounts: dict[str, str] = {}
    for amount in ",".join(given).split(","):
        name = amount.partition(":")[0]
        if not amount:
            raise errors.BadRequest(
                f"--resources: empty amount in {','.join(given)!r}; write amounts as CLASS:AMOUNT, "
                f"for example VCPU:2,DISK_GB:20"
            )
        if name in amounts:
            twice = (
                f"{amount!r} is given twice"
                if amounts[name] == amount
                else f"{name!r} is given as {amounts[name]!r} and as {amount!r}"
            )
            raise errors.BadRequest(f"--resources: {twice}; give each resource class once")
        amounts[name] = amount
    return ",".join(amounts.values())
