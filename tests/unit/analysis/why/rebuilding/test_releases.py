"""The releases of Nova, as their newest microversions tell them."""

import pytest

from steelyard.analysis.why.rebuilding.releases import Release


@pytest.mark.parametrize(
    ("microversion", "release"),
    [
        ("", Release(28, 34)),
        ("2.79", Release(28, 28)),
        ("2.95", Release(28, 28)),
        ("2.96", Release(29, 30)),
        ("2.99", Release(29, 30)),
        ("2.100", Release(31, 32)),
        ("2.103", Release(33, 33)),
        ("2.104", Release(34, 34)),
        ("2.110", Release(34, 34)),
    ],
)
def test_release_is_told_by_the_microversion(microversion: str, release: Release) -> None:
    assert Release.of(microversion) == release


def test_uncertain_release_may_be_newer() -> None:
    release = Release(29, 30)
    assert release.is_surely(29)
    assert not release.is_surely(30)
    assert release.may_be(30)
    assert not release.may_be(31)
