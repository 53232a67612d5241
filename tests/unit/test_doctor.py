import json
from typing import Any

import pytest

from steelyard import cli
from steelyard.doctor import NovaConf, examine
from steelyard.severity import Severity

BOTH = (
    "available_filters = nova.scheduler.filters.all_filters\n"
    "available_filters = steelyard.nova.all_filters\n"
)
GOOD = BOTH + "enabled_filters = ComputeFilter, AggregateInstanceTypeFilter\n"


@pytest.fixture
def findings(tmp_path: Any) -> Any:
    def find(nova: str, steelyard: str = "") -> list[tuple[Severity, str, str]]:
        path = tmp_path / "nova.conf"
        path.write_text(f"[filter_scheduler]\n{nova}\n[steelyard]\n{steelyard}\n")
        found = examine(NovaConf([str(path)]))
        assert all(each.remedy and each.finding for each in found)
        assert all(each.file in (str(path), "(not set)") for each in found)
        return [(each.severity, each.option, each.finding) for each in found]

    return find


def test_nothing_is_wrong(findings: Any) -> None:
    assert findings(GOOD) == []
    assert findings("") == []


@pytest.mark.parametrize(
    ("nova", "steelyard", "severity", "option", "said"),
    [
        (
            "available_filters = steelyard.nova.all_filters\n"
            "enabled_filters = AggregateInstanceTypeFilter",
            "",
            "error",
            "[filter_scheduler] available_filters",
            "but not nova.scheduler.filters.all_filters: Nova's own filters, ComputeFilter among",
        ),
        (
            "enabled_filters = AggregateInstanceTypeFilter",
            "",
            "error",
            "[filter_scheduler] available_filters",
            "is enabled but not available",
        ),
        (
            BOTH + "enabled_filters = ComputeFilter",
            "",
            "warning",
            "[filter_scheduler] enabled_filters",
            "is available but not enabled: it does nothing",
        ),
        (
            GOOD.rstrip() + ", AggregateInstanceExtraSpecsFilter",
            "",
            "warning",
            "[filter_scheduler] enabled_filters",
            "are both enabled",
        ),
        (
            GOOD.rstrip() + ", ComputeCapabilitiesFilter",
            "",
            "note",
            "[filter_scheduler] enabled_filters",
            "ComputeCapabilitiesFilter reads plain extra specs too",
        ),
        (
            GOOD,
            "ram_weight_multiplier = nan",
            "error",
            "[steelyard] ram_weight_multiplier",
            "'nan' is not a finite number",
        ),
        (GOOD, "enforce = perhaps", "error", "[steelyard] enforce", "perhaps"),
        (
            GOOD,
            "enforc = false",
            "warning",
            "[steelyard] enforc",
            "there is no such option; did you mean 'enforce'?",
        ),
        (
            GOOD
            + "weight_classes = nova.scheduler.weights.all_weighers, steelyard.nova.all_weighers",
            "nova_weighers = RAMWeighr",
            "error",
            "[steelyard] nova_weighers",
            "there is no weigher 'RAMWeighr'; did you mean 'RAMWeigher'?",
        ),
        (
            GOOD
            + "weight_classes = nova.scheduler.weights.all_weighers, steelyard.nova.all_weighers,"
            "steelyard.nova.ServerGroupSoftAffinityWeigher\nsoft_affinity_weight_multiplier = 0",
            "nova_weighers = ServerGroupSoftAffinityWeigher",
            "warning",
            "[filter_scheduler] weight_classes",
            "SoftAffinityWeigher is named by itself and by steelyard.nova.all_weighers: it counts",
        ),
        (
            GOOD
            + "weight_classes = nova.scheduler.weights.all_weighers, steelyard.nova.all_weighers",
            "nova_weighers = RAMWeigher",
            "error",
            "[steelyard] nova_weighers",
            "RAMWeigher is not for Nova, which has one of its own",
        ),
        (
            GOOD
            + "weight_classes = nova.scheduler.weights.all_weighers, steelyard.nova.all_weigher",
            "",
            "error",
            "[filter_scheduler] weight_classes",
            "there is no steelyard.nova.all_weigher; did you mean 'steelyard.nova.all_weighers'",
        ),
        (
            GOOD + "available_filters = steelyard.nova.AggregateInstanceTypeFilters",
            "",
            "error",
            "[filter_scheduler] available_filters",
            "there is no steelyard.nova.AggregateInstanceTypeFilters; did you mean",
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
            "they do nothing",
        ),
        (
            GOOD
            + "weight_classes = nova.scheduler.weights.affinity.ServerGroupSoftAffinityWeigher, "
            "steelyard.nova.all_weighers\nsoft_affinity_weight_multiplier = 0",
            "",
            "warning",
            "[filter_scheduler] weight_classes",
            "Nova's own ServerGroupSoftAntiAffinityWeigher is not named: nova-conductor, where",
        ),
        (
            GOOD + "weight_classes = nova.scheduler.weights.all_weighers, "
            "steelyard.nova.ServerGroupSoftAffinityWeigher",
            "",
            "warning",
            "[filter_scheduler] soft_affinity_weight_multiplier",
            "ServerGroupSoftAffinityWeigher is there twice, Nova's own with the multiplier 1.0",
        ),
    ],
)
def test_each_finding(
    findings: Any, nova: str, steelyard: str, severity: str, option: str, said: str
) -> None:
    ((found_severity, found_option, finding),) = findings(nova, steelyard)
    assert (found_severity, found_option) == (severity, option)
    assert said in finding


