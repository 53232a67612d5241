"""The command ``whatif``."""

import json
import pathlib
import shlex
from typing import Any

import pytest
import yaml

from steelyard.cloud import Cloud
from support.cli.in_process import Run
from support.page.parsed_pages import Page

CLOUD = """\
hosts:
  h1: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  h2: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  h3: {vcpus: 4, ram_mb: 8192, disk_gb: 100, out_of_service: "disabled"}
aggregates:
  fast: {hosts: [h1], metadata: {ssd: nvme, rack: r1}}
  slow: {hosts: [h2, h3], metadata: {ssd: sata, rack: r2}}
flavors:
  small: {vcpus: 1, ram_mb: 1024, disk_gb: 10}
  fast: {vcpus: 1, ram_mb: 3072, disk_gb: 10, extra_specs: {ssd: nvme}}
server_groups:
  apart: {policy: anti-affinity}
servers:
  one: {host: h1, flavor: small, group: apart}
  two: {host: h2, flavor: small, group: apart}
  quick: {host: h1, flavor: fast}
"""


@pytest.fixture
def cloud(tmp_path: pathlib.Path) -> pathlib.Path:
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD)
    return path


@pytest.fixture
def whatif(run: Run, cloud: pathlib.Path) -> Any:
    """Return a function that runs the command with JSON as output."""

    def on_cloud(*argv: object) -> tuple[int, dict[str, Any]]:
        status, out, err = run("whatif", "--cloud", cloud, *argv, "-f", "json")
        assert err.startswith("steelyard: worse: ") or err == "steelyard: nothing is worse\n"
        assert err.startswith("steelyard: worse: ") == bool(status)
        return status, json.loads(out)

    return on_cloud


def test_host_out_of_service_displaces_and_strands_servers(whatif: Any) -> None:
    status, found = whatif("--out", "rack=r1")
    assert status == 1
    assert found["summary"] == {"hosts": 3, "flavors": 2, "worse": True}
    assert found["displaced"] == []
    assert {each["server"]: each["from"] for each in found["stranded"]} == {
        "one": "h1",
        "quick": "h1",
    }
    causes = {each["server"]: each["cause"] for each in found["stranded"]}
    assert causes["one"].startswith("ServerGroupAntiAffinityFilter: ")
    assert causes["quick"].startswith("AggregateInstanceTypeFilter: ")


def test_displaced_servers_use_room_in_their_new_places(whatif: Any) -> None:
    status, found = whatif("--in", "host:h3", "--out", "host:h2")
    assert (status, found["stranded"]) == (0, [])
    (moved,) = found["displaced"]
    assert len(moved.pop("uuid")) == 36
    assert moved == {"server": "two", "flavor": "small", "from": "h2", "to": "h3"}
    (small,) = found["flavors"]
    assert small == {
        "flavor": "small",
        "hosts_before": 1,
        "hosts_after": 1,
        "capacity_before": 3,
        "capacity_after": 7,
        "causes": [{"cause": "the host is out of service", "hosts": 1}],
    }


def test_changed_key_misplaces_servers(whatif: Any) -> None:
    status, found = whatif("--set", "aggregate:fast:ssd=sata")
    assert status == 1
    (misplaced,) = found["misplaced"]
    assert misplaced["server"] == "quick"
    assert (misplaced["flavor"], misplaced["host"]) == ("fast", "h1")
    assert "'ssd'" in misplaced["reason"]
    assert {each["check"] for each in found["findings"]["new"]} == {
        "fits-no-host",
        "misplaced-server",
        "not-offered",
    }
    assert [each["check"] for each in found["findings"]["resolved"]] == ["no-room"]


def test_violation_is_listed_apart_from_other_findings(run: Run, cloud: pathlib.Path) -> None:
    soft = CLOUD.replace("two: {host: h2", "two: {host: h1").replace("anti-", "soft-anti-")
    cloud.write_text(soft.replace("host: h1, flavor: fast", "host: h2, flavor: small"))
    status, out, _ = run("whatif", "--cloud", cloud, "--out", "host:h2", "-f", "json")
    found = json.loads(out)
    # Both servers are on one host, and the other host that would take one of them goes out.
    (resolved,) = found["violations"]["resolved"]
    assert (resolved["check"], resolved["subject"]["name"]) == ("group-violation", "apart")
    assert found["violations"]["new"] == []
    assert status == 0
    assert "group-violation" not in {each["check"] for each in found["findings"]["resolved"]}


