"""The commands ``group create``, ``group list``, ``group show`` and ``group delete``."""

import argparse
from typing import Any

from steelyard.cli.commands import Command, Listed, Listing, Showing, Shown
from steelyard.cli.inputs import cloud_names, clouds
from steelyard.cli.inputs.clouds import OnCloudFile
from steelyard.cli.outputs.columns import GroupRules, Names
from steelyard.cloud import Cloud
from steelyard.errors import BadRequest
from steelyard.groups import Policy, ServerGroup
from steelyard.text.wording import counted

_COLUMNS = ("Name", "Policy", "Rules", "Servers", "Hosts")


class GroupCreate(OnCloudFile, Showing):
    """Add a server group to a cloud file.

    The file is rewritten, and the command reports lost comments and anchors.
    """

    examples = (
        "steelyard group create db --policy anti-affinity --cloud cloud.yaml",
        "steelyard group create web --policy anti-affinity --rule max_server_per_host=2 --cloud "
        "cloud.yaml",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME", help="name of the server group")
        parser.add_argument(
            "--policy",
            action="append",
            required=True,
            metavar="POLICY",
            help=f"policy of the server group: {', '.join(Policy)}",
        )
        parser.add_argument(
            "--rule",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="rule of the policy anti-affinity, max_server_per_host=N; default: no rule",
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return _COLUMNS

    def result(self, parsed_args: argparse.Namespace) -> Shown:
        policy, *others = parsed_args.policy
        if others:
            raise BadRequest(
                f"--policy {' --policy '.join(parsed_args.policy)}: expected one policy, because a "
                f"server group has exactly one; leave out the others"
            )
        fields = {"name": parsed_args.name, "policy": policy}
        group = ServerGroup.parse({"server_group": {**fields, "rules": _rules(parsed_args.rule)}})
        saved = clouds.saved(parsed_args.cloud)
        cloud = saved.cloud.with_server_group(group)
        clouds.save(saved, cloud, self.app)
        return Shown(values=_row(group, cloud))


class GroupList(Listing):
    """List the server groups of a cloud."""

    examples = ("steelyard group list --example",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return _COLUMNS

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        cloud = clouds.described(parsed_args)
        groups = cloud.server_groups.values()
        return Listed(
            kind="server_groups",
            rows=[_row(group, cloud) for group in groups],
            summary={"server_groups": len(groups)},
        )


class GroupShow(Showing):
    """Show a server group of a cloud."""

    examples = ("steelyard group show web --example",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        parser.add_argument(
            "name", metavar="NAME", type=cloud_names.GROUP, help="name of the server group"
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return (*_COLUMNS, "UUID")

    def result(self, parsed_args: argparse.Namespace) -> Shown:
        cloud = clouds.described(parsed_args)
        group = cloud.server_group(parsed_args.name)
        return Shown(values=(*_row(group, cloud), group.uuid))


class GroupDelete(OnCloudFile, Command):
    """Remove a server group from a cloud file.

    The servers of the group stay, without a group. The file is rewritten, and the command reports
    lost comments and anchors.
    """

    examples = ("steelyard group delete db --cloud cloud.yaml",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "name", metavar="NAME", type=cloud_names.GROUP, help="name of the server group"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        saved = clouds.saved(parsed_args.cloud)
        leaving = len(saved.cloud.server_group(parsed_args.name).members)
        clouds.save(saved, saved.cloud.without_server_group(parsed_args.name), self.app)
        self.confirm(
            f"server group {parsed_args.name!r} deleted; it had {counted(leaving, 'server')}"
        )


def _rules(given: list[str]) -> dict[str, str]:
    for rule in given:
        if "=" not in rule:
            raise BadRequest(f"invalid --rule {rule!r}: expected KEY=VALUE", rule)
    rules = dict(rule.split("=", 1) for rule in given)
    if len(rules) < len(given):
        raise BadRequest(
            f"--rule {' --rule '.join(given)}: a rule is given twice; give each rule once"
        )
    return rules


def _row(group: ServerGroup, cloud: Cloud) -> tuple[Any, ...]:
    servers = sorted(cloud.servers[uuid].name for uuid in group.members)
    return (
        group.name,
        str(group.policy),
        GroupRules(group.rules),
        Names(servers),
        Names(sorted(group.hosts)),
    )
