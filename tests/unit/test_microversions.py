"""The microversion that a client requests, with or without the name of the service."""

import pytest

from steelyard import microversions
from steelyard.errors import BadRequest, UnsupportedMicroversion
from steelyard.traits import CandidatesRequest


@pytest.mark.parametrize(
    ("text", "microversion"),
    [
        ("1.22", "1.22"),
        ("latest", "1.39"),
        ("placement 1.22", "1.22"),
        ("placement latest", "1.39"),
        (" Placement  1.22 ", "1.22"),
        ("compute 2.1, placement 1.22", "1.22"),
        ("placement 1.22, placement 1.10", "1.10"),
        ("compute 2.1", "1.0"),
        ("placement\t1.22", "1.22"),
        ("placement 1. 22", "1.22"),
        ("placement 1.022", "1.22"),
    ],
)
def test_requested_reads_the_value_of_the_header(text: str, microversion: str) -> None:
    assert microversions.requested(text) == microversion


@pytest.mark.parametrize("text", ["1.40", "0.9", "2.0", "placement 1.99", "placement -1.2"])
def test_requested_rejects_other_microversions_with_the_range(text: str) -> None:
    with pytest.raises(
        UnsupportedMicroversion, match=r"expected '1\.0' to '1\.39', or 'latest'"
    ) as e:
        microversions.requested(text)
    assert (e.value.status, e.value.oldest, e.value.newest) == (406, "1.0", "1.39")


@pytest.mark.parametrize("text", ["placement x", "placement 1", "1.x", ""])
def test_requested_rejects_malformed_text(text: str) -> None:
    with pytest.raises(BadRequest, match="invalid microversion") as caught:
        microversions.requested(text)
    assert caught.value.status == 400


def test_parse_reads_the_value_of_the_header() -> None:
    text = "resources=VCPU:1&required=A&required=!B"
    before = CandidatesRequest.parse(text, "placement 1.38")
    assert before == CandidatesRequest.parse(text, "1.38")
    assert before != CandidatesRequest.parse(text, "placement latest")
