import json
import sys
from typing import Any

import pytest

from steelyard.cloud import Cloud
from steelyard.errors import InvalidCloud, MissingExtra, NotFound
from steelyard.groups import Policy

GOOD = """\
hosts:
  h1: {vcpus: 4, ram_mb: 4096, disk_gb: 100, traits: [HW_CPU_X86_AVX2]}
  h2: {vcpus: 8, ram_mb: 8192, disk_gb: 200}
aggregates:
  rack:
    hosts: [h1, h2]
    metadata: {ssd: ~, count: 10, force_metadata_check: true, "any": "*"}
flavors:
  small:
    vcpus: 1
    ram_mb: 512
    disk_gb: 5
    extra_specs: {ssd: "<or> nvme <or> ~", no: '!', version: 1.10}
server_groups:
  web: {policy: anti-affinity, rules: {max_server_per_host: 2}}
servers:
  web-1: {host: h1, flavor: small, group: web}
  lone: {host: h2, flavor: small, uuid: 6a4a0a1e-0000-4000-8000-000000000001}
"""


@pytest.fixture
def described(tmp_path: Any) -> Any:
    def describe(text: str, name: str = "cloud.yaml") -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return str(path)

    return describe


def test_load_reads_every_section(described: Any) -> None:
    cloud = Cloud.load(described(GOOD))
    assert list(cloud.hosts) == ["h1", "h2"]
    assert cloud.hosts["h1"].traits == {"HW_CPU_X86_AVX2"}
    assert cloud.hosts["h2"].ram_mb == 8192
    assert cloud.aggregates["rack"].hosts == ("h1", "h2")
    assert cloud.flavors["small"].memory_mb == 512
    assert cloud.server_groups["web"].policy is Policy.ANTI_AFFINITY
    assert cloud.server_groups["web"].rules == {"max_server_per_host": 2}
    web, lone = cloud.servers.values()
    assert (web.name, web.host, web.group) == ("web-1", "h1", "web")
    assert cloud.server_groups["web"].members == {web.uuid}
    assert cloud.server_groups["web"].hosts == {"h1"}
    assert lone.uuid == "6a4a0a1e-0000-4000-8000-000000000001"


def test_load_reads_every_scalar_as_text(described: Any) -> None:
    cloud = Cloud.load(described(GOOD))
    assert cloud.aggregates["rack"].metadata == {
        "ssd": "~",
        "count": "10",
        "force_metadata_check": "true",
        "any": "*",
    }
    assert cloud.flavors["small"].extra_specs == {
        "ssd": "<or> nvme <or> ~",
        "no": "!",
        "version": "1.10",
    }


def test_load_derives_the_same_server_uuids_each_time(described: Any) -> None:
    path = described(GOOD)
    assert list(Cloud.load(path).servers) == list(Cloud.load(path).servers)


def test_load_reads_json_like_yaml(described: Any) -> None:
    path = described(
        json.dumps(
            {
                "hosts": {"h1": {"vcpus": 4, "ram_mb": 4096, "disk_gb": "100"}},
                "aggregates": {
                    "a": {"hosts": ["h1"], "metadata": {"n": 1.50, "force_metadata_check": True}}
                },
            }
        ),
        "cloud.json",
    )
    cloud = Cloud.load(path)
    assert cloud.hosts["h1"].disk_gb == 100
    assert cloud.aggregates["a"].metadata == {"n": "1.5", "force_metadata_check": "true"}


