import pytest

from steelyard.desk.checks.spelling import near_miss


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
def test_what_is_nearly_the_same(one: str, other: str) -> None:
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
def test_what_is_something_else(one: str, other: str) -> None:
    assert not near_miss(one, other)
    assert not near_miss(other, one)
