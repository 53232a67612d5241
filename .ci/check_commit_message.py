#!/usr/bin/env python3
"""Check the form of commit messages: ``area: imperative summary``, an empty line, a body.

The argument is the file with the message, as git calls a commit-msg hook, or a range of
revisions such as ``main..HEAD``. The exit status is 1 if a message is malformed.
"""

import pathlib
import re
import subprocess
import sys

LONGEST = 72
EXAMPLE = "'filters: keep verdicts across requests'"
_SUBJECT = re.compile(r"(?P<area>[a-z][a-z0-9_/.,+ -]*): (?P<summary>\S.*)")
# Endings of verbs that are not imperative, except in verbs that end so themselves.
_OTHER_FORM = re.compile(
    r"(?!bring|ping|ring|sing|string|swing|wring)[a-z]+ing|[a-z]*[^s]s|[a-z]+ed"
)
_IMPERATIVE = {
    *("alias", "bias", "embed", "exceed", "feed", "focus", "need", "proceed", "seed", "shed"),
    *("speed", "succeed"),
}
# Beginnings of messages that git writes itself: of merges, of reverts, and of commits that a
# rebase removes.
_BY_GIT = ("Merge ", 'Revert "', "fixup! ", "squash! ", "amend! ")
_SCISSORS = "# ------------------------ >8 ------------------------"


def faults(message: str) -> list[str]:
    """Return the faults of the message, one line each."""
    subject, *rest = message.splitlines() or [""]
    found = []
    match = _SUBJECT.fullmatch(subject)
    if not match:
        found.append(f"invalid subject '{subject}': expected an area and a summary, as {EXAMPLE}")
    else:
        first = match["summary"].split()[0]
        if "wip" in re.findall("[a-z]+", subject.lower()):
            found.append(f"invalid subject '{subject}': commit finished steps, not WIP")
        elif not re.fullmatch("[a-z][a-z-]*", first):
            found.append(
                f"invalid subject '{subject}': expected a verb in lower case, not '{first}'"
            )
        elif _OTHER_FORM.fullmatch(first) and first not in _IMPERATIVE:
            found.append(f"invalid subject '{subject}': expected an imperative, not '{first}'")
        if subject.endswith("."):
            found.append(f"invalid subject '{subject}': remove the full stop")
    if len(subject) > LONGEST:
        found.append(f"subject has {len(subject)} characters: expected at most {LONGEST}")
    if rest and rest[0].strip():
        found.append("second line has text: leave it empty")
    if not any(line.strip() for line in rest[1:]):
        found.append("no body: say why after an empty line")
    return found


def typed(text: str) -> str:
    """Return the message without the lines that git adds in an editor."""
    kept = text.partition(_SCISSORS)[0].splitlines()
    return "\n".join(line for line in kept if not line.startswith("#")).strip()


def messages(argument: str) -> dict[str, str]:
    """Return the messages by the name of their file, or by revision for a range.

    Messages that git writes itself are left out of a file, and merges out of a range.
    """
    path = pathlib.Path(argument)
    if path.is_file():
        message = typed(path.read_text())
        return {} if message.startswith(_BY_GIT) else {argument: message}
    command = ["git", "log", "--no-merges", "--format=%h%n%B%x00"]
    command += ["--end-of-options", argument, "--"]
    log = subprocess.run(command, check=True, stdout=subprocess.PIPE, text=True).stdout
    commits = (each.strip().partition("\n") for each in log.split("\0") if each.strip())
    return {name: message.strip() for name, _, message in commits}


def main(arguments: list[str]) -> int:
    """Print the faults of the messages, and return the exit status."""
    if len(arguments) != 1:
        print(f"usage: {sys.argv[0]} FILE|RANGE", file=sys.stderr)
        return 2
    try:
        checked = messages(arguments[0])
    except subprocess.CalledProcessError:
        print(f"no file and no range of revisions '{arguments[0]}'", file=sys.stderr)
        return 2
    found = [f"{name}: {fault}" for name, message in checked.items() for fault in faults(message)]
    for line in found:
        print(line, file=sys.stderr)
    return 1 if found else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
