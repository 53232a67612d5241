"""steelyard group create|list|show|delete"""

import argparse
from typing import Any

from steelyard.cli import clouds
from steelyard.cli.app import Action, Listing, Showing
from steelyard.cli.clouds import OnCloudFile
from steelyard.cli.columns import Names, Rules
from steelyard.errors import BadRequest
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import Cloud

_COLUMNS = ("Name", "Policy", "Rules", "Servers", "Hosts")


class GroupCreate(OnCloudFile, Showing):
    """Add a server group to a cloud file.

    The file is replaced as a whole; its comments and anchors are not kept, which is said.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME")
        parser.add_argument(
            "--policy",
            action="append",
            required=True,
            metavar="POLICY",
            help=f"policy of the group: {', '.join(Policy)}",
        )
        parser.add_argument(
            "--rule",
            action="append",
            default=[],
            metavar="KEY=VALUE",
            help="a rule of the policy anti-affinity: max_server_per_host=N",
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return _COLUMNS

    def content(self, parsed_args: argparse.Namespace) -> Any:
        policy, *others = parsed_args.policy
        if others:
            raise BadRequest(
                f"--policy {' --policy '.join(parsed_args.policy)}: expected one policy, because a "
                f"server group has exactly one; leave out the others"
            )
        asked = {"name": parsed_args.name, "policy": policy}
        group = ServerGroup.parse({"server_group": {**asked, "rules": _rules(parsed_args.rule)}})
        saved = clouds.saved(parsed_args.cloud)
        cloud = saved.cloud.with_server_group(group)
        clouds.save(saved, cloud, self.app)
        return _row(group, cloud)


class GroupList(OnCloudFile, Listing):
    """List the server groups of a cloud file."""

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return _COLUMNS

    def content(self, parsed_args: argparse.Namespace) -> Any:
        cloud = clouds.read(parsed_args.cloud)
        return [_row(group, cloud) for group in cloud.server_groups.values()]


class GroupShow(OnCloudFile, Showing):
    """Show a server group of a cloud file."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME")
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return (*_COLUMNS, "UUID")

    def content(self, parsed_args: argparse.Namespace) -> Any:
        cloud = clouds.read(parsed_args.cloud)
        group = cloud.server_group(parsed_args.name)
        return (*_row(group, cloud), group.uuid)


class GroupDelete(OnCloudFile, Action):
    """Remove a server group from a cloud file; its servers stay, in no group.

    The file is replaced as a whole; its comments and anchors are not kept, which is said.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("name", metavar="NAME")
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        saved = clouds.saved(parsed_args.cloud)
        leaving = len(saved.cloud.server_group(parsed_args.name).members)
        clouds.save(saved, saved.cloud.without_server_group(parsed_args.name), self.app)
        self.app.stdout.write(f"{parsed_args.name} is gone; servers that were in it: {leaving}\n")


def _rules(given: list[str]) -> dict[str, str]:
    for rule in given:
        if "=" not in rule:
            raise BadRequest(f"--rule {rule!r} is not understood; write KEY=VALUE")
    rules = dict(rule.split("=", 1) for rule in given)
    if len(rules) < len(given):
        raise BadRequest(f"--rule {' --rule '.join(given)}: a rule is there twice")
    return rules


def _row(group: ServerGroup, cloud: Cloud) -> tuple[Any, ...]:
    servers = sorted(cloud.servers[uuid].name for uuid in group.members)
    return (
        group.name,
        str(group.policy),
        Rules(group.rules),
        Names(servers),
        Names(sorted(group.hosts)),
    )
