"""The commands ``tags register`` and ``tags forget``."""

import argparse
import collections
from typing import TYPE_CHECKING, Any

from steelyard import conf as options
from steelyard import errors
from steelyard.cli.commands import Showing, Shown
from steelyard.cli.outputs.columns import Examples
from steelyard.cli.tags.parts import worked_through
from steelyard.cli.tags.sources import OnServer, OnTheDatabase
from steelyard.tags.states.values import Instance

if TYPE_CHECKING:
    from steelyard.tags.database.registering import Registered


class TagsRegister(OnTheDatabase, Showing):
    """Register one server of the backend, or all of them.

    Only registered servers can have tags. The backend must have an instance with the name in
    --name. The backend memory has no instances of its own and accepts every name.

    With --from-backend, the command registers all instances of the backend that are not registered
    yet, each with its name as the ID, for one project and user. --match chooses some by their
    names. The command can be repeated. Run tags reconcile afterwards to record the tags.
    """

    examples = (
        "steelyard tags register 3d4c9b1e --name snf-1042 --project shop --user ada --url sqlite:////var/lib/tags.db",
        "steelyard --config-file tags.conf tags register --from-backend --match 'shop-*' "
        "--project shop --user ada",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("server", metavar="SERVER", nargs="?", help="ID of the server")
        parser.add_argument("--name", help="name of the instance at the backend")
        parser.add_argument(
            "--from-backend",
            action="store_true",
            help="register all instances of the backend instead of one",
        )
        parser.add_argument(
            "--match",
            metavar="PATTERN",
            help="with --from-backend: shell pattern of the names; default: all names",
        )
        parser.add_argument(
            "--project", required=True, metavar="P", help="ID of the project that owns the server"
        )
        parser.add_argument(
            "--user", required=True, metavar="U", help="ID of the user who created the server"
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        if parsed_args.from_backend:
            return "Registered", "Already registered", "Left alone", "Why"
        return "Server", "Name", "Project", "User"

    def result(self, parsed_args: argparse.Namespace) -> Shown:
        one = (parsed_args.server, parsed_args.name)
        if parsed_args.from_backend:
            if one != (None, None):
                raise errors.BadRequest(
                    "--from-backend registers all servers: leave out SERVER and --name"
                )
            return self._all(parsed_args)
        if None in one:
            raise errors.BadRequest(
                "missing server: name it with SERVER and --name, or add --from-backend"
            )
        if parsed_args.match is not None:
            raise errors.BadRequest("--match needs --from-backend: add it")
        service = self.service(parsed_args)
        if service.backend.in_process:
            service.backend.adopt({parsed_args.name: ()})
        given = (*one, parsed_args.project, parsed_args.user)
        service.register(Instance(*given))
        return Shown(values=given)

    def _all(self, parsed_args: argparse.Namespace) -> Shown:
        service = self.service(parsed_args)
        service.administration.refuse_wrong_backend()
        if service.backend.in_process:
            driver = service.backend.identity().driver
            raise errors.BadRequest(
                f"nothing to register: the backend {driver!r} has only the servers of the "
                f"database; name the backend with the instances in [{options.TAGS_GROUP}] of a "
                f"--config-file"
            )
        inventory = service.inventory
        pattern = "*" if parsed_args.match is None else parsed_args.match
        names = inventory.names(pattern)
        who = (parsed_args.project, parsed_args.user)
        counts = _Counts()
        parts = inventory.register(names, *who, service.instances_per_project)
        done, stop = worked_through(parts, len(names), _size, counts.add)
        if stop is not None:
            stop.error.add_note(
                f"stopped after {done} of {len(names)} servers, {counts.new} of which are "
                f"registered now; run the command again for all"
            )
        return Shown(
            values=(counts.new, counts.known, counts.refused.total(), Examples(counts.reasons())),
            status=0 if stop is None else stop.status,
            error=None if stop is None else stop.error,
        )


def _size(part: "Registered") -> int:
    return len(part.new) + len(part.known) + len(part.refused)


class _Counts:
    """The numbers of servers that were registered, and that were not, by reason."""

    def __init__(self) -> None:
        self._accepted: collections.Counter[str] = collections.Counter()
        self.refused: collections.Counter[str] = collections.Counter()
        self._examples: dict[str, str] = {}

    def add(self, part: "Registered") -> None:
        self._accepted.update(new=len(part.new), known=len(part.known))
        self.refused.update(part.refused.values())
        for name, reason in part.refused.items():
            self._examples.setdefault(reason, name)

    @property
    def new(self) -> int:
        """The number of servers that were registered."""
        return self._accepted["new"]

    @property
    def known(self) -> int:
        """The number of servers that were registered before."""
        return self._accepted["known"]

    def reasons(self) -> list[dict[str, Any]]:
        """Return each reason with its number of servers, and the name of one of them."""
        return [
            {"reason": reason, "servers": count, "example": self._examples[reason]}
            for reason, count in sorted(self.refused.items())
        ]


class TagsForget(OnServer, OnTheDatabase):
    """Forget a server, its tags and their unfinished operations.

    Nothing changes at the backend. The command is for servers that no longer exist. Their IDs and
    names can be used again.
    """

    examples = ("steelyard tags forget 3d4c9b1e --url sqlite:////var/lib/tags.db",)

    def take_action(self, parsed_args: argparse.Namespace) -> None:
        self.service(parsed_args).forget(parsed_args.server)
