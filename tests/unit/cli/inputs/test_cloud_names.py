"""The names in a cloud file, also in one that commands reject."""

import os
import pathlib

import pytest

from steelyard.cli.inputs import cloud_names


@pytest.fixture(autouse=True)
def folder(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> pathlib.Path:
    """Return the working directory, with cloud files."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "cloud.yaml").write_text("flavors: {a: {}, b: {}}\nserver_groups: {g: {}}\n")
    (tmp_path / "other.json").write_text('{"flavors": {"other": {}}}')
    return tmp_path


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        ([], ["a", "b"]),
        (["--cloud", "other.json"], ["other"]),
        (["--cloud=other.json"], ["other"]),
        (["--against", "other.json"], ["other"]),
        (["--cloud", "cloud.yaml", "--against", "other.json"], ["a", "b"]),
        (["--against", "other.json", "--cloud=cloud.yaml"], ["a", "b"]),
        (["--cloud"], []),
        (["--cloud", "-"], []),
        (["--cloud", "."], []),
        (["--cloud", "missing.yaml"], []),
    ],
)
def test_names_come_from_the_cloud_file_of_the_arguments(
    arguments: list[str], expected: list[str]
) -> None:
    assert cloud_names.names("flavors", arguments) == expected


def test_names_come_from_the_usual_json_file(folder: pathlib.Path) -> None:
    (folder / "cloud.yaml").unlink()
    assert cloud_names.names("flavors", []) == []
    (folder / "other.json").rename("cloud.json")
    assert cloud_names.names("flavors", []) == ["other"]


def test_names_come_from_the_example_cloud() -> None:
    assert "gpu.large" in cloud_names.names("flavors", ["--example"])
    assert cloud_names.names("servers", ["--example"]) == ["web-1"]


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"flavors: [\n",
        b"flavors: 7\n",
        b"- flavors\n",
        b"flavors: {[a]: {}}\n",
        b"servers: {}\n",
        b"\xff\xfe",
        b"flavors: \x00",
        b"[" * 5000,
    ],
)
def test_names_of_an_invalid_file_are_empty(folder: pathlib.Path, content: bytes) -> None:
    (folder / "cloud.yaml").write_bytes(content)
    assert cloud_names.names("flavors", []) == []


def test_names_of_an_unreadable_file_are_empty(folder: pathlib.Path) -> None:
    os.mkfifo(folder / "pipe.yaml")
    assert cloud_names.names("flavors", ["--cloud", "pipe.yaml"]) == []


def test_names_survive_mistakes_elsewhere_in_the_file(folder: pathlib.Path) -> None:
    (folder / "cloud.yaml").write_text("hosts: 7\nflavors: {a: {vcpus: many}}\n")
    assert cloud_names.names("flavors", []) == ["a"]


@pytest.mark.parametrize(
    ("content", "keys"),
    [
        (
            "aggregates: {a: {metadata: {y: 1, x: 2}}, b: {metadata: {x: 3, 7: 8}}}\n",
            ["7", "x", "y"],
        ),
        ("aggregates: {a: 7, b: {metadata: [x]}, c: {hosts: []}}\n", []),
        ("aggregates: [a]\n", []),
        ("aggregates: {[\n", []),
    ],
)
def test_breakdowns_are_words_and_metadata_keys(
    folder: pathlib.Path, content: str, keys: list[str]
) -> None:
    (folder / "cloud.yaml").write_text(content)
    section = cloud_names.BREAKDOWN.section
    assert cloud_names.names(section, []) == ["host", "aggregate", "reason", *keys]
