"""steelyard query"""

import argparse
from collections.abc import Iterator
from typing import Any

from steelyard import errors
from steelyard.cli import clouds, os_clouds
from steelyard.cli.app import Showing
from steelyard.cli.columns import Names, Reasons
from steelyard.scheduler import Cloud, FilterScheduler
from steelyard.scheduler.host_state import host_states
from steelyard.scheduler.selecting import DescribedProviders
from steelyard.traits import CandidatesRequest, ProvidersRequest, asking

# The options that become parameters of the query string as they are.
_PARAMS = ("resources", "required", "member_of", "in_tree", "limit")


class Query(Showing):
    """Write a request to Placement, and show whom it selects.

    With --flavor, what a server of that flavor asks for. Else what the other options say:
    allocation candidates, or with --providers resource providers. The microversion is the lowest
    that can express the request.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--flavor", metavar="NAME", help="a flavor of the cloud file")
        parser.add_argument("--cloud", metavar="FILE", help="the cloud file that has the flavor")
        parser.add_argument(
            "--required",
            action="append",
            metavar="TRAITS",
            help="traits, with ! in front of forbidden ones: A,!B; or any of some: in:A,B; may be "
            "repeated",
        )
        parser.add_argument("--resources", metavar="CLASS:AMOUNT,…")
        parser.add_argument(
            "--member-of",
            action="append",
            metavar="AGGREGATE",
            help="a UUID, in:UUID,UUID, or the same with ! in front; may be repeated",
        )
        parser.add_argument("--in-tree", metavar="UUID", help="a provider of the tree")
        parser.add_argument(
            "--limit", metavar="N", help="how many candidates at most; not for --against"
        )
        parser.add_argument(
            "--providers", action="store_true", help="ask for providers, not for candidates"
        )
        parser.add_argument(
            "--against", metavar="FILE", help="a cloud file: which of its hosts are selected"
        )
        parser.add_argument(
            "--os-cloud", metavar="NAME", help="a cloud of clouds.yaml whose Placement to ask"
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        names = ["Request", "Microversion"]
        if parsed_args.against is not None:
            names += ["Selected", "Rejected"]
        if parsed_args.os_cloud is not None:
            names += ["Providers"]
        return tuple(names)

    def content(self, parsed_args: argparse.Namespace) -> Any:
        request, microversion = self._request(parsed_args)
        row: list[Any] = [str(request), microversion]
        if parsed_args.against is not None:
            row += self._against(request, clouds.read(parsed_args.against))
        if parsed_args.os_cloud is not None:
            answer = asking.ask(os_clouds.placement(parsed_args.os_cloud), request)
            row.append(Names(sorted(_providers(answer))))
        return row

    def _request(self, parsed_args: argparse.Namespace) -> tuple[Any, str]:
        params = list(_params(parsed_args))
        if parsed_args.flavor is None:
            if parsed_args.cloud is not None:
                raise errors.BadRequest("--cloud is the file that has the flavor: name it too")
            kind = ProvidersRequest if parsed_args.providers else CandidatesRequest
            request = kind.of(params)
            return request, request.microversion
        if params or parsed_args.providers:
            raise errors.BadRequest("--flavor says it all; leave the other parts out")
        path = parsed_args.cloud or parsed_args.against
        if path is None:
            raise errors.BadRequest(
                "--flavor needs the file that describes it; name it with --cloud"
            )
        scheduler = FilterScheduler(clouds.read(path), self.configuration())
        built = scheduler.query(parsed_args.flavor)
        # Of somebody's builder no more is known than what it writes.
        return CandidatesRequest.parse(built.query_string()), built.microversion

    def _against(self, request: Any, cloud: Cloud) -> list[Any]:
        """The hosts that are selected, and why the others are not."""
        providers = DescribedProviders(self.configuration())
        why_not = {
            state.host: list(providers.why_not(request, state)) for state in host_states(cloud)
        }
        return [
            Names([host for host, reasons in why_not.items() if not reasons]),
            Reasons({host: reasons for host, reasons in why_not.items() if reasons}),
        ]


def _params(parsed_args: argparse.Namespace) -> Iterator[tuple[str, str]]:
    for name in _PARAMS:
        given = getattr(parsed_args, name)
        for value in given if isinstance(given, list) else [] if given is None else [given]:
            yield name, value


def _providers(answer: Any) -> set[str]:
    """The names, or for candidates the UUIDs, of what was selected."""
    if "resource_providers" in answer:
        return {provider["name"] for provider in answer["resource_providers"]}
    return {uuid for each in answer["allocation_requests"] for uuid in each["allocations"]}
