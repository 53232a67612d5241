import os
import pathlib
import stat
import subprocess
import sys
from typing import Any

import pytest

from steelyard.errors import Conflict, InvalidCloud
from steelyard.groups import Policy, ServerGroup
from steelyard.scheduler import Aggregate, Cloud, Host, Server
from steelyard.scheduler.saved_cloud import SavedCloud, as_text, describe

TEXT = """\
hosts:
  h1: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  h2: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
flavors:
  small: {vcpus: 1, ram_mb: 512, disk_gb: 5}
server_groups:
  web: {policy: anti-affinity, rules: {max_server_per_host: 2}}
servers:
  web-1: {host: h1, flavor: small, group: web}
  lone: {host: h2, flavor: small, uuid: 6a4a0a1e-0000-4000-8000-000000000001}
"""


@pytest.fixture
def path(tmp_path: Any) -> Any:
    found = tmp_path / "cloud.yaml"
    found.write_text(TEXT, encoding="utf-8")
    return found


def test_only_what_changed_is_different(path: Any) -> None:
    saved = SavedCloud(path)
    saved.save(saved.cloud.with_moved(saved.cloud.server("web-1"), "h2"))
    expected = TEXT.replace("web-1: {host: h1", "web-1: {host: h2").replace(
        "  web: {policy: anti-affinity, rules: {max_server_per_host: 2}}\n",
        "  web:\n    policy: anti-affinity\n    rules: {max_server_per_host: 2}\n",
    )
    assert path.read_text() == expected
    assert Cloud.load(path).server_groups["web"].hosts == {"h2"}


def test_json_stays_json(tmp_path: Any) -> None:
    path = tmp_path / "cloud.json"
    path.write_text('{"hosts": {"h": {"vcpus": 1, "ram_mb": 2, "disk_gb": 3}}}')
    saved = SavedCloud(path)
    assert not saved.unkept
    saved.save(saved.cloud.with_server_group(ServerGroup("g", Policy.AFFINITY)))
    assert path.read_text().startswith('{\n  "hosts": {\n    "h": {\n      "vcpus": 1,')
    assert Cloud.load(path).server_group("g").policy is Policy.AFFINITY


@pytest.mark.parametrize(
    ("text", "commented"),
    [
        (TEXT, False),
        (TEXT + "# end", True),
        (TEXT.replace("flavors:", "flavors:  # sizes"), True),
        ("hosts: {'a # b': {vcpus: 1, ram_mb: 1, disk_gb: 1}}", False),
        ("hosts: {a#b: {vcpus: 1, ram_mb: 1, disk_gb: 1}}", False),
        ("# \u00e9 \U0001f600\nhosts: {}", True),
        ("hosts: {\u00e9\U0001f600: {vcpus: 1, ram_mb: 1, disk_gb: 1}} # here", True),
    ],
)
def test_comments_are_noticed(path: Any, text: str, commented: bool) -> None:
    path.write_text(text, encoding="utf-8")
    assert SavedCloud(path).unkept == (["comments"] if commented else [])


def test_anchors_and_comments_in_the_head_of_a_block_are_noticed(path: Any) -> None:
    path.write_text(
        "hosts:\n  h1: &size {vcpus: 1, ram_mb: 1, disk_gb: 1}\n  h2: *size\n"
        "flavors:\n  f:\n    vcpus: 1\n    ram_mb: 1\n    disk_gb: >-  # GiB\n      1\n"
    )
    saved = SavedCloud(path)
    assert saved.unkept == ["comments", "anchors"]
    saved.save(saved.cloud)
    assert SavedCloud(path).unkept == []
    assert Cloud.load(path).hosts["h2"].vcpus == 1


def test_permissions_and_links_stay(path: Any, tmp_path: Any) -> None:
    path.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    saved = SavedCloud(link)
    saved.save(saved.cloud.without_server_group("web"))
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert Cloud.load(path).server("web-1").group is None


def test_a_file_that_changed_meanwhile_is_left_alone(path: Any, tmp_path: Any) -> None:
    saved = SavedCloud(path)
    path.write_text(TEXT + "# somebody was here")
    with pytest.raises(Conflict, match="has changed since it was read; try again"):
        saved.save(saved.cloud.without_server_group("web"))
    assert path.read_text() == TEXT + "# somebody was here"
    assert os.listdir(tmp_path) == ["cloud.yaml"]


