import json
from typing import Any

import pytest
from stevedore import extension

from steelyard import cli
from steelyard.analysis.doctor import examine
from steelyard.analysis.nova_conf import NovaConf
from steelyard.findings import Check, Severity, SubjectKind

BOTH = (
    "available_filters = nova.scheduler.filters.all_filters\n"
    "available_filters = steelyard.nova.all_filters\n"
)
DEFAULTS = (
    "ComputeFilter, ImagePropertiesFilter, ServerGroupAntiAffinityFilter, ServerGroupAffinityFilter"
)
GOOD = BOTH + f"enabled_filters = {DEFAULTS}, AggregateInstanceTypeFilter\n"


@pytest.fixture
def findings(tmp_path: Any) -> Any:
    def find(nova: str, steelyard: str = "") -> list[tuple[Severity, str, str]]:
        path = tmp_path / "nova.conf"
        path.write_text(f"[filter_scheduler]\n{nova}\n[steelyard]\n{steelyard}\n")
        found = examine(NovaConf([str(path)]))
        assert all(each.remedy and each.message for each in found)
        assert {each.file for each in found} <= {str(path), None}
        assert {each.subject.kind for each in found} <= {SubjectKind.OPTION}
        return [(each.severity, each.subject.name, each.message) for each in found]

    return find


def test_doctor_finds_nothing_in_valid_configuration(findings: Any) -> None:
    assert findings(GOOD) == []
    assert findings("") == []


