"""The commands for server groups."""

import pathlib
from typing import Any

import pytest

from steelyard.cloud import Cloud


def test_groups_are_created_listed_and_deleted(steelyard: Any, cloud: pathlib.Path) -> None:
    status, made, _ = steelyard(
        "group", "create", "--policy", "anti-affinity", "--rule", "max_server_per_host=2", "web"
    )
    assert status == 0
    assert made == {
        "name": "web",
        "policy": "anti-affinity",
        "rules": {"max_server_per_host": 2},
        "servers": [],
        "hosts": [],
    }
    _, listed, _ = steelyard("group", "list")
    assert [row["name"] for row in listed["server_groups"]] == ["near", "web"]
    _, shown, _ = steelyard("group", "show", "web")
    assert shown["uuid"] == Cloud.load(cloud).server_group("web").uuid
    status, said, _ = steelyard("group", "delete", "web", rows=False)
    assert (status, said) == (0, "server group 'web' deleted; it had 0 servers\n")
    assert list(Cloud.load(cloud).server_groups) == ["near"]


def test_group_create_rejects_a_second_policy(steelyard: Any, cloud: pathlib.Path) -> None:
    before = cloud.read_text()
    argv = ("group", "create", "both", "--policy", "affinity", "--policy", "anti-affinity")
    status, _, err = steelyard(*argv)
    assert status == 2
    assert "--policy affinity --policy anti-affinity: expected one policy" in err
    assert cloud.read_text() == before


def test_lost_comments_are_reported(steelyard: Any, cloud: pathlib.Path) -> None:
    cloud.write_text("# mine\n" + cloud.read_text())
    assert steelyard("group", "list")[2] == ""
    _, _, said = steelyard("group", "delete", "near", rows=False)
    assert said == f"steelyard: {cloud}: lost its comments\n"
    assert "#" not in cloud.read_text()


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("group", "create", "--policy", "soft", "g"), "unknown policy 'soft': expected one of"),
        (("group", "create", "--policy", "affinity", "near"), "server group 'near' already exists"),
        (
            ("group", "create", "--policy", "affinity", "--rule", "max_server_per_host=2", "g"),
            "cannot use rules with policy 'affinity'",
        ),
        (
            ("group", "create", "--policy", "anti-affinity", "--rule", "two", "g"),
            "invalid --rule 'two': expected KEY=VALUE",
        ),
        (
            (*("group", "create", "--policy", "anti-affinity", "g"), *("--rule", "a=1") * 2),
            "--rule a=1 --rule a=1: a rule is given twice; give each rule once",
        ),
        (
            ("group", "create", "--policy", "affinity", "a\u200bb"),
            "invalid server group name 'a\\u200bb'",
        ),
        (
            ("group", "create", "--policy", "affinity", "\udcff"),
            "invalid server group name '\\udcff'",
        ),
        (("group", "show", "nera"), "no server group 'nera'; did you mean 'near'?"),
        (("group", "show", "near", "-c", "Nmae"), "no column 'Nmae'; did you mean 'Name'"),
        (("group", "delete", "nera"), "no server group 'nera'"),
    ],
)
def test_mistake_in_a_group_command_changes_nothing(
    steelyard: Any, cloud: pathlib.Path, argv: Any, said: Any
) -> None:
    before = cloud.read_text()
    status, _, err = steelyard(*argv, rows=False)
    assert status == 2
    assert err.startswith("steelyard: ")
    assert said in err
    assert cloud.read_text() == before