SOFT_IN_BOTH = "weight_classes = nova.scheduler.weights.all_weighers, steelyard.nova.all_weighers\n"
ONLY_OURS = "weight_classes = nova.scheduler.weights.ram.RAMWeigher, steelyard.nova.all_weighers\n"


def test_soft_weighers_are_weighed_twice(findings: Any) -> None:
    twice = [option for _, option, _ in findings(GOOD + SOFT_IN_BOTH)]
    assert twice == [
        "[filter_scheduler] soft_affinity_weight_multiplier",
        "[filter_scheduler] soft_anti_affinity_weight_multiplier",
    ]
    off = "soft_affinity_weight_multiplier = 0.0\nsoft_anti_affinity_weight_multiplier = 0.0\n"
    assert findings(GOOD + SOFT_IN_BOTH + off) == []


def test_an_empty_list_of_weighers_names_none(findings: Any) -> None:
    assert findings(GOOD, "nova_weighers =") == []


def test_the_wish_of_groups_is_ignored(findings: Any) -> None:
    off = "soft_affinity_weight_multiplier = 0\nsoft_anti_affinity_weight_multiplier = 0\n"
    found = findings(GOOD + off)
    assert [option for _, option, _ in found] == [
        "[filter_scheduler] soft_affinity_weight_multiplier",
        "[filter_scheduler] soft_anti_affinity_weight_multiplier",
    ]
    assert "accepted and then ignored" in found[0][2]


def test_what_is_named_twice_is_found(findings: Any) -> None:
    found = findings(GOOD + "available_filters = steelyard.nova.all_filters\n")
    assert [finding for _, _, finding in found] == ["steelyard.nova.all_filters is named twice"]


def test_novas_own_weighers_are_missed(tmp_path: Any) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text(f"[filter_scheduler]\n{GOOD}weight_classes = steelyard.nova.all_weighers\n")
    (found,) = examine(NovaConf([str(path)], scheduler_only=True))
    assert "none of Nova's own weighers is named" in found.finding


def test_the_conductor_reads_another_file(tmp_path: Any, capsys: Any) -> None:
    path = tmp_path / "scheduler.conf"
    path.write_text(f"[filter_scheduler]\n{GOOD}{ONLY_OURS}")
    assert len(examine(NovaConf([str(path)]))) == 2
    assert examine(NovaConf([str(path)], scheduler_only=True)) == []
    assert cli.main(["doctor", "--config-file", str(path)]) == 1
    assert "--scheduler-only" in capsys.readouterr().out.replace("\n", "")
    assert cli.main(["doctor", "--config-file", str(path), "--scheduler-only"]) == 0


def test_the_worst_comes_first(findings: Any) -> None:
    enabled = (
        "AggregateInstanceTypeFilter, ComputeCapabilitiesFilter, AggregateInstanceExtraSpecsFilter"
    )
    found = findings(
        f"available_filters = steelyard.nova.all_filters\nenabled_filters = {enabled}", "x = 1"
    )
    assert [severity for severity, _, _ in found] == ["error", "warning", "warning", "note"]


def test_the_file_that_has_the_last_word_is_named(tmp_path: Any) -> None:
    first, second = tmp_path / "nova.conf", tmp_path / "more.conf"
    first.write_text("[filter_scheduler]\nenabled_filters = ComputeFilter\n")
    second.write_text("[filter_scheduler]\nenabled_filters = AggregateInstanceTypeFilter\n")
    (found,) = examine(NovaConf([str(first), str(second)]))
    assert found.file == "(not set)"
    assert found.option == "[filter_scheduler] available_filters"
    first.write_text("[filter_scheduler]\n" + BOTH)
    second.write_text("[filter_scheduler]\nenabled_filters = ComputeFilter\n")
    (found,) = examine(NovaConf([str(first), str(second)]))
    assert found.file == str(second)


@pytest.mark.parametrize(
    ("text", "status"),
    [
        (GOOD, 0),
        (GOOD.rstrip() + ", ComputeCapabilitiesFilter", 0),
        (BOTH + "enabled_filters = ComputeFilter", 1),
    ],
)
def test_the_command(tmp_path: Any, capsys: Any, text: str, status: int) -> None:
    path = tmp_path / "nova.conf"
    path.write_text(f"[filter_scheduler]\n{text}\n")
    assert cli.main(["doctor", "--config-file", str(path), "-f", "json"]) == status
    rows = json.loads(capsys.readouterr().out)
    assert {row["File"] for row in rows} <= {str(path)}
    assert bool(rows) is (text != GOOD)


def test_the_command_needs_a_file_that_is_there(capsys: Any, tmp_path: Any) -> None:
    assert cli.main(["doctor"]) == 2
    assert "--config-file is missing" in capsys.readouterr().err
    assert cli.main(["doctor", "--config-file", str(tmp_path / "nowhere.conf")]) == 2
    assert "nowhere.conf" in capsys.readouterr().err