@pytest.mark.parametrize(
    ("nova", "steelyard", "severity", "option", "said"),
    [
        (
            "available_filters = steelyard.nova.all_filters\n"
            f"enabled_filters = {DEFAULTS}, AggregateInstanceTypeFilter",
            "",
            "error",
            "[filter_scheduler] available_filters",
            "listed without nova.scheduler.filters.all_filters: Nova's own filters, such as",
        ),
        (
            f"enabled_filters = {DEFAULTS}, AggregateInstanceTypeFilter",
            "",
            "error",
            "[filter_scheduler] available_filters",
            "is enabled but not available",
        ),
        (
            BOTH + f"enabled_filters = {DEFAULTS}, ComputeCapabilitiesFilter",
            "",
            "warning",
            "[filter_scheduler] enabled_filters",
            "is available but not enabled: it has no effect",
        ),
        (
            GOOD.rstrip() + ", AggregateInstanceExtraSpecsFilter",
            "",
            "warning",
            "[filter_scheduler] enabled_filters",
            "are both enabled",
        ),
        (
            GOOD.rstrip() + ", AggregateInstanceExtraSpecsFilter",
            "trial_filters = AggregateInstanceTypeFilter",
            "note",
            "[filter_scheduler] enabled_filters",
            "is on trial, and AggregateInstanceExtraSpecsFilter still rejects hosts",
        ),
        (
            BOTH + "enabled_filters = AggregateInstanceTypeFilter, ComputeFilter",
            "",
            "note",
            "[filter_scheduler] enabled_filters",
            "filters that Nova enables by default are left out: ImagePropertiesFilter, "
            "ServerGroupAntiAffinityFilter, ServerGroupAffinityFilter",
        ),
        (
            GOOD.rstrip() + ", ComputeCapabilitiesFilter",
            "",
            "note",
            "[filter_scheduler] enabled_filters",
            "ComputeCapabilitiesFilter also reads plain extra specs",
        ),
        (
            GOOD,
            "ram_weight_multiplier = nan",
            "error",
            "[steelyard] ram_weight_multiplier",
            "'nan': expected a finite number",
        ),
        (GOOD, "log_no_host = perhaps", "error", "[steelyard] log_no_host", "perhaps"),
        (
            GOOD,
            "enforce = true",
            "error",
            "[steelyard] enforce",
            "'true': this option was removed; delete the line, and list the filters that must not "
            "reject hosts in trial_filters",
        ),
        (
            GOOD,
            "trial_filters = AggregateInstanceTypFilter",
            "error",
            "[steelyard] trial_filters",
            "no filter 'AggregateInstanceTypFilter'; did you mean 'AggregateInstanceTypeFilter'?",
        ),
        (
            GOOD,
            "trial_filters = AggregateInstanceTypeFilter, TraitsFilter",
            "note",
            "[steelyard] trial_filters",
            "TraitsFilter is on trial but not enabled: it reports nothing",
        ),
        (
            "",
            "trial_filters = ServerGroupAntiAffinityFilter",
            "warning",
            "[steelyard] trial_filters",
            "Nova does not load ServerGroupAntiAffinityFilter from steelyard: it is not on trial",
        ),
        (
            GOOD,
            "log_no_hosts = false",
            "warning",
            "[steelyard] log_no_hosts",
            "unknown option; did you mean 'log_no_host'?",
        ),
        (
            GOOD,
            "log-no-host = false",
            "warning",
            "[steelyard] log-no-host",
            "unknown option; did you mean 'log_no_host'?",
        ),
        (
            GOOD,
            "log_no_host = $x",
            "error",
            "[steelyard] log_no_host",
            "'$x': unknown option 'x' after '$'; write $$ for a literal $",
        ),
        (
            GOOD
            + "weight_classes = nova.scheduler.weights.all_weighers, steelyard.nova.all_weighers",
            "nova_weighers = $x",
            "error",
            "[steelyard] nova_weighers",
            "'$x': unknown option 'x' after '$'; write $$ for a literal $",
        ),
        (
            GOOD
            + "weight_classes = nova.scheduler.weights.all_weighers, steelyard.nova.all_weighers",
            "nova_weighers = RAMWeighr",
            "error",
            "[steelyard] nova_weighers",
            "no weigher 'RAMWeighr'; did you mean 'RAMWeigher'?",
        ),
        (
            GOOD
            + "weight_classes = nova.scheduler.weights.all_weighers, steelyard.nova.all_weighers,"
            "steelyard.nova.ServerGroupSoftAffinityWeigher\nsoft_affinity_weight_multiplier = 0",
            "nova_weighers = ServerGroupSoftAffinityWeigher",
            "warning",
            "[filter_scheduler] weight_classes",
            "SoftAffinityWeigher is listed by name and through steelyard.nova.all_weighers",
        ),
        (
            GOOD
            + "weight_classes = nova.scheduler.weights.all_weighers, steelyard.nova.all_weighers",
            "nova_weighers = RAMWeigher",
            "error",
            "[steelyard] nova_weighers",
            "RAMWeigher is not available in Nova, which has its own",
        ),
        (
            GOOD
            + "weight_classes = nova.scheduler.weights.all_weighers, steelyard.nova.all_weigher",
            "",
            "error",
            "[filter_scheduler] weight_classes",
            "no plugin 'steelyard.nova.all_weigher'; did you mean 'steelyard.nova.all_weighers'",
        ),
        (
            GOOD + "available_filters = steelyard.nova.AggregateInstanceTypeFilters",
            "",
            "error",
            "[filter_scheduler] available_filters",
            "no plugin 'steelyard.nova.AggregateInstanceTypeFilters'; did you mean",
        ),
        (
            GOOD + "soft_affinity_weight_multiplier = much",
            "",
            "error",
            "[filter_scheduler] soft_affinity_weight_multiplier",
            "much",
        ),
        (
            GOOD,
            "nova_weighers = ServerGroupSoftAffinityWeigher",
            "warning",
            "[filter_scheduler] weight_classes",
            "they have no effect",
        ),
        (
            GOOD
            + "weight_classes = nova.scheduler.weights.affinity.ServerGroupSoftAffinityWeigher, "
            "steelyard.nova.all_weighers\nsoft_affinity_weight_multiplier = 0",
            "",
            "warning",
            "[filter_scheduler] weight_classes",
            "Nova's own ServerGroupSoftAntiAffinityWeigher is not listed: if nova-conductor reads",
        ),
        (
            GOOD + "weight_classes = nova.scheduler.weights.all_weighers, "
            "steelyard.nova.ServerGroupSoftAffinityWeigher",
            "",
            "warning",
            "[filter_scheduler] soft_affinity_weight_multiplier",
            "ServerGroupSoftAffinityWeigher is loaded twice, from Nova with the multiplier 1.0",
        ),
    ],
)
def test_doctor_reports_finding(
    findings: Any, nova: str, steelyard: str, severity: str, option: str, said: str
) -> None:
    ((found_severity, found_option, finding),) = findings(nova, steelyard)
    assert (found_severity, found_option) == (severity, option)
    assert said in finding


