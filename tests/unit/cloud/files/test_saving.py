import math
import os
import pathlib
import stat
import subprocess
import sys
from typing import Any

import pytest
import yaml

from steelyard.cloud import Aggregate, Cloud, Host, Server
from steelyard.cloud.files import plain_yaml
from steelyard.cloud.files.saving import SavedCloud, as_text, create, describe
from steelyard.errors import Conflict, InvalidCloud
from steelyard.groups import Policy, ServerGroup

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


def test_save_changes_only_the_changed_entries(path: Any) -> None:
    saved = SavedCloud(path)
    saved.save(saved.cloud.with_moved(saved.cloud.server("web-1"), "h2"))
    expected = TEXT.replace("web-1: {host: h1", "web-1: {host: h2").replace(
        "  web: {policy: anti-affinity, rules: {max_server_per_host: 2}}\n",
        "  web:\n    policy: anti-affinity\n    rules: {max_server_per_host: 2}\n",
    )
    assert path.read_text() == expected
    assert Cloud.load(path).server_groups["web"].hosts == {"h2"}


def test_save_keeps_json_as_json(tmp_path: Any) -> None:
    path = tmp_path / "cloud.json"
    path.write_text('{"hosts": {"h": {"vcpus": 1, "ram_mb": 2, "disk_gb": 3}}}')
    saved = SavedCloud(path)
    assert not saved.unkept
    saved.save(saved.cloud.with_server_group(ServerGroup("g", Policy.AFFINITY)))
    assert path.read_text() == (
        '{\n  "hosts": {\n    "h": {"vcpus": 1, "ram_mb": 2, "disk_gb": 3}\n  },\n'
        '  "server_groups": {\n    "g": {"policy": "affinity"}\n  }\n}\n'
    )
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
def test_unkept_lists_comments(path: Any, text: str, commented: bool) -> None:
    path.write_text(text, encoding="utf-8")
    assert SavedCloud(path).unkept == (["comments"] if commented else [])


def test_unkept_lists_anchors_and_comments_in_block_headers(path: Any) -> None:
    path.write_text(
        "hosts:\n  h1: &size {vcpus: 1, ram_mb: 1, disk_gb: 1}\n  h2: *size\n"
        "flavors:\n  f:\n    vcpus: 1\n    ram_mb: 1\n    disk_gb: >-  # GiB\n      1\n"
    )
    saved = SavedCloud(path)
    assert saved.unkept == ["comments", "anchors"]
    saved.save(saved.cloud)
    assert SavedCloud(path).unkept == []
    assert Cloud.load(path).hosts["h2"].vcpus == 1


def test_save_keeps_permissions_and_symlinks(path: Any, tmp_path: Any) -> None:
    path.chmod(0o640)
    link = tmp_path / "link.yaml"
    link.symlink_to(path)
    saved = SavedCloud(link)
    saved.save(saved.cloud.without_server_group("web"))
    assert link.is_symlink()
    assert stat.S_IMODE(path.stat().st_mode) == 0o640
    assert Cloud.load(path).server("web-1").group is None


def test_save_does_not_overwrite_concurrent_change(path: Any, tmp_path: Any) -> None:
    saved = SavedCloud(path)
    path.write_text(TEXT + "# changed by another editor")
    with pytest.raises(Conflict, match="it changed after it was read; try again"):
        saved.save(saved.cloud.without_server_group("web"))
    assert path.read_text() == TEXT + "# changed by another editor"
    assert os.listdir(tmp_path) == ["cloud.yaml"]


def test_save_succeeds_twice(path: Any) -> None:
    saved = SavedCloud(path)
    saved.save(saved.cloud.without_server_group("web"))
    saved.save(saved.cloud)
    assert "web" in Cloud.load(path).server_groups


