"""The commands ``usage``, ``consumer types`` and ``consumer prune-types``."""

import argparse
from typing import Any

from oslo_config import cfg

from steelyard import conf as options
from steelyard import errors
from steelyard.cli.commands import Listed, Listing
from steelyard.cli.inputs import consumer_models
from steelyard.cli.inputs.consumer_models import OnConsumers
from steelyard.cli.outputs.columns import Amounts, Names
from steelyard.consumers import names
from steelyard.consumers.usages import COUNT
from steelyard.text.wording import counted


def require_tag_database(conf: cfg.ConfigOpts, url: str | None, otherwise: str = "") -> None:
    """Raise BadRequest if neither the URL nor the configuration names the tag database.

    ``otherwise`` is the end of the message: the alternatives.
    """
    options.register_tags(conf)
    require_database(conf, options.TAGS_GROUP, "tag", url, otherwise)


def require_database(
    conf: cfg.ConfigOpts, group: str, kind: str, url: str | None, otherwise: str = ""
) -> None:
    """Raise BadRequest if neither the URL nor the group of options names the database."""
    if url is None and options.Values(conf, group).connection is None:
        raise errors.BadRequest(
            f"missing --url: name the {kind} database, or set connection in [{group}] of a "
            f"--config-file{otherwise}"
        )


class Usage(OnConsumers, Listing):
    """Show the usage of a project by consumer type."""

    examples = (
        "steelyard usage --project $OS_PROJECT_ID --os-cloud mycloud",
        "steelyard usage --project $OS_PROJECT_ID --type INSTANCE --url sqlite:////var/lib/consumers.db",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--project", required=True, metavar="P", help="ID of the project")
        parser.add_argument(
            "--user", metavar="U", help="ID of a user of the project; default: all users"
        )
        parser.add_argument(
            "--type",
            metavar="T",
            help="consumer type to show, or 'all' for the sum of all types; default: each type",
        )
        consumer_models.add_source(parser)
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return ("Type", "Consumers", "Resources")

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        query = (parsed_args.project, parsed_args.user, parsed_args.type)
        usages = self.model(parsed_args).usages(*query)["usages"]
        return Listed(
            kind="usages",
            rows=[
                (
                    name,
                    used[COUNT],
                    Amounts({key: used[key] for key in sorted(used) if key != COUNT}),
                )
                for name, used in sorted(usages.items())
            ],
            summary={
                "project": parsed_args.project,
                "user": parsed_args.user,
                "consumers": sum(used[COUNT] for used in usages.values()),
            },
            told=() if usages else [f"no consumers found in project {parsed_args.project!r}"],
        )


class ConsumerTypes(OnConsumers, Listing):
    """List consumer types, their consumers and possible typos."""

    examples = (
        "steelyard consumer types --url sqlite:////var/lib/consumers.db",
        "steelyard consumer types --project $OS_PROJECT_ID --os-cloud mycloud",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--project",
            metavar="P",
            help="ID of a project, required with --os-cloud; default: all projects",
        )
        parser.add_argument(
            "--user", metavar="U", help="ID of a user of the project; default: all users"
        )
        consumer_models.add_source(parser)
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return ("Type", "Consumers", "Possible typo of")

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        counts = self._counts(parsed_args)
        near = names.near_misses(counts)
        return Listed(
            kind="types",
            rows=[(name, counts[name], Names(near.get(name, []))) for name in sorted(counts)],
            summary={"types": len(counts), "consumers": sum(counts.values())},
        )

    def _counts(self, parsed_args: argparse.Namespace) -> dict[str, int]:
        """Return the number of consumers by type."""
        project, user = parsed_args.project, parsed_args.user
        if project is None and user is not None:
            raise errors.BadRequest("--user needs --project: add the project of the user")
        if project is None and parsed_args.os_cloud is not None:
            raise errors.BadRequest(
                "--os-cloud needs --project: Placement counts the consumers of one project; add "
                "--project"
            )
        # Third-party models may lack the method. For a project, they have usages.
        needed = ("types",) if project is None else ()
        model: Any = self.model(parsed_args, *needed)
        if hasattr(model, "types"):
            counts: dict[str, int] = model.types(project, user)
            return counts
        usages = model.usages(project, user)["usages"]
        return {name: used[COUNT] for name, used in usages.items()}


class ConsumerPruneTypes(OnConsumers):
    """Remove unused consumer types.

    The type UNKNOWN is kept. A removed type is created again when a service uses it.
    """

    examples = ("steelyard consumer prune-types --url sqlite:////var/lib/consumers.db",)

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--url",
            required=True,
            help=f"SQLAlchemy URL of the consumer store, {consumer_models.URL_EXAMPLES}",
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        model = self.model(parsed_args, "remove_unused_types")
        removed: list[str] = model.remove_unused_types()
        names_of_removed = f": {', '.join(removed)}" if removed else ""
        self.confirm(f"{counted(len(removed), 'type')} removed{names_of_removed}")
