"""steelyard tags reconcile"""

import argparse
import collections
import dataclasses
import sys
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import tqdm
from oslo_log import log as logging

from steelyard import conf as options
from steelyard import errors
from steelyard.cli.app import INTERRUPTED, USERS_MISTAKE, Listing
from steelyard.cli.tags import OnTheDatabase
from steelyard.tags.backends.memory import MemoryBackend
from steelyard.tags.names import Owner, Prefixes
from steelyard.tags.plans import Plan

if TYPE_CHECKING:
    from steelyard.tags.service import TagService

LOG = logging.getLogger(__name__)

_AGREES = "nothing to do", "both agree"


class _Each:
    """Each tag by itself."""

    def __init__(self, prefixes: Prefixes) -> None:
        self.rows: list[tuple[str, ...]] = []
        self._owners = {prefixes.of(owner): owner.value for owner in Owner}

    def add(self, plan: Plan) -> None:
        self.rows.extend(
            (
                plan.instance.id,
                self._owners.get(step.prefix, ""),
                step.tag,
                step.action.value,
                step.why,
            )
            for step in plan.steps
        )


@dataclasses.dataclass
class _Group:
    servers: int = 0
    tags: int = 0
    example: str = ""


class _Summary:
    """How often something happens, for how many servers, and an example."""

    def __init__(self) -> None:
        self._groups: dict[tuple[str, str], _Group] = collections.defaultdict(_Group)

    def add(self, plan: Plan) -> None:
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
    """Bring what is known of tags in line with what the backend has.

    The backend is right, except about what is still under way. It can be run again at any time; the
    second run has nothing to do. The exit status is 0 when all servers have been looked at, 2 when
    the command could not begin or go on, and 130 when it was interrupted.
    """

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--owner", choices=sorted(Owner), help="whose tags; everybody's unless given"
        )
        parser.add_argument(
            "--dry-run", action="store_true", help="change nothing, and say what would change"
        )
        parser.add_argument(
            "--jobs-anew",
            action="store_true",
            help="forget all jobs first: the backend has been set up anew, and counts from 1 again",
        )
        parser.add_argument(
            "--long", action="store_true", help="list each tag, not how many there are"
        )
        return parser

    def run(self, parsed_args: argparse.Namespace) -> int:
        self._cut_short: tuple[Exception, int] | None = None
        status = super().run(parsed_args)
        return status if status or self._cut_short is None else self.end(*self._cut_short)

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        if parsed_args.long:
            return "Server", "Owner", "Tag", "Action", "Why"
        return "Action", "Servers", "Tags", "Why", "Example"

    def content(self, parsed_args: argparse.Namespace) -> Any:
        if parsed_args.jobs_anew and parsed_args.dry_run:
            raise errors.BadRequest("--jobs-anew changes what is known: leave --dry-run out")
        service = self.service(parsed_args)
        service.refuse_wrong_backend()
        if isinstance(service.backend, MemoryBackend):
            raise errors.BadRequest(
                f"the backend memory has nothing but what the database has: name the one that the "
                f"instances run at as backend in [{options.TAGS_GROUP}] of a --config-file"
            )
        shown: _Each | _Summary = _Each(service.prefixes) if parsed_args.long else _Summary()
        self._carry_out(service, parsed_args, shown.add)
        return shown.rows

    def _carry_out(
        self,
        service: "TagService",
        parsed_args: argparse.Namespace,
        show: Callable[[Plan], None],
    ) -> None:
        """When it cannot go on, what is done is shown all the same."""
        owners = tuple(Owner) if parsed_args.owner is None else (Owner(parsed_args.owner),)
        work = service.reconciliation(owners)
        if parsed_args.jobs_anew:
            service.store.forget_jobs()
        total, done = service.store.count(), 0
        what = "looked at; nothing is changed" if parsed_args.dry_run else "done"
        try:
            with _progress(total) as bar:
                for plans in work.planned() if parsed_args.dry_run else work.carried_out():
                    done += len(plans)
                    bar.update(len(plans))
                    for plan in plans:
                        show(plan)
        except KeyboardInterrupt:
            self._cut_short = _unfinished("interrupted", done, total, what), INTERRUPTED
        except errors.SteelyardError as error:
            self._cut_short = _unfinished(str(error), done, total, what), USERS_MISTAKE
        except Exception as error:  # a backend of somebody's can raise anything
            LOG.exception("The backend has failed")
            why = f"the backend has failed: {type(error).__name__}: {error}"
            self._cut_short = _unfinished(why, done, total, what), USERS_MISTAKE


def _progress(total: int) -> "tqdm.tqdm[Any]":
    """A bar where somebody sees it and it takes long."""
    shown = sys.stderr.isatty()
    bar: tqdm.tqdm[Any] = tqdm.tqdm(
        desc="servers", total=total, delay=1, leave=False, disable=not shown
    )
    return bar


def _unfinished(why: str, done: int, total: int, what: str) -> errors.SteelyardError:
    return errors.SteelyardError(
        f"{why}\nsteelyard: stopped after {done} of {total} servers; what is listed is {what}; "
        f"run the same again for all"
    )