def test_concurrent_saves_lose_no_successful_change(path: Any) -> None:
    script = (
        "import sys; from steelyard.groups import Policy, ServerGroup;"
        "from steelyard.cloud.files.saving import SavedCloud;"
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
    errors = {name: process.communicate(timeout=30)[1] for name, process in processes.items()}
    succeeded = {name for name, process in processes.items() if process.returncode == 0}
    assert succeeded
    assert set(Cloud.load(path).server_groups) == {"web", *succeeded}
    assert all("Conflict" in errors[name] for name in processes.keys() - succeeded)


def test_save_keeps_unwritable_file(path: Any, monkeypatch: Any) -> None:
    monkeypatch.setattr(os, "access", lambda found, mode: False)  # root has access to every file
    saved = SavedCloud(path)
    with pytest.raises(InvalidCloud, match="cannot save the file: Permission denied"):
        saved.save(saved.cloud.without_server_group("web"))
    assert path.read_text() == TEXT


def test_failed_save_leaves_no_temporary_file(path: Any, tmp_path: Any, monkeypatch: Any) -> None:
    def fail(*args: Any) -> None:
        raise OSError(28, "No space left on device")

    saved = SavedCloud(path)
    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(InvalidCloud, match="cannot save the file: No space left on device"):
        saved.save(saved.cloud.without_server_group("web"))
    assert path.read_text() == TEXT
    assert os.listdir(tmp_path) == ["cloud.yaml"]


def test_save_rejects_cloud_that_cannot_be_loaded(path: Any) -> None:
    saved = SavedCloud(path)
    with pytest.raises(InvalidCloud, match="invalid name"):
        saved.save(Cloud({"\x07": Host("\x07", 1, 1, 1)}))
    assert path.read_text() == TEXT


@pytest.mark.parametrize("name", ["cloud.yaml", "cloud.json"])
@pytest.mark.parametrize(
    ("host", "said"),
    [
        (Host("h", -1, 1, 1), ": hosts.h.vcpus: expected a whole number from 0 to 9.*, got -1"),
        (Host("h", 1, 1, 1, allocation_ratios={"vcpus": math.inf}), "ratios.vcpus: expected a n"),
        (Host("h", 1, 1, 1, resources={"vgpu": 1}), "invalid resource class 'vgpu'"),
        (Host("h", 1, 1, 1, frozenset({"\ud800"})), "cannot save the file: invalid text"),
    ],
)
def test_as_text_and_save_reject_invalid_values(
    tmp_path: Any, name: str, host: Host, said: str
) -> None:
    path = tmp_path / name
    with pytest.raises(InvalidCloud, match=said):
        create(str(path), Cloud({"h": host}))
    assert not path.exists()


def test_as_text_rejects_yaml_that_cannot_be_read_again(monkeypatch: Any) -> None:
    monkeypatch.setattr(plain_yaml, "read", lambda *args, **options: {})
    with pytest.raises(InvalidCloud, match=r"could not be read again; name a file that ends in"):
        as_text(Cloud({}, {"a": Aggregate("a", {"key": "<odd>"}, ())}), "cloud.yaml")


@pytest.mark.parametrize(
    ("content", "said"),
    [(None, "No such file"), (b"\xff", "invalid UTF-8"), (b"hosts: [", "invalid YAML")],
)
def test_saved_cloud_rejects_unreadable_file(tmp_path: Any, content: Any, said: Any) -> None:
    path = pathlib.Path(tmp_path, "cloud.yaml")
    if content is not None:
        path.write_bytes(content)
    with pytest.raises(InvalidCloud, match=said):
        SavedCloud(path)


def test_describe_rejects_duplicate_server_name(path: Any) -> None:
    cloud = Cloud.load(path)
    flavor = cloud.flavors["small"]
    twice = cloud.with_servers([Server(uuid, "twin", flavor, "h1") for uuid in ("u1", "u2")])
    with pytest.raises(Conflict, match="duplicate server name 'twin'"):
        describe(twice)


AMBIGUOUS = [
    *("yes", "No", "on", "null", "~", "true", "0x10", "010", "0o10", "1e3", "1_000", "1:30"),
    *("y", "N", ".inf", ".nan", "=", "<<", "2026-01-01", "12", "-1.5", "", "+3.e2"),
]


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_as_text_quotes_ambiguous_text(text: str) -> None:
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
def test_as_text_does_not_quote_plain_text(text: str) -> None:
    cloud = Cloud({}, {"a": Aggregate("a", {"key": text}, ())}, {})
    assert f"key: {text}" in as_text(cloud, "cloud.yaml")
