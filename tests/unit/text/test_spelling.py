import pytest

from steelyard.text.spelling import near_miss, nearest, suggestion


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("True", "true"),
        ("ssd", "sdd"),
        ("ssd ", "ssd"),
        ("nvme-pool", "nvme_pool"),
        ("oracle", "orcale"),
        ("oracle", "oracl"),
        ("HW_CPU_X86_AVX512F", "HW_CPU_X86_AVX512_F"),
        ("rack-1", "rack1"),
        ("nvme", "nvem"),
        ("force_metadata_check", "force_metadta_check"),
    ],
)
def test_near_miss_accepts_possible_typos(one: str, other: str) -> None:
    assert near_miss(one, other)
    assert near_miss(other, one)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("ssd", "ssd"),
        ("gen1", "gen2"),
        ("rack1", "rack11"),
        ("a100", "v100"),
        ("cpu", "gpu"),
        ("io", "ip"),
        ("-", "_"),
        ("", ""),
        ("oracle", "orcael"),
        ("rack-a", "rack-b"),
        ("rack-a-north", "rack-b-north"),
        ("8.0", "80"),
        ("1.10", "11.0"),
        ("-1", "1"),
        ("10.1.11.1", "10.11.1.1"),
        ("r1-11", "r11-1"),
        ("C++", "C#"),
        ("का", "कि"),
        ("sata", "nvme"),
    ],
)
def test_near_miss_rejects_different_words(one: str, other: str) -> None:
    assert not near_miss(one, other)
    assert not near_miss(other, one)


def test_nearest_includes_every_near_miss() -> None:
    assert nearest("slq", ["placement", "sql"], likeness=0.8) == ["sql"]


def test_nearest_puts_near_misses_first() -> None:
    assert nearest("nvem", ["nvem2", "nvme"]) == ["nvme", "nvem2"]


def test_suggestion_lists_similar_names() -> None:
    assert suggestion("webb", ["web", "db"]) == "; did you mean 'web'?"
    assert suggestion("xyz", ["web", "db"]) == ""


def test_nearest_leaves_out_the_name_itself() -> None:
    assert nearest("nvme", ["nvme", "nvme2"]) == ["nvme2"]
    assert nearest("nvme", ["nvme"]) == []
