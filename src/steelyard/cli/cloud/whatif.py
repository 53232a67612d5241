"""The command ``whatif``."""

import argparse
import os
from collections.abc import Iterator, Sequence
from typing import Any

from steelyard import errors, page
from steelyard.analysis.whatif.baseline import Baseline
from steelyard.analysis.whatif.consequences import Consequences, as_dict, consequences
from steelyard.analysis.whatif.flavors import FlavorChange
from steelyard.analysis.whatif.sections import sections
from steelyard.cli.commands import Narrating, Shown
from steelyard.cli.inputs import changes, clouds, parsing
from steelyard.cli.outputs import filter_logs, formats, pages, progress
from steelyard.cloud import garbage
from steelyard.cloud.files import saving
from steelyard.page.whatif import WhatIfView
from steelyard.scheduler import FilterScheduler
from steelyard.text import escapes, whole_files
from steelyard.text.wording import counted

_WORSE = 1
# The most entries of a section of the text.
_MOST = 20


class WhatIf(Narrating):
    """Show what a change of the cloud would change.

    The command compares the cloud before and after the changes, and writes no cloud file but the
    one that --write names. It shows the differences: in the hosts and the room for each flavor, the
    servers that must move, that no host fits or that their own host would reject, the violated
    server groups, and the findings of 'steelyard check'.

    The servers of hosts that go out of service are placed on other hosts, the largest first. The
    cloud after the changes is counted with them in their new places.

    The result is worse if the hosts or the room of a flavor fall to 0, if a server is stranded or
    misplaced, or if there is a new violation or a new finding of severity error.

    The exit status is 0 if nothing is worse, 1 if something is worse, and 2 if the input is
    invalid.
    """

    fields = (
        "Summary",
        "Flavors",
        "Displaced",
        "Stranded",
        "Misplaced",
        "Violations",
        "Findings",
    )
    examples = (
        "steelyard whatif --example --force hdd-rack-1",
        "steelyard whatif --cloud cloud.yaml --out rack=r7 -f json",
    )

    def get_parser(self, prog_name: str) -> argparse.ArgumentParser:
        parser = super().get_parser(prog_name)
        clouds.add_source(parser)
        changes.add_options(parser)
        parser.add_argument(
            "--strict",
            action="store_true",
            help="count any decrease of the hosts or the room of a flavor as worse",
        )
        parser.add_argument(
            "--write",
            metavar="FILE",
            type=parsing.file_name,
            help="new file for the changed cloud, with the servers where they are now, JSON if the "
            "name ends in .json, else YAML",
        )
        parser.add_argument(
            "--html",
            metavar="FILE",
            type=parsing.file_name,
            help="page to write instead of text; - writes it to standard output; excludes -f",
        )
        return parser

    @garbage.paused()
    def result(self, parsed_args: argparse.Namespace) -> Shown:
        if parsed_args.write is not None and parsed_args.against is not None:
            raise errors.BadRequest(
                "--write and --against cannot be used together: the file that --against names has "
                "the changed cloud"
            )
        _check_files(parsed_args)
        before = clouds.described(parsed_args)
        after, missing = changes.changed(before, parsed_args)
        baseline = Baseline(before, self.configuration())
        with filter_logs.suppressed():
            found = consequences(baseline, after, progress.watched, missing)
        if parsed_args.html is not None:
            pages.write(self._page(parsed_args, found, baseline), parsed_args.html, self)
        if parsed_args.write is not None:
            saving.create(parsed_args.write, after)
        worse = found.worse(strict=parsed_args.strict)
        values: tuple[Any, ...] = (list(_lines(found)),)
        if parsed_args.formatter != formats.TEXT:
            values = tuple(as_dict(found, strict=parsed_args.strict).values())
        return Shown(
            values=values,
            told=[f"worse: {', '.join(worse)}" if worse else "nothing is worse"],
            status=_WORSE if worse else 0,
        )

    def _page(
        self, parsed_args: argparse.Namespace, found: Consequences, baseline: Baseline
    ) -> str:
        view = WhatIfView(
            found,
            self._command(parsed_args),
            strict=parsed_args.strict,
            domains=FilterScheduler(baseline.cloud, baseline.conf).failure_domains,
            source=clouds.called(parsed_args),
            modified=pages.modified(parsed_args),
        )
        return page.render_whatif(view)

    def _command(self, parsed_args: argparse.Namespace) -> str:
        """Return the command line without the options of the output."""
        files = (("--changes", parsed_args.changes_file), ("--against", parsed_args.against))
        options: list[tuple[str, str | None]] = [each for each in files if each[1] is not None]
        if parsed_args.strict:
            options.append(("--strict", None))
        invocation = pages.invocation(self, parsed_args, *options)
        return invocation.command_line("whatif", parsed_args.changes or ())

    def write(self, result: Shown, names: tuple[str, ...], parsed_args: argparse.Namespace) -> int:
        if parsed_args.html is None:
            return super().write(result, names, parsed_args)
        for line in result.told:
            self.tell(line)
        return result.status


def _check_files(parsed_args: argparse.Namespace) -> None:
    """Raise an error if a file cannot be written, before anything is computed.

    Raises Conflict if the changed cloud would replace a file, and BadRequest for other mistakes.
    """
    html, write = parsed_args.html, parsed_args.write
    if html is not None:
        if parsed_args.formatter != formats.TEXT:
            raise errors.BadRequest("--html writes a page instead of text: leave out -f")
        others = {
            "changes": parsed_args.changes_file,
            "against": parsed_args.against,
            "write": write,
        }
        pages.require_writable(html, parsed_args, **others)
    if write is not None:
        if os.path.exists(write):
            raise errors.Conflict(f"{write!r} already exists")
        try:
            whole_files.require_writable(write)
        except OSError as error:
            raise errors.BadRequest(f"cannot write {write!r}: {error.strerror}") from error


def _lines(found: Consequences) -> Iterator[str]:
    """Yield the lines of the text, with an empty line between sections."""
    listed: list[tuple[str, Sequence[Sequence[str]]]] = [
        ("flavors that differ", list(map(_flavor, found.flavors))),
        *(
            (section.title, [[f"{each.name}: {each.text}"] for each in section.entries])
            for section in sections(found)
        ),
    ]
    shown = [(title, entries) for title, entries in listed if entries]
    for number, (title, entries) in enumerate(shown):
        if number:
            yield ""
        yield f"{title}: {len(entries)}"
        for entry in entries[:_MOST]:
            yield from (f"    {escapes.escaped(line)}" for line in entry)
        if len(entries) > _MOST:
            yield f"    and {len(entries) - _MOST} more, which -f json lists"
    if not shown:
        yield "nothing differs"


def _flavor(change: FlavorChange) -> list[str]:
    before, after = change.hosts_before, change.hosts_after
    more_before, more_after = change.capacity_before, change.capacity_after
    if before is None or more_before is None:
        return [f"{change.flavor}: a new flavor, {_room(after or 0, more_after or 0)}"]
    if after is None or more_after is None:
        return [f"{change.flavor}: removed, was {_room(before, more_before)}"]
    causes = [f"    {counted(each.hosts, 'host')}: {each.cause}" for each in change.causes]
    return [
        f"{change.flavor}: hosts {before} -> {after}, more servers {more_before} -> {more_after}",
        *causes,
    ]


def _room(hosts: int, more: int) -> str:
    return f"on {counted(hosts, 'host')}, {counted(more, 'more server')}"