@pytest.mark.parametrize(
    ("change", "place", "said"),
    [
        (
            ("vcpus: 4,", "vcpus: four,"),
            "2: hosts.h1.vcpus:",
            'from 0 to 999999999999999, got "four"',
        ),
        (("vcpus: 4,", "vcpus: -4,"), "2: hosts.h1.vcpus:", 'got "-4"'),
        (("vcpus: 4,", "vcpus: 0x4,"), "2: hosts.h1.vcpus:", 'got "0x4"'),
        (("vcpus: 4, ", ""), "2: hosts.h1:", "missing key 'vcpus'; required: vcpus, ram_mb"),
        (
            ("ram_mb: 4096", "ram: 4096"),
            "2: hosts.h1.ram:",
            "unknown key 'ram'; did you mean 'ram_mb'?",
        ),
        (
            ("traits: [HW_CPU_X86_AVX2]", "traits: {}"),
            "2: hosts.h1.traits:",
            "expected a list, got {}",
        ),
        (
            ("traits:", "allocation_ratios: {vcpus: inf}, traits:"),
            "2: hosts.h1.allocation_ratios.vcpus:",
            'expected a number of at least 0, got "inf"',
        ),
        (
            ("traits:", "reserved: {vcpu: 1}, traits:"),
            "2: hosts.h1.reserved.vcpu:",
            "unknown key 'vcpu'; did you mean 'vcpus'?",
        ),
        (
            ("traits:", "used: {vcpus: -1}, traits:"),
            "2: hosts.h1.used.vcpus:",
            "expected a whole number from 0",
        ),
        (("[HW_CPU_X86_AVX2]", "[[]]"), "2: hosts.h1.traits.0:", "expected text, got []"),
        (("  h2: {", "  h1: {"), "3:", "duplicate key 'h1'"),
        (
            ("hosts: [h1, h2]", "hosts: [h1, h3]"),
            "6: aggregates.rack.hosts.1:",
            "no host 'h3'; available: 'h1', 'h2'",
        ),
        (
            ("hosts: [h1, h2]", "hosts: h1"),
            "6: aggregates.rack.hosts:",
            'expected a list, got "h1"',
        ),
        (('"any": "*"', '"any": *'), "7:", "put quotes around a value that begins with *"),
        (
            ('"any": "*"', '"any": !'),
            "7:",
            "put quotes around a value that begins with *, &, !, > or |",
        ),
        (('"any": "*"', '"any": &a &b c'), "7:", "; put quotes around a value that begins with *"),
        (('"any": "*"', '"any": ! '), "7:", "put quotes around a lone !"),
        (("ssd: ~,", "ssd: !nvme,"), "7:", "put quotes around a value that begins with !"),
        (("ssd: ~,", "ssd: !nvme x,"), "7:", "put quotes around a value that begins with !"),
        (("ssd: ~,", "ssd: [a],"), "7: aggregates.rack.metadata.ssd:", 'expected text, got ["a"]'),
        (("ssd: ~,", "ssd: ,"), "7:", "missing value"),
        (("ssd: ~,", "ssd:nvme,"), "7:", "missing value; write a space after the colon of a key"),
        (
            ("anti-affinity", "antiaffinity"),
            "15: server_groups.web.policy:",
            "unknown policy 'antiaffinity'",
        ),
        (
            ("max_server_per_host: 2", "max_server_per_host: 0"),
            "15: server_groups.web.rules",
            "invalid max_server_per_host '0': expected a whole number from 1 to 999999999",
        ),
        (
            ("max_server_per_host: 2", "max_servers: 2"),
            "15: server_groups.web.rules",
            "unknown key 'max_servers' in rules; did you mean 'max_server_per_host'?",
        ),
        (("host: h1", "host: h9"), "17: servers.web-1.host:", "no host 'h9'"),
        (
            ("flavor: small, group", "flavor: smal, group"),
            "17: servers.web-1.flavor:",
            "did you mean 'small'?",
        ),
        (("group: web", "group: wbe"), "17: servers.web-1.group:", "did you mean 'web'?"),
        (("hosts:\n", "hostss:\n"), "1: hostss:", "unknown key 'hostss'; did you mean 'hosts'?"),
        (("server_groups:\n  web:", "server_groups:\n web:\n  -"), "", "expected"),
    ],
)
def test_load_mistake_is_reported_with_line_and_path(
    described: Any, change: Any, place: Any, said: Any
) -> None:
    assert change[0] in GOOD
    path = described(GOOD.replace(change[0], change[1], 1))
    with pytest.raises(InvalidCloud) as caught:
        Cloud.load(path)
    message = str(caught.value)
    assert message.startswith(f"{path}:{place}")
    assert said in message
    assert "\n" not in message


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("", "the file is empty"),
        ("null", "expected a mapping"),
        ("hosts:\n  k: >= 4", "put quotes around"),
        ("[]", "expected a mapping, got []"),
        ("hosts: [a]", "hosts: expected a mapping"),
        ("aggregates: {}", "missing key 'hosts'"),
        ("hosts: {", "invalid YAML"),
        ("a: b: c", "invalid YAML"),
        ("hosts: {}\nhosts: {}", "duplicate key 'hosts'"),
        ("\x07", "invalid YAML: unacceptable character #x0007: "),
        ("\ufeffhosts: *a", "; put quotes around a value that begins with *"),
    ],
)
def test_load_rejects_invalid_document(described: Any, text: Any, said: Any) -> None:
    with pytest.raises(InvalidCloud, match=r"cloud\.yaml") as caught:
        Cloud.load(described(text))
    assert said in str(caught.value)


@pytest.mark.parametrize("text", ["%TAG alias\n---\nhosts: {}", "hosts: {h: 'an anchor", "a: b: *"])
def test_load_yaml_error_away_from_indicator_has_no_quoting_hint(described: Any, text: str) -> None:
    with pytest.raises(InvalidCloud, match="invalid YAML") as caught:
        Cloud.load(described(text))
    assert "put quotes" not in str(caught.value)


@pytest.mark.parametrize(
    ("change", "said"),
    [
        (("vcpus: 4,", f"vcpus: {'9' * 5000},"), "from 0 to 999999999999999, got"),
        (("  h2: {", '  "h\\e[31m": {'), ": expected at least one character, all printable"),
        (("  h2: {", '  "": {'), ": expected at least one character, all printable"),
        (("  h2: {", "  h2: !foo {"), "unsupported tag '!foo'"),
        (("[HW_CPU_X86_AVX2]", "!!set [HW_CPU_X86_AVX2]"), "unsupported tag"),
        (
            ("policy: anti-affinity", "policy: affinity"),
            "cannot use rules with policy 'affinity'",
        ),
    ],
)
def test_load_rejects_invalid_value_with_short_message(
    described: Any, change: Any, said: Any
) -> None:
    assert change[0] in GOOD
    with pytest.raises(InvalidCloud) as caught:
        Cloud.load(described(GOOD.replace(change[0], change[1], 1)))
    assert said in str(caught.value)
    assert len(str(caught.value)) < 400