SOFT_IN_BOTH = "weight_classes = nova.scheduler.weights.all_weighers, steelyard.nova.all_weighers\n"
ONLY_OURS = "weight_classes = nova.scheduler.weights.ram.RAMWeigher, steelyard.nova.all_weighers\n"


@pytest.mark.parametrize(
    ("name", "remedy"),
    [
        ("CapacityFilter", "remove the name"),
        (
            "AggregateInstanceTypeFilter",
            "add AggregateInstanceTypeFilter to enabled_filters, or remove it from trial_filters",
        ),
    ],
)
def test_remedy_enables_only_filters_available_in_nova(
    tmp_path: Any, name: str, remedy: str
) -> None:
    path = tmp_path / "nova.conf"
    path.write_text(f"[steelyard]\ntrial_filters = {name}\n")
    (found,) = examine(NovaConf([str(path)]))
    assert (found.check, found.remedy) == (Check.FILTER_NOT_ENABLED, remedy)


def test_doctor_reports_soft_weighers_loaded_twice(findings: Any) -> None:
    twice = [option for _, option, _ in findings(GOOD + SOFT_IN_BOTH)]
    assert twice == [
        "[filter_scheduler] soft_affinity_weight_multiplier",
        "[filter_scheduler] soft_anti_affinity_weight_multiplier",
    ]
    off = "soft_affinity_weight_multiplier = 0.0\nsoft_anti_affinity_weight_multiplier = 0.0\n"
    assert findings(GOOD + SOFT_IN_BOTH + off) == []


def test_empty_nova_weighers_gives_no_findings(findings: Any) -> None:
    assert findings(GOOD, "nova_weighers =") == []


def test_doctor_reports_ignored_soft_policies(findings: Any) -> None:
    off = "soft_affinity_weight_multiplier = 0\nsoft_anti_affinity_weight_multiplier = 0\n"
    found = findings(GOOD + off)
    assert [option for _, option, _ in found] == [
        "[filter_scheduler] soft_affinity_weight_multiplier",
        "[filter_scheduler] soft_anti_affinity_weight_multiplier",
    ]
    assert "accepted and then ignored" in found[0][2]


def test_doctor_reports_duplicate_path(findings: Any) -> None:
    found = findings(GOOD + "available_filters = steelyard.nova.all_filters\n")
    assert [finding for _, _, finding in found] == [
        "'steelyard.nova.all_filters' is listed more than once"
    ]


def test_doctor_reports_missing_nova_weighers(tmp_path: Any) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text(f"[filter_scheduler]\n{GOOD}weight_classes = steelyard.nova.all_weighers\n")
    (found,) = examine(NovaConf([str(path)], scheduler_only=True))
    assert "none of Nova's own weighers is listed" in found.message


def test_scheduler_only_skips_conductor_check(tmp_path: Any, capsys: Any) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text(f"[filter_scheduler]\n{GOOD}{ONLY_OURS}")
    assert len(examine(NovaConf([str(path)]))) == 2
    assert examine(NovaConf([str(path)], scheduler_only=True)) == []
    assert cli.main(["doctor", "--config-file", str(path)]) == 1
    assert "--scheduler-only" in capsys.readouterr().out.replace("\n", "")
    assert cli.main(["doctor", "--config-file", str(path), "--scheduler-only"]) == 0


def test_findings_are_sorted_by_severity(findings: Any) -> None:
    enabled = (
        f"{DEFAULTS}, AggregateInstanceTypeFilter, ComputeCapabilitiesFilter, "
        "AggregateInstanceExtraSpecsFilter"
    )
    found = findings(
        f"available_filters = steelyard.nova.all_filters\nenabled_filters = {enabled}", "x = 1"
    )
    assert [severity for severity, _, _ in found] == ["error", "warning", "warning", "note"]


