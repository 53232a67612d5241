"""The hooks of pre-commit: the commands of ``tox -e lint``, and the form of commit messages."""

import configparser
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from support.repository import ROOT

CHECK = ROOT / ".ci" / "check_commit_message.py"
HOOKS: list[dict[str, Any]] = [
    hook
    for repository in yaml.safe_load((ROOT / ".pre-commit-config.yaml").read_text())["repos"]
    for hook in repository["hooks"]
]


def check(*arguments: str, cwd: Path = ROOT) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(CHECK), *arguments]
    return subprocess.run(command, cwd=cwd, capture_output=True, text=True, check=False)


def test_hooks_run_the_commands_of_the_lint_environment() -> None:
    tox = configparser.ConfigParser(interpolation=None)
    tox.read_string((ROOT / "tox.ini").read_text())
    commands = tox["testenv:lint"]["commands"].split("\n")
    entries = [hook["entry"] for hook in HOOKS if "stages" not in hook]
    assert entries == [command for command in commands if command]


def test_hook_of_commit_messages_runs_the_check() -> None:
    (hook,) = (hook for hook in HOOKS if hook.get("stages") == ["commit-msg"])
    assert ROOT / hook["entry"] == CHECK


@pytest.mark.parametrize(
    "message",
    [
        "filters: keep verdicts across requests\n\nThey do not depend on the host.\n",
        "sql, tags: embed a service\n\nWhy.\n",
        "cli/tags: focus the output\n\nWhy.\n# A line that git adds.\n",
        "Merge branch 'x'\n",
        'Revert "filters: keep verdicts across requests"\n',
        "tests: wipe the database\n\nWhy.",
        "cli: alias the command\n\nWhy.",
        "fixup! filters: keep verdicts across requests\n",
        "docs: process pages in order\n\nWhy.\n\n"
        "# ------------------------ >8 ------------------------\ndiff --git a/x b/x\n",
    ],
)
def test_check_accepts_message(message: str, tmp_path: Path) -> None:
    path = tmp_path / "COMMIT_EDITMSG"
    path.write_text(message)
    done = check(str(path))
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.parametrize(
    ("message", "fault"),
    [
        ("", "invalid subject ''"),
        ("Keep verdicts\n\nWhy.", "invalid subject 'Keep verdicts': expected an area"),
        ("Filters: keep verdicts\n\nWhy.", "expected an area and a summary"),
        ("filters:keep verdicts\n\nWhy.", "expected an area and a summary"),
        ("filters: kept verdicts.\n\nWhy.", "remove the full stop"),
        ("filters: Keep verdicts\n\nWhy.", "expected a verb in lower case, not 'Keep'"),
        ("filters: 'x' passes\n\nWhy.", "expected a verb in lower case, not ''x''"),
        ("filters: adds verdicts\n\nWhy.", "expected an imperative, not 'adds'"),
        ("filters: added verdicts\n\nWhy.", "expected an imperative, not 'added'"),
        ("filters: adding verdicts\n\nWhy.", "expected an imperative, not 'adding'"),
        ("filters: WIP\n\nWhy.", "commit finished steps, not WIP"),
        (f"filters: keep {'x' * 60}\n\nWhy.", "subject has 74 characters: expected at most 72"),
        ("filters: keep verdicts\nWhy.\n\nMore.", "second line has text"),
        ("filters: keep verdicts", "no body"),
        ("filters: keep verdicts\n\n# Only what git adds.", "no body"),
    ],
)
def test_check_rejects_message(message: str, fault: str, tmp_path: Path) -> None:
    path = tmp_path / "COMMIT_EDITMSG"
    path.write_text(message)
    done = check(str(path))
    assert done.returncode == 1
    assert fault in done.stderr
    assert "Traceback" not in done.stderr


def test_check_of_a_range_names_each_malformed_commit(tmp_path: Path) -> None:
    def git(*arguments: str) -> str:
        identity = ["-c", "user.name=A", "-c", "user.email=a@example.org"]
        command = ["git", *identity, *arguments]
        return subprocess.run(
            command, cwd=tmp_path, check=True, stdout=subprocess.PIPE, text=True
        ).stdout.strip()

    git("init", "-q")
    names = []
    for message in ["begin", "docs: add a page\n\nWhy.", "Adds more"]:
        git("commit", "-q", "--allow-empty", "-m", message)
        names.append(git("rev-parse", "--short", "HEAD"))
    done = check(f"{names[0]}..HEAD", cwd=tmp_path)
    assert done.returncode == 1
    assert {line.partition(":")[0] for line in done.stderr.splitlines()} == {names[2]}
    assert check(f"{names[0]}..{names[1]}", cwd=tmp_path).returncode == 0


def test_check_of_an_unknown_range_fails(tmp_path: Path) -> None:
    done = check("nowhere", cwd=tmp_path)
    assert done.returncode == 2
    assert "no file and no range of revisions 'nowhere'" in done.stderr