def test_a_cloud_can_be_saved_again(path: Any) -> None:
    saved = SavedCloud(path)
    saved.save(saved.cloud.without_server_group("web"))
    saved.save(saved.cloud)
    assert "web" in Cloud.load(path).server_groups


def test_of_many_at_once_those_that_succeed_are_in_the_file(path: Any) -> None:
    script = (
        "import sys; from steelyard.groups import Policy, ServerGroup;"
        "from steelyard.scheduler.saved_cloud import SavedCloud;"
        "saved = SavedCloud(sys.argv[1]); print('read', flush=True); sys.stdin.readline();"
        "saved.save(saved.cloud.with_server_group(ServerGroup(sys.argv[2], Policy.AFFINITY)))"
    )
    processes = {
        name: subprocess.Popen(
            [sys.executable, "-c", script, str(path), name],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        for name in ("a", "b", "c", "d")
    }
    for process in processes.values():
        assert process.stdout
        assert process.stdout.readline() == "read\n"
    for process in processes.values():
        assert process.stdin
        process.stdin.write("go\n")
        process.stdin.flush()
    said = {name: process.communicate(timeout=30)[1] for name, process in processes.items()}
    succeeded = {name for name, process in processes.items() if process.returncode == 0}
    assert succeeded
    assert set(Cloud.load(path).server_groups) == {"web", *succeeded}
    assert all("Conflict" in said[name] for name in processes.keys() - succeeded)


def test_a_file_that_may_not_be_written_is_left_alone(path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(os, "access", lambda found, mode: False)  # root may write everything
    saved = SavedCloud(path)
    with pytest.raises(InvalidCloud, match="cannot be saved: Permission denied"):
        saved.save(saved.cloud.without_server_group("web"))
    assert path.read_text() == TEXT


def test_nothing_is_left_behind_when_saving_fails(
    path: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    def fail(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    saved = SavedCloud(path)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InvalidCloud, match="cannot be saved: No space left on device"):
        saved.save(saved.cloud.without_server_group("web"))
    assert path.read_text() == TEXT
    assert os.listdir(tmp_path) == ["cloud.yaml"]


def test_what_could_not_be_read_again_is_not_saved(path: Any) -> None:
    saved = SavedCloud(path)
    with pytest.raises(InvalidCloud, match="is no name"):
        saved.save(Cloud({"\x07": Host("\x07", 1, 1, 1)}))
    assert path.read_text() == TEXT


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), (b"\xff", "is not UTF-8"), (b"hosts: [", "is not YAML")],
)
def test_a_file_that_cannot_be_read(tmp_path: Any, content: Any, said: Any) -> None:
    path = pathlib.Path(tmp_path, "cloud.yaml")
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidCloud, match=said):
        SavedCloud(path)


def test_two_servers_of_one_name_have_no_description(path: Any) -> None:
    cloud = Cloud.load(path)
    flavor = cloud.flavors["small"]
    twice = cloud.with_servers([Server(uuid, "twin", flavor, "h1") for uuid in ("u1", "u2")])
    with pytest.raises(Conflict, match="two servers are called 'twin'"):
        describe(twice)


AMBIGUOUS = [
    *("yes", "No", "on", "null", "~", "true", "0x10", "010", "0o10", "1e3", "1_000", "1:30"),
    *("y", "N", ".inf", ".nan", "=", "<<", "2026-01-01", "12", "-1.5", "", "+3.e2"),
]


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_text_that_other_readers_take_for_no_text_is_quoted(text: str) -> None:
    yaml = pytest.importorskip("yaml")
    name = text or "x"
    cloud = Cloud(
        {name: Host(name, 1, 1024, 10)}, {"a": Aggregate("a", {"key": text}, (name,))}, {}
    )
    written = as_text(cloud, "cloud.yaml")
    read = yaml.safe_load(written)
    assert list(read["hosts"]) == [name]
    assert read["aggregates"]["a"]["metadata"] == {"key": text}
    assert read["hosts"][name]["vcpus"] == 1
    assert f"'{text}'" in written


@pytest.mark.parametrize("text", ["nvme", "rack-1", "0x", "1.2.3", "yes please", "<or> a <or> ~"])
def test_plain_text_is_not_quoted(text: str) -> None:
    cloud = Cloud({}, {"a": Aggregate("a", {"key": text}, ())}, {})
    assert f"key: {text}" in as_text(cloud, "cloud.yaml")
