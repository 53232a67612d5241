"""The command ``compare``."""

import argparse
import dataclasses
from collections.abc import Iterator
from typing import Any, Self

from steelyard import errors
from steelyard.analysis.comparison import Comparison, Difference, compare
from steelyard.analysis.novas_rules import OwnRules
from steelyard.cli.commands import Listed, Listing
from steelyard.cli.inputs import clouds, installed_nova
from steelyard.cli.outputs import progress
from steelyard.cli.outputs.columns import Many
from steelyard.cloud import Cloud, garbage
from steelyard.filters.aggregate_instance_type import AggregateInstanceTypeFilter
from steelyard.scheduler.rules import NovaRules

_DIFFERENT = 1

_NOVA = "nova"
_OWN = "own"

# Advice on how to use Nova's own rules, by the value of --rules.
_HOW_TO_GET_NOVAS = {
    _OWN: "leave out --rules own where Nova is installed",
    None: "install the package 'nova' in this environment",
}


class Compare(Listing):
    """Compare Nova's aggregate filter with steelyard's.

    The command runs AggregateInstanceExtraSpecsFilter and AggregateInstanceTypeFilter for every
    flavor on every host, and groups the differences by cause. It contacts no service and changes
    nothing.

    Nova's rules come from the Nova that is installed in the same environment. Without one, the
    command uses steelyard's own knowledge of these rules. It is complete for values that both
    filters interpret alike, and incomplete for other values: results that it does not cover are
    reported as not known.

    The exit status is 0 if nothing would change, 1 if something would change or is not known, and 2
    if the input is invalid.
    """

    examples = (
        "steelyard compare --example",
        "steelyard compare --cloud cloud.yaml --flavor m1.small --each",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        clouds.add_flavors(parser, "flavor to compare")
        parser.add_argument(
            "--each",
            action="store_true",
            help="list every flavor on every host, including those without a change",
        )
        parser.add_argument(
            "--rules",
            choices=(_NOVA, _OWN),
            help="source of Nova's rules: the installed Nova, or steelyard's own knowledge; "
            "default: nova if it is installed, else own",
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        if parsed_args.each:
            return "Flavor", "Host", "Nova", "steelyard", "Change", "Cause", "Source of rules"
        return "Change", "Flavors", "Hosts", "Cause", "Source of rules"

    @garbage.paused()
    def result(self, parsed_args: argparse.Namespace) -> Listed:
        cloud = _narrowed(clouds.described(parsed_args), parsed_args.flavor)
        conf = self.configuration()
        self.warn_of_unknown_options(conf)
        ours = AggregateInstanceTypeFilter(conf)
        comparison = compare(cloud, ours, _rules(parsed_args.rules), progress.watched)
        pairs = _Pairs.of(comparison)
        told = str(pairs)
        if comparison.rules == OwnRules.name:
            told += f"; for Nova's own rules, {_HOW_TO_GET_NOVAS[parsed_args.rules]}"
        return Listed(
            kind="pairs" if parsed_args.each else "changes",
            rows=_each(comparison) if parsed_args.each else _changes(comparison),
            summary=dataclasses.asdict(pairs),
            told=[told],
            status=_DIFFERENT if comparison.changes else 0,
        )


def _narrowed(cloud: Cloud, names: list[str]) -> Cloud:
    if names:
        cloud = dataclasses.replace(cloud, flavors={name: cloud.flavor(name) for name in names})
    for kind, there in (("flavors", cloud.flavors), ("hosts", cloud.hosts)):
        if not there:
            raise errors.BadRequest(f"nothing to compare: the cloud has no {kind}")
    return cloud


def _rules(choice: str | None) -> NovaRules:
    """Return the chosen rules. By default, those of an installed Nova, otherwise steelyard's own.

    Raises BadRequest if Nova is required but missing, or installed but unusable.
    """
    if choice == _OWN:
        return OwnRules()
    try:
        found = installed_nova.rules()
    except errors.BadRequest as error:
        raise errors.BadRequest(f"{error}, or compare with --rules own") from error
    if found is None and choice is not None:
        raise errors.BadRequest(
            "--rules nova: Nova is not installed in this environment; run steelyard in that of "
            "nova-scheduler, or leave out --rules to compare with steelyard's own knowledge"
        )
    return found or OwnRules()


def _changes(comparison: Comparison) -> Iterator[tuple[Any, ...]]:
    for change in comparison.changes:
        names = Many(change.flavors), Many(change.hosts)
        yield str(change.kind), *names, change.cause, comparison.rules


def _each(comparison: Comparison) -> Iterator[tuple[Any, ...]]:
    for judgement in comparison.judgements:
        ours = "passes" if judgement.passes else "rejects"
        change = None if judgement.kind is None else str(judgement.kind)
        for flavor in judgement.flavors:
            for host in judgement.hosts:
                why = (change, judgement.cause or None)
                yield flavor, host, str(judgement.nova), ours, *why, comparison.rules


@dataclasses.dataclass(frozen=True)
class _Pairs:
    """The number of pairs of flavor and host whose result stays the same or changes."""

    novas_rules: str
    flavors: int
    hosts: int
    same: int
    changed: int
    not_known: int

    @classmethod
    def of(cls, comparison: Comparison) -> Self:
        pairs = dict.fromkeys(Difference, 0)
        for change in comparison.changes:
            pairs[change.kind] += change.pairs
        different = sum(pairs.values())
        not_known = pairs[Difference.NOT_KNOWN]
        return cls(
            comparison.rules,
            comparison.flavors,
            comparison.hosts,
            same=comparison.flavors * comparison.hosts - different,
            changed=different - not_known,
            not_known=not_known,
        )

    def __str__(self) -> str:
        own = self.novas_rules == OwnRules.name
        source = "steelyard's knowledge of Nova's rules" if own else self.novas_rules
        return (
            f"{self.same} of {self.flavors * self.hosts} pairs of flavor and host "
            f"({self.flavors} x {self.hosts}) stay the same, {self.changed} would change"
            f"{f', {self.not_known} are not known' if self.not_known else ''}, "
            f"according to {source}"
        )
