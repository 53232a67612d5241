"""The commands ``tags dead-letters list``, ``replay`` and ``drop``."""

import abc
import argparse
import time
from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, Any

from steelyard import conf as options
from steelyard import errors, extras
from steelyard.cli.commands import NOT_CONFIRMED, Command, Listed, Listing
from steelyard.cli.inputs.confirmation import confirmed
from steelyard.cli.outputs import columns
from steelyard.text.wording import counted

if TYPE_CHECKING:
    from steelyard.tags.jobs.dead_letters import DeadLetters

_LIMIT = 100
_WHAT = "dead letter"


class _OnDeadLetters(Command):
    """A command that reads the configured broker's queue of dead letters."""

    def letters(self) -> "DeadLetters":
        """Return the dead letters; raise BadRequest without a broker."""
        with extras.required("sql", "the tag service"):
            from steelyard.tags import configured  # noqa: PLC0415  (an extra)
        conf = self.configuration()
        broker = configured.broker(conf)
        if broker is None:
            raise errors.BadRequest(
                f"no broker configured: set transport_url in [{options.TAGS_GROUP}] of a "
                f"--config-file"
            )
        self.warn_of_unknown_options(conf)
        with extras.required("amqp", "the message broker"):
            from steelyard.tags.jobs.dead_letters import DeadLetters  # noqa: PLC0415  (an extra)
        return DeadLetters(broker)


class TagsDeadLettersList(_OnDeadLetters, Listing):
    """List the messages that dispatchers could not apply.

    The messages stay in their queue, in the same order. The oldest message comes first. Commands on
    dead letters that run at the same time do not see each other's messages.
    """

    examples = (
        "steelyard --config-file tags.conf tags dead-letters list",
        "steelyard --config-file tags.conf tags dead-letters list --long -f json",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument(
            "--limit",
            type=int,
            default=_LIMIT,
            metavar="N",
            help=f"most messages to list; default: {_LIMIT}",
        )
        parser.add_argument(
            "--long", action="store_true", help="list the text of each message, too"
        )
        return parser

    def column_names(self, parsed_args: argparse.Namespace) -> tuple[str, ...]:
        return ("ID", "Age", "Reason", *(["Message"] if parsed_args.long else []))

    def result(self, parsed_args: argparse.Namespace) -> Listed:
        if parsed_args.limit < 1:
            raise errors.BadRequest(
                f"invalid --limit {parsed_args.limit}: expected a whole number from 1 up"
            )
        letters = self.letters()
        total, found = letters.first(parsed_args.limit)
        now = time.time()
        rows: list[tuple[Any, ...]] = [
            (
                letter.id,
                columns.Age(None if letter.since is None else max(now - letter.since, 0.0)),
                letter.reason,
                *([letter.body.decode(errors="backslashreplace")] if parsed_args.long else []),
            )
            for letter in found
        ]
        of = "" if total == len(found) else f" of {total}"
        return Listed(
            kind="dead_letters",
            rows=rows,
            summary={"queue": letters.queue, "dead_letters": total, "listed": len(found)},
            told=[f"{counted(len(found), _WHAT)}{of} in the queue {letters.queue}"],
        )


class _Removing(_OnDeadLetters):
    """A command that removes dead letters from their queue."""

    done: str
    """The participle of the command's effect on a message."""

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("id", metavar="ID", nargs="*", help="ID of a message to handle")
        parser.add_argument(
            "--all", action="store_true", help="handle all messages that are in the queue now"
        )
        return parser

    def take_action(self, parsed_args: argparse.Namespace) -> int:
        if parsed_args.all == bool(parsed_args.id):
            raise errors.BadRequest("expected either IDs of dead letters or --all")
        wanted = None if parsed_args.all else dict.fromkeys(parsed_args.id)
        letters = self.letters()
        done = self.remove(letters, wanted, parsed_args)
        if done is None:
            return NOT_CONFIRMED
        self.confirm(f"{self.done} {counted(len(done), _WHAT)}")
        missing = [each for each in wanted or () if each not in done]
        if missing:
            raise errors.NotFound(
                f"no dead letter {', '.join(map(repr, missing))} in the queue {letters.queue}; "
                f"list them with 'steelyard tags dead-letters list'"
            )
        return 0

    @abc.abstractmethod
    def remove(
        self, letters: "DeadLetters", wanted: Collection[str] | None, args: argparse.Namespace
    ) -> Sequence[str] | None:
        """Remove the dead letters with the wanted IDs, or all, and return their IDs.

        Returns None if the operator does not confirm it.
        """


class TagsDeadLettersReplay(_Removing):
    """Move dead letters back to the queue of the dispatchers.

    Correct the cause first: a message that still cannot be applied becomes a dead letter again,
    with a new ID. A message is removed from the queue of dead letters after the broker has stored
    its copy. So an interruption loses none. A message that is replayed twice does no harm.
    """

    examples = (
        "steelyard --config-file tags.conf tags dead-letters replay 5f0c61d2a9be",
        "steelyard --config-file tags.conf tags dead-letters replay --all",
    )
    done = "replayed"

    def remove(
        self, letters: "DeadLetters", wanted: Collection[str] | None, args: argparse.Namespace
    ) -> Sequence[str]:
        return letters.replay(wanted)


class TagsDeadLettersDrop(_Removing):
    """Delete dead letters.

    The command asks for a confirmation, unless --yes is given. With --all, messages that arrive
    after the question are kept. The exit status is 1 if the deletion is not confirmed.
    """

    examples = (
        "steelyard --config-file tags.conf tags dead-letters drop 5f0c61d2a9be",
        "steelyard --config-file tags.conf tags dead-letters drop --all --yes",
    )
    done = "dropped"

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        parser.add_argument("--yes", action="store_true", help="do not ask for a confirmation")
        return parser

    def remove(
        self, letters: "DeadLetters", wanted: Collection[str] | None, args: argparse.Namespace
    ) -> Sequence[str] | None:
        if wanted is None:
            wanted = {letter.id for letter in letters.first()[1]}
        what = counted(len(wanted), _WHAT)
        if (
            wanted
            and not args.yes
            and not confirmed(f"drop {what} from the queue {letters.queue}?")
        ):
            return None
        return letters.drop(wanted)
