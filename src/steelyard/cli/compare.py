"""steelyard compare"""

import argparse
import dataclasses
import warnings
from collections.abc import Iterator
from typing import Any

from steelyard import errors
from steelyard.cli import clouds
from steelyard.cli.app import Listing
from steelyard.cli.columns import Many
from steelyard.desk.comparison import Comparison, Kind, compare
from steelyard.desk.novas_rules import OwnRules
from steelyard.desk.rules import Rules
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.scheduler import Cloud

_DIFFERENT = 1

_NOVA = "nova"
_OWN = "own"

# How to get Nova's rules, for those who have chosen our own and for those who have only these.
_HOW_TO_GET_NOVAS = {
    _OWN: "leave out --rules own where Nova is installed",
    None: "install the package 'nova' in this environment",
}


class Compare(Listing):
    """Show what would change if AggregateInstanceTypeFilter took the place of Nova's filter.

    Every flavor is held against every host, by the rules of AggregateInstanceExtraSpecsFilter and
    by ours, and what differs is grouped by its cause. Nothing is sent anywhere, and nothing is
    changed.

    Nova's rules are those of the Nova that is installed in the same environment. Where there is
    none, they are what steelyard knows of them: all about values that both filters read alike,
    and of the others what is certain.

    The exit status is 0 when nothing would change, 1 when something would or is not known, and 2
    when something is wrong with what was given.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        parser.add_argument(
            "--flavor",
            metavar="NAME",
            action="append",
            default=[],
            help="a flavor to compare; may be repeated; all unless given",
        )
        parser.add_argument(
            "--each",
            action="store_true",
            help="list every flavor on every host, also where nothing changes",
        )
        parser.add_argument(
            "--rules",
            choices=(_NOVA, _OWN),
            help="whose knowledge of Nova's rules to use: that of the installed Nova, or our own; "
            "Nova's where it is installed, unless given",
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        self._comparison: Comparison | None = None
        status = super().run(parsed_args)
        if self._comparison is None:
            return status
        self.app.stdout.flush()  # what was listed comes before what is said of it
        said = _summary(self._comparison)
        if self._comparison.rules == OwnRules.name:
            said += f"; for Nova's own rules, {_HOW_TO_GET_NOVAS[parsed_args.rules]}"
        self.app.stderr.write(f"steelyard: {said}\n")
        return status or (_DIFFERENT if self._comparison.changes else 0)

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        if parsed_args.each:
            return "Flavor", "Host", "Nova", "steelyard", "Change", "Cause", "Nova's rules"
        return "Change", "Flavors", "Hosts", "Cause", "Nova's rules"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        cloud = _narrowed(clouds.described(parsed_args), parsed_args.flavor)
        ours = AggregateInstanceTypeFilter(self.configuration())
        self._comparison = compare(cloud, ours, _rules(parsed_args.rules))
        if parsed_args.each:
            return _each(self._comparison)
        return [
            (
                str(change.kind),
                Many(change.flavors),
                Many(change.hosts),
                change.cause,
                self._comparison.rules,
            )
            for change in self._comparison.changes
        ]


def _narrowed(cloud: Cloud, names: list[str]) -> Cloud:
    if names:
        cloud = dataclasses.replace(cloud, flavors={name: cloud.flavor(name) for name in names})
    for kind, there in (("flavors", cloud.flavors), ("hosts", cloud.hosts)):
        if not there:
            raise errors.BadRequest(f"the cloud has no {kind}: there is nothing to compare")
    return cloud


def _rules(choice: str | None) -> Rules:
    """Nova's rules, from Nova where it is there and nothing else is asked for."""
    if choice == _OWN:
        return OwnRules()
    try:
        with warnings.catch_warnings():
            # They are about Nova's own affairs.
            warnings.simplefilter("ignore")
            from steelyard.nova.rules import InstalledRules  # noqa: PLC0415  (needs Nova)

            return InstalledRules()
    except ModuleNotFoundError as error:
        if error.name != "nova":
            raise _broken(error) from error
        if choice is None:
            return OwnRules()
        raise errors.BadRequest(
            "--rules nova: Nova is not installed in this environment: run steelyard in that of "
            "nova-scheduler, or leave --rules out to compare by steelyard's own knowledge"
        ) from error
    except Exception as error:  # what an import of Nova may raise, nobody has listed
        raise _broken(error) from error


def _broken(error: Exception) -> errors.BadRequest:
    return errors.BadRequest(
        f"Nova is installed here, but cannot be used: {type(error).__name__}: {error}; mend that, "
        f"or compare by steelyard's own knowledge with --rules own"
    )


def _each(comparison: Comparison) -> Iterator[tuple[Any, ...]]:
    for judgement in comparison.judgements:
        ours = "passes" if judgement.passes else "rejects"
        change = "" if judgement.kind is None else str(judgement.kind)
        for flavor in judgement.flavors:
            for host in judgement.hosts:
                answers = (str(judgement.nova), ours, change, judgement.cause, comparison.rules)
                yield flavor, host, *answers


def _summary(comparison: Comparison) -> str:
    pairs = dict.fromkeys(Kind, 0)
    for change in comparison.changes:
        pairs[change.kind] += change.pairs
    everything, unknown = comparison.flavors * comparison.hosts, pairs[Kind.NOT_KNOWN]
    changed = sum(pairs.values()) - unknown
    own = comparison.rules == OwnRules.name
    whose = "what steelyard knows of them" if own else comparison.rules
    return (
        f"Nova's rules from {whose}: "
        f"of {everything} pairs of flavor and host ({comparison.flavors} x {comparison.hosts}) "
        f"{everything - changed - unknown} stay the same, {changed} would change"
        f"{f', {unknown} are not known' if unknown else ''}"
    )
