"""The command ``query``."""

import argparse
import itertools
import logging
from collections.abc import Iterator
from typing import Any

from steelyard import errors
from steelyard.analysis.selecting import RejectionReasons, shown, trees_of
from steelyard.cli.commands import Showing, Shown
from steelyard.cli.inputs import cloud_names, clouds, os_clouds, parsing, query_options
from steelyard.cli.outputs.columns import CandidateList, Names, ReasonsByHost
from steelyard.clients import queries
from steelyard.cloud import Cloud
from steelyard.scheduler import FilterScheduler
from steelyard.traits import (
    CandidatesRequest,
    ProvidersRequest,
    ProviderTrees,
    ResourceProvider,
    TraitQuery,
)

LOG = logging.getLogger(__name__)

_MOST = 1000
"""The number of candidates that are shown without --limit, as in Nova."""


class Query(Showing):
    """Build a request to Placement and show what it selects.

    With --flavor, build the request for a server of that flavor, and otherwise one from the other
    options: for allocation candidates, or with --providers for resource providers. The microversion
    is the lowest that supports the request.
    """

    examples = (
        "steelyard query --cloud cloud.yaml --flavor m1.small",
        "steelyard query --resources VCPU:2 --group _NIC --resources SRIOV_NET_VF:1 "
        "--against providers.yaml",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--flavor", metavar="NAME", type=cloud_names.FLAVOR, help="flavor of the server"
        )
        query_options.add_image(parser)
        parser.add_argument(
            "--cloud",
            metavar="FILE",
            type=parsing.file_name,
            help="cloud file with the flavor; default: the file of --against",
        )
        query_options.add(parser)
        parser.add_argument(
            "--known-traits",
            action="store_true",
            help="warn about names that are neither standard traits nor custom ones",
        )
        parser.add_argument(
            "--against",
            metavar="FILE",
            type=parsing.file_name,
            help="cloud file with the hosts, or file with the resource providers, to select from",
        )
        parser.add_argument(
            "--os-cloud", metavar="NAME", help="cloud in clouds.yaml with the Placement to query"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> Any:
        # The columns depend on the kind of file.
        parsed_args.there = (
            None if parsed_args.against is None else clouds.read_either(parsed_args.against)
        )
        return super().take_action(parsed_args)

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        names = ["Request", "Microversion"]
        if parsed_args.there is not None:
            names += ["Selected", "Rejected"]
        if _lists_candidates(parsed_args):
            names += ["Candidates"]
        if parsed_args.os_cloud is not None:
            names += ["Providers"]
        return tuple(names)

    def result(self, parsed_args: argparse.Namespace) -> Shown:
        request = self._request(parsed_args)
        if parsed_args.known_traits:
            for error in _unknown_traits(request):
                LOG.warning("%s%s", error.message[0].upper(), error.message[1:])
        row: list[Any] = [str(request), request.microversion]
        if parsed_args.there is not None:
            row += self._against(request, parsed_args)
        if parsed_args.os_cloud is not None:
            answer = queries.ask(os_clouds.connect(parsed_args.os_cloud).placement(), request)
            row.append(Names(sorted(_providers(answer))))
        return Shown(values=tuple(row))

    def _request(self, parsed_args: argparse.Namespace) -> ProvidersRequest | CandidatesRequest:
        if parsed_args.flavor is None:
            if parsed_args.cloud is not None:
                raise errors.BadRequest(
                    "--cloud needs --flavor: it names the file with the flavor; add --flavor, or "
                    "use --against for the file with the hosts"
                )
            if parsed_args.image is not None:
                raise errors.BadRequest(
                    "--image needs --flavor: the traits of the image are added to those of the "
                    "flavor; add --flavor, or name the traits with --required"
                )
            return query_options.request(parsed_args)
        if query_options.params(parsed_args) or parsed_args.providers:
            raise errors.BadRequest(
                "--flavor excludes the other parts of a request: leave them out"
            )
        cloud = parsed_args.there
        if parsed_args.cloud is not None:
            cloud = clouds.read(parsed_args.cloud)
        if not isinstance(cloud, Cloud):
            raise errors.BadRequest("--flavor needs a cloud file: name one with --cloud")
        scheduler = FilterScheduler(cloud, self.configuration())
        return scheduler.query(parsed_args.flavor, query_options.image(parsed_args))

    def _against(self, request: Any, parsed_args: argparse.Namespace) -> list[Any]:
        """Return the selected providers, the reasons for the others, and the candidates."""
        described = isinstance(parsed_args.there, Cloud)
        trees: ProviderTrees[ResourceProvider] = (
            trees_of(parsed_args.there, self.configuration()) if described else parsed_args.there
        )
        reasons = RejectionReasons(trees, "host" if described else "provider")
        if isinstance(request, ProvidersRequest):
            selected, why_not = request.matching(trees), reasons.of_providers(request)
        else:
            selected, why_not = request.roots(trees), reasons.of_trees(request)
        found: list[Any] = [Names(list(map(shown, selected))), ReasonsByHost(why_not)]
        if _lists_candidates(parsed_args):
            most = request.limit or _MOST
            first = list(itertools.islice(request.candidates(trees), most + 1))
            if len(first) > most:
                self.tell(f"the first {most} candidates; show another number with --limit")
            names = {provider.uuid: shown(provider) for provider, _ in trees.pairs}
            found.append(CandidateList(first[:most], names))
        return found


def _lists_candidates(parsed_args: argparse.Namespace) -> bool:
    """Return whether the result has candidates: not if each host is one provider."""
    return isinstance(parsed_args.there, ProviderTrees) and not parsed_args.providers


def _unknown_traits(
    request: ProvidersRequest | CandidatesRequest,
) -> Iterator[errors.InvalidTrait]:
    """Yield an error for each trait of the request that is neither standard nor custom."""
    if isinstance(request, ProvidersRequest):
        queries_of = [request.group.traits]
    else:
        queries_of = [*(group.traits for group in request.groups.values()), request.root_required]
    names = frozenset[str]().union(
        *(each.required.union(each.forbidden, *each.any_of) for each in queries_of)
    )
    yield from TraitQuery(required=names).unknown()


def _providers(answer: Any) -> set[str]:
    """Return the selected providers: their names, or for allocation candidates their UUIDs."""
    if "resource_providers" in answer:
        return {provider["name"] for provider in answer["resource_providers"]}
    return {uuid for each in answer["allocation_requests"] for uuid in each["allocations"]}