def test_finding_names_last_file_that_sets_the_option(tmp_path: Any) -> None:
    first, second = tmp_path / "nova.conf", tmp_path / "more.conf"
    first.write_text("[filter_scheduler]\nenabled_filters = ComputeFilter\n")
    second.write_text(
        f"[filter_scheduler]\nenabled_filters = {DEFAULTS}, AggregateInstanceTypeFilter\n"
    )
    (found,) = examine(NovaConf([str(first), str(second)]))
    assert (found.file, found.line) == (None, None)
    assert found.subject.name == "[filter_scheduler] available_filters"
    first.write_text("[filter_scheduler]\n" + BOTH)
    second.write_text(
        f"[filter_scheduler]\nenabled_filters = {DEFAULTS}, ComputeCapabilitiesFilter\n"
    )
    (found,) = examine(NovaConf([str(first), str(second)]))
    assert (found.file, found.line) == (str(second), 2)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (GOOD, 0),
        (GOOD.rstrip() + ", ComputeCapabilitiesFilter", 0),
        (BOTH + "enabled_filters = ComputeFilter", 1),
    ],
)
def test_doctor_command_exits_1_on_errors_or_warnings(
    tmp_path: Any, capsys: Any, text: str, status: int
) -> None:
    path = tmp_path / "nova.conf"
    path.write_text(f"[filter_scheduler]\n{text}\n")
    assert cli.main(["doctor", "--config-file", str(path), "-f", "json"]) == status
    out, err = capsys.readouterr()
    document = json.loads(out)
    assert {row["file"] for row in document["findings"]} <= {str(path)}
    assert bool(document["findings"]) is (text != GOOD)
    assert document["summary"]["findings"] == len(document["findings"])
    assert document["summary"]["files"] == 1
    assert err.endswith(" in 1 file\n")


def test_doctor_reports_unreadable_list(findings: Any) -> None:
    found = findings(GOOD + "enabled_filters = $x")
    assert found[0] == (
        Severity.ERROR,
        "[filter_scheduler] enabled_filters",
        "'$x': unknown option 'x' after '$'; write $$ for a literal $",
    )


def test_unknown_option_has_file_and_line(tmp_path: Any) -> None:
    path = tmp_path / "nova.conf"
    path.write_text(f"[filter_scheduler]\n{GOOD}[steelyard]\nlog-no-host = false\n")
    (finding,) = examine(NovaConf([str(path)]))
    assert (finding.check, finding.file, finding.line) == (Check.UNKNOWN_OPTION, str(path), 6)


def test_doctor_command_prints_file_line_and_message(
    tmp_path: Any, capsys: Any, monkeypatch: Any
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    path = tmp_path / "nova.conf"
    path.write_text("[steelyard]\nlog_no_hosts = false\n")
    assert cli.main(["doctor", "--config-file", str(path)]) == 1
    assert capsys.readouterr().out.splitlines() == [
        "warning: unknown-option: option '[steelyard] log_no_hosts'",
        f"    {path}:2: unknown option; did you mean 'log_no_host'?",
        "    remedy: correct the name or remove the line; it has no effect",
        "",
    ]


def test_doctor_command_rejects_missing_file(capsys: Any, tmp_path: Any) -> None:
    assert cli.main(["doctor"]) == 2
    assert "missing --config-file" in capsys.readouterr().err
    assert cli.main(["doctor", "--config-file", str(tmp_path / "nowhere.conf")]) == 2
    assert "nowhere.conf" in capsys.readouterr().err


def test_broken_weigher_gets_no_suggestion(findings: Any, tmp_path: Any, monkeypatch: Any) -> None:
    metadata = tmp_path / "broken_plugins-1.dist-info"
    metadata.mkdir()
    (metadata / "METADATA").write_text("Name: broken-plugins\nVersion: 1\n")
    (metadata / "entry_points.txt").write_text(
        "[steelyard.weighers]\n"
        "BadWeigher = nowhere_to_be_found:BadWeigher\n"
        "BadWeighers = nowhere_to_be_found:BadWeighers\n"
    )
    monkeypatch.syspath_prepend(tmp_path)
    # stevedore keeps the entry points of a group for the whole process.
    monkeypatch.setattr(extension.ExtensionManager, "ENTRY_POINT_CACHE", {})
    messages = [message for _, _, message in findings(GOOD, "nova_weighers = BadWeigher")]
    assert messages[0] == (
        "the weigher 'BadWeigher' of broken-plugins 1 cannot be loaded: "
        "ModuleNotFoundError: No module named 'nowhere_to_be_found'"
    )


def test_unknown_weigher_with_common_ending_gets_no_suggestion(
    findings: Any,
) -> None:
    messages = [message for _, _, message in findings(GOOD, "nova_weighers = TimeWeigher")]
    assert messages[0] == "no weigher 'TimeWeigher'"