def test_new_violation_of_a_soft_policy_is_worse(run: Run, cloud: pathlib.Path) -> None:
    together = CLOUD.replace("two: {host: h2", "two: {host: h1").replace("anti-", "soft-anti-")
    full = together.replace("h2: {vcpus: 4, ram_mb: 4096", "h2: {vcpus: 4, ram_mb: 512")
    cloud.write_text(full)
    status, out, _ = run("whatif", "--cloud", cloud, "--in", "host:h3", "-f", "json")
    found = json.loads(out)
    (new,) = found["violations"]["new"]
    assert (status, new["check"], new["severity"]) == (1, "group-violation", "warning")


def test_violation_with_more_servers_is_new(
    run: Run, cloud: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    servers = "".join(
        f"  s{number}: {{host: h{1 + number // 3}, flavor: small, group: apart}}\n"
        for number in range(5)
    )
    head = CLOUD.partition("servers:")[0]
    text = head.replace("{policy: anti-affinity}", "{policy: anti-affinity, rules: {RULE}}")
    cloud.write_text(text.replace("RULE", "max_server_per_host: 2") + "servers:\n" + servers)
    other = tmp_path / "other.yaml"
    other.write_text(text.replace("RULE", "max_server_per_host: 1"))
    status, out, _ = run("whatif", "--cloud", cloud, "--against", other, "-f", "json")
    found = json.loads(out)
    # The servers on h1 violated the policy before; those on h2 do so now.
    (new,) = found["violations"]["new"]
    assert (status, new["details"]["hosts"]) == (1, ["h1", "h2"])
    assert found["violations"]["resolved"] == []


def test_only_hosts_that_become_unreachable_are_new(run: Run, cloud: pathlib.Path) -> None:
    cloud.write_text(
        CLOUD.partition("server_groups:")[0]
        .replace("small:", "fast2:")
        .replace(
            "fast2: {vcpus: 1, ram_mb: 1024, disk_gb: 10}",
            "fast2: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {ssd: nvme}}",
        )
    )
    argv = ("whatif", "--cloud", cloud, "--remove-host", "fast:h1", "-f", "json")
    found = json.loads(run(*argv).out)["findings"]
    unreachable = [each for each in found["new"] if each["check"] == "unreachable-host"]
    assert [each["details"]["hosts"] for each in unreachable] == [["h1"]]
    assert "unreachable-host" not in {each["check"] for each in found["resolved"]}


def test_filters_on_trial_count_for_moves(
    run: Run, cloud: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    conf = tmp_path / "trial.conf"
    conf.write_text("[steelyard]\ntrial_filters = CapacityFilter, ServerGroupAntiAffinityFilter\n")
    argv = ("--config-file", conf, "whatif", "--cloud", cloud, "--out", "host:h1", "-f", "json")
    found = json.loads(run(*argv).out)
    assert found["displaced"] == []
    assert {each["server"] for each in found["stranded"]} == {"one", "quick"}


def test_host_goes_out_only_if_a_filter_rejects_it(
    run: Run, cloud: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    conf = tmp_path / "few.conf"
    conf.write_text("[steelyard]\nenabled_filters = CapacityFilter\n")
    argv = ("--config-file", conf, "whatif", "--cloud", cloud, "--out", "host:h1")
    status, out, err = run(*argv)
    assert (status, out) == (2, "")
    assert "InServiceFilter is not enabled" in err


def test_missing_host_and_stranded_server_are_reported_once(
    run: Run, cloud: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    cloud.write_text(f"{CLOUD}  idle: {{host: h3, flavor: small}}\n")  # out of service already
    other = tmp_path / "other.yaml"
    other.write_text(
        "hosts:\n  h2: {vcpus: 4, ram_mb: 4096, disk_gb: 100}\n"
        "flavors:\n  small: {vcpus: 1, ram_mb: 1024, disk_gb: 10}\n"
    )
    status, out, _ = run("whatif", "--cloud", cloud, "--against", other, "-f", "json")
    found = json.loads(out)
    assert {each["server"] for each in found["stranded"]} == {"one", "quick"}
    assert [(each["server"], each["to"]) for each in found["displaced"]] == [("idle", "h2")]
    assert found["violations"] == {"new": [], "resolved": []}
    assert not any(
        {"h1", "h3"} & set(each["details"].get("hosts", ())) for each in found["findings"]["new"]
    )
    (fast,) = [each for each in found["flavors"] if each["flavor"] == "fast"]
    assert (fast["hosts_before"], fast["hosts_after"], status) == (0, None, 1)


def test_files_with_changes_and_with_another_cloud(
    whatif: Any, run: Run, cloud: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "changes.yaml"
    file.write_text("- in: {host: h3}\n- add-host: {aggregate: fast, host: h3}\n")
    # Later changes find the cloud as the earlier ones left it.
    status, found = whatif("--changes", file, "--remove-host", "slow:h3")
    assert (status, [each["flavor"] for each in found["flavors"]]) == (0, ["small", "fast"])
    changed = tmp_path / "changed.yaml"
    argv = ("--changes", file, "--remove-host", "slow:h3", "--write", changed)
    assert run("whatif", "--cloud", cloud, *argv).status == 0
    assert Cloud.load(changed).aggregates["fast"].hosts == ("h1", "h3")
    assert cloud.read_text() == CLOUD
    assert whatif("--against", changed) == (status, found)


def test_written_cloud_has_the_servers_where_they_were(
    run: Run, cloud: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    changed = tmp_path / "changed.json"
    assert run("whatif", "--cloud", cloud, "--out", "host:h1", "--write", changed).status == 1
    found = Cloud.load(changed)
    assert found.hosts["h1"].out_of_service == "taken out by a change"
    before = Cloud.load(cloud)
    assert {each.uuid: each.host for each in found.servers.values()} == {
        each.uuid: each.host for each in before.servers.values()
    }
    again = run("whatif", "--cloud", cloud, "--out", "host:h1", "--write", changed)
    assert again.status == 2
    assert "already exists" in again.err


def test_nothing_differs(run: Run, cloud: pathlib.Path) -> None:
    ran = run("whatif", "--cloud", cloud, "--set", "aggregate:slow:note=x")
    assert ran == (0, "nothing differs\n", "steelyard: nothing is worse\n")


def test_new_and_removed_flavors_have_the_numbers_of_one_cloud(
    run: Run, cloud: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    other = tmp_path / "other.yaml"
    cloud.write_text(CLOUD.replace("  quick: {host: h1, flavor: fast}\n", ""))
    fast, wide = "  fast: {vcpus: 1, ram_mb: 3072", "  wide: {vcpus: 1, ram_mb: 1024"
    other.write_text(cloud.read_text().replace(fast, wide))
    _, out, _ = run("whatif", "--cloud", cloud, "--against", other)
    assert out.splitlines()[:3] == [
        "flavors that differ: 2",
        "    fast: removed, was on 1 host, 1 more server",
        "    wide: a new flavor, on 1 host, 3 more servers",
    ]


def test_strict_counts_any_decrease(run: Run, cloud: pathlib.Path) -> None:
    cloud.write_text(CLOUD.replace('out_of_service: "disabled"', "").replace("one:", "# one:"))
    argv = ("whatif", "--cloud", cloud, "--out", "host:h2")
    assert run(*argv).status == 0
    ran = run(*argv, "--strict")
    assert (ran.status, ran.err) == (
        1,
        "steelyard: worse: 1 flavor with fewer hosts or less room\n",
    )


def test_text_escapes_names_and_shortens_lists(run: Run, tmp_path: pathlib.Path) -> None:
    servers = {f"server-{number:02}": {"host": "h1", "flavor": "f"} for number in range(25)}
    host = {"vcpus": 16, "ram_mb": 65536, "disk_gb": 500}
    content = {
        "hosts": {"h1": host, "h2": host},
        "flavors": {"f": {"vcpus": 1, "ram_mb": 1024, "disk_gb": 1}},
        "servers": servers,
    }
    path = tmp_path / "cloud.yaml"
    path.write_text(yaml.safe_dump(content))
    _, out, _ = run("whatif", "--cloud", path, "--out", "host:h1")
    lines = out.splitlines()
    assert "servers that must move: 25" in lines
    assert lines.count("    and 5 more, which -f json lists") == 1
    assert sum(line.endswith("h1 -> h2") for line in lines) == 20


def test_page_is_written_instead_of_text(
    run: Run, cloud: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    html = tmp_path / "whatif.html"
    file = tmp_path / "changes.yaml"
    file.write_text("- in: {host: h3}\n")
    argv = ("--changes", file, "--out", "rack=r1", "--strict", "--html", html)
    conf = tmp_path / "racks.conf"
    conf.write_text("[steelyard]\n")
    status, out, err = run("--config-file", conf, "whatif", "--cloud", cloud, *argv)
    assert (status, out) == (1, f"page written to {html}\n")
    assert err.startswith("steelyard: worse: ")
    page = Page(html.read_text())
    assert shlex.split(page.by_id("command").text) == [
        *("steelyard", "--config-file", str(conf), "whatif", "--cloud", str(cloud)),
        *("--changes", str(file), "--strict", "--out", "rack=r1"),
    ]
    assert page.one("h1").text.startswith("Worse: ")


@pytest.mark.parametrize("read", ["--cloud", "--changes", "--against"])
def test_page_never_replaces_a_file_that_is_read(
    run: Run, cloud: pathlib.Path, tmp_path: pathlib.Path, read: str
) -> None:
    file = tmp_path / "other.yaml"
    file.write_text("- in: {host: h3}\n" if read == "--changes" else CLOUD)
    files = {"--cloud": cloud, "--changes": file, "--against": file}
    argv = ("--in", "host:h3") if read == "--cloud" else (read, file)
    before = files[read].read_text()
    ran = run("whatif", "--cloud", cloud, *argv, "--html", files[read])
    assert (ran.status, ran.out) == (2, "")
    assert f"--html {files[read]}: this is the " in ran.err
    assert files[read].read_text() == before


def test_page_never_replaces_the_written_cloud(run: Run, cloud: pathlib.Path) -> None:
    link = cloud.with_name("link.html")
    link.symlink_to("new.yaml")
    for html in (cloud.with_name("new.yaml"), link):
        new = cloud.with_name("new.yaml")
        ran = run("whatif", "--cloud", cloud, "--out", "host:h1", "--write", new, "--html", html)
        assert (ran.status, ran.out) == (2, "")
        assert f"--html {html}: this is the file of --write; name another file" in ran.err
        assert not new.exists()


@pytest.mark.parametrize("missing", ["--write", "--html"])
def test_no_file_is_written_if_one_of_them_cannot_be(
    run: Run, cloud: pathlib.Path, missing: str
) -> None:
    files = {"--write": cloud.with_name("new.yaml"), "--html": cloud.with_name("new.html")}
    files[missing] = cloud.with_name("none") / "new"
    argv = [word for each in files.items() for word in each]
    ran = run("whatif", "--cloud", cloud, "--out", "host:h1", *argv)
    assert (ran.status, ran.out) == (2, "")
    assert f"cannot write '{files[missing]}': No such file or directory" in ran.err
    assert list(cloud.parent.iterdir()) == [cloud]


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (("--html", "x.html", "-f", "json"), "--html writes a page instead of text: leave out -f"),
        ((), "no change: add one of --set, --unset, --force, "),
        (("--force", "fsat"), "--force fsat: no aggregate 'fsat'; did you mean 'fast'?"),
        (("--set", "fast"), "--set: invalid value 'fast': expected flavor:NAME:KEY=VALUE or"),
        (("--against", "x.yaml", "--force", "fast"), "--against excludes other changes"),
        (("--against", "x.yaml", "--write", "y.yaml"), "--write and --against cannot be used"),
        (("--changes", "none.yaml"), "none.yaml: No such file"),
        (("--set", "flavor:smal:a=b"), "no flavor 'smal'; did you mean 'small'?"),
    ],
)
def test_mistake_of_the_caller(
    run: Run, cloud: pathlib.Path, argv: tuple[str, ...], said: str
) -> None:
    status, out, err = run("whatif", "--cloud", cloud, *argv)
    assert (status, out) == (2, "")
    assert said in err


def test_mistake_in_a_file_names_the_change(
    run: Run, cloud: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    file = tmp_path / "changes.yaml"
    file.write_text("- force: fast\n- force: fsat\n")
    status, _, err = run("whatif", "--cloud", cloud, "--changes", file)
    assert status == 2
    assert f"{file}:2: change 2: no aggregate 'fsat'; did you mean 'fast'?" in err