# Python's JSON parser accepts 1000 levels in 3.11 and 10000 in 3.13.
@pytest.mark.parametrize(("name", "depth"), [("cloud.json", 100_000), ("cloud.yaml", 5000)])
def test_load_rejects_deeply_nested_file(described: Any, name: str, depth: int) -> None:
    with pytest.raises(InvalidCloud, match="nested too deeply"):
        Cloud.load(described("[" * depth + "]" * depth, name))


@pytest.mark.parametrize(
    ("name", "depth"),
    [
        *(("cloud.json", depth) for depth in (100, 500, 990, 5000, 9990, 20_000)),
        *(("cloud.yaml", depth) for depth in (100, 500, 990)),
    ],
)
def test_load_rejects_nested_file_with_short_message(described: Any, name: str, depth: int) -> None:
    with pytest.raises(InvalidCloud) as caught:
        Cloud.load(described("[" * depth + "]" * depth, name))
    assert len(str(caught.value)) < 400


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("hosts: &all\n  h: &a\n    vcpus: x\n", 2),
        ("? [a, {b: c}]\n: d\nflavors: |\n  text\nhosts:\n  h: {}", 1),
        ("aggregates:\n  a:\n    hosts:\n    - h\n    - {b: [c]}\nhosts: {}", 5),
        ("flavors:\n  f: {x: [a, {b: c}]}\n  g: {}\nhosts:\n  h: [a]\n", 5),
        ("hosts:\n  h: &x {vcpus: 1, ram_mb: 1, disk_gb: 1}\nflavors: *x", 3),
        ("---\nhosts:\n  # a comment\n  h:\n    vcpus: 1", 4),
    ],
)
def test_load_finds_the_line_after_other_entries(
    described: Any, text: str, line: int | None
) -> None:
    with pytest.raises(InvalidCloud) as caught:
        Cloud.load(described(text))
    assert caught.value.line == line


def test_load_rejects_duplicate_server_uuid(described: Any) -> None:
    text = GOOD.replace("group: web}", "uuid: 6a4a0a1e-0000-4000-8000-000000000001}")
    with pytest.raises(InvalidCloud, match=r"servers\.lone\.uuid: .*: another server has it too"):
        Cloud.load(described(text))


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ('{"hosts": }', "1: invalid JSON: Expecting value"),
        ('{"hosts": {}, "hosts": {}}', "duplicate key 'hosts'"),
        (
            '{"hosts":\n {"h": {"vcpus": 1.5, "ram_mb": 1, "disk_gb": 1}}}',
            '2: hosts.h.vcpus: expected a whole number from 0 to 999999999999999, got "1.5"',
        ),
        ('{"hosts": {"h": {"vcpus": null, "ram_mb": 1, "disk_gb": 1}}}', "got null"),
        (
            '{"hosts": {}, "aggregates": {"a": {"hosts": [], "metadata": {"x": null}}}}',
            "expected text, got null",
        ),
    ],
)
def test_load_json_mistake_is_reported(described: Any, text: Any, said: Any) -> None:
    with pytest.raises(InvalidCloud) as caught:
        Cloud.load(described(text, "cloud.json"))
    assert said in str(caught.value)


def test_load_unreadable_file_is_reported(tmp_path: Any) -> None:
    with pytest.raises(InvalidCloud, match=r"nowhere\.yaml: No such file"):
        Cloud.load(tmp_path / "nowhere.yaml")
    (tmp_path / "latin.yaml").write_bytes("hosts: {é: {}}".encode("latin-1"))
    with pytest.raises(InvalidCloud, match="invalid UTF-8"):
        Cloud.load(tmp_path / "latin.yaml")


def test_load_without_pyyaml_reads_json(
    described: Any, monkeypatch: Any, requirements: Any
) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    requirements("steelyard-no-such-yaml>=1; extra == 'cli'")
    with pytest.raises(MissingExtra, match=r"^a cloud file in YAML needs 'yaml': the extra 'cli'"):
        Cloud.load(described(GOOD))
    assert Cloud.load(described('{"hosts": {}}', "cloud.json")).hosts == {}
    with pytest.raises(InvalidCloud, match=r"cloud\.json: hosts: expected a mapping"):
        Cloud.load(described('{"hosts": []}', "cloud.json"))


def test_unknown_name_is_rejected_with_suggestion(described: Any) -> None:
    cloud = Cloud.load(described(GOOD))
    with pytest.raises(NotFound, match="no flavor 'smal'; did you mean 'small'"):
        cloud.flavor("smal")
    with pytest.raises(NotFound, match="no server group 'x'; available: 'web'"):
        cloud.server_group("x")
    with pytest.raises(NotFound, match="; there are none"):
        Cloud({}).flavor("x")
