"""The command ``tags reconcile``."""

import argparse
import collections
import dataclasses
from collections.abc import Iterable
from typing import Any

from steelyard import conf as options
from steelyard import errors
from steelyard.cli.commands import Listed, Listing
from steelyard.cli.tags.parts import worked_through
from steelyard.cli.tags.sources import OnTheDatabase
from steelyard.tags.names import Owner, Prefixes
from steelyard.tags.plans import Plan

_AGREES = "nothing to do", "both agree"


class _Each:
    """Rows with one tag each."""

    def __init__(self, prefixes: Prefixes) -> None:
        self.rows: list[tuple[str | None, ...]] = []
        self._owners = {prefixes.of(owner): owner.value for owner in Owner}

    def add(self, plans: Iterable[Plan]) -> None:
        self.rows.extend(
            (
                plan.instance.id,
                self._owners.get(step.prefix),
                step.tag,
                step.action.value,
                step.why,
            )
            for plan in plans
            for step in plan.steps
        )


@dataclasses.dataclass
class _Group:
    servers: int = 0
    tags: int = 0
    example: str = ""


class _Summary:
    """Rows with one action and reason each: the numbers of servers and tags, and an example."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], _Group] = collections.defaultdict(_Group)

    def add(self, plans: Iterable[Plan]) -> None:
        for plan in plans:
            self._add(plan)

    def _add(self, plan: Plan) -> None:
        alike: dict[tuple[str, str], list[str]] = collections.defaultdict(list)
        for step in plan.steps:
            alike[step.action.value, step.why].append(step.tag)
        for what, tags in (alike or {_AGREES: [""]}).items():
            group = self._groups[what]
            group.servers += 1
            group.tags += sum(map(bool, tags))
            group.example = group.example or f"{plan.instance.id} {tags[0]}".strip()

    @property
    def rows(self) -> list[tuple[Any, ...]]:
        return [
            (action, group.servers, group.tags, why, group.example)
            for (action, why), group in sorted(self._groups.items())
        ]


class TagsReconcile(OnTheDatabase, Listing):
    """Update the recorded tags to match the backend.

    The backend takes precedence, except for operations in progress. The command can be repeated; a
    second run finds nothing to do. With --forget-missing, it also forgets servers that the backend
    no longer has, unless the backend has none at all.

    The exit status is 0 if all servers were examined, 2 if the
    command could not start or continue, and 130 if it was interrupted.
    """

    examples = (
        "steelyard --config-file tags.conf tags reconcile --dry-run",
        "steelyard --config-file tags.conf tags reconcile --forget-missing --long",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--owner", choices=sorted(Owner), help="owner of the tags; default: all owners"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="list the changes without making them"
        )
        parser.add_argument(
            "--forget-missing",
            action="store_true",
            help="forget servers that the backend no longer has, with their tags",
        )
        parser.add_argument(
            "--forget-jobs",
            action="store_true",
            help="forget all jobs first, if the backend was reinstalled and counts jobs from 1 "
            "again",
        )
        parser.add_argument(
            "--long", action="store_true", help="list each tag instead of a summary"
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        if parsed_args.long:
            return "Server", "Owner", "Tag", "Action", "Why"
        return "Action", "Servers", "Tags", "Why", "Example"

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        if parsed_args.forget_jobs and parsed_args.dry_run:
            raise errors.BadRequest("--forget-jobs changes the database: leave out --dry-run")
        if parsed_args.forget_missing and parsed_args.owner is not None:
            raise errors.BadRequest(
                "--forget-missing forgets the tags of all owners: leave out --owner"
            )
        service = self.service(parsed_args)
        service.administration.refuse_wrong_backend()
        if service.backend.in_process:
            driver = service.backend.identity().driver
            raise errors.BadRequest(
                f"nothing to reconcile: the backend {driver!r} has only the tags of the database; "
                f"name the backend with the instances in [{options.TAGS_GROUP}] of a --config-file"
            )
        owners = tuple(Owner) if parsed_args.owner is None else (Owner(parsed_args.owner),)
        work = dataclasses.replace(
            service.jobs.reconciliation(owners), forget_missing=parsed_args.forget_missing
        )
        if parsed_args.forget_jobs:
            service.administration.forget_jobs()
        total = service.store.count()
        shown: _Each | _Summary = _Each(service.prefixes) if parsed_args.long else _Summary()
        plans = work.planned() if parsed_args.dry_run else work.applied()
        done, stop = worked_through(plans, total, len, shown.add)
        what = "nothing was changed" if parsed_args.dry_run else "the listed changes are made"
        if stop is not None:
            stop.error.add_note(
                f"stopped after {done} of {total} servers; {what}; run the command again for all"
            )
        return Listed(
            kind="tags" if parsed_args.long else "actions",
            rows=shown.rows,
            summary={"dry_run": parsed_args.dry_run, "servers": total, "looked_at": done},
            status=0 if stop is None else stop.status,
            error=None if stop is None else stop.error,
        )
