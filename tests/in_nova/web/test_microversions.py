"""The microversions that requests ask for, compared with microversion_parse, which Placement uses."""

import hypothesis.strategies as st
import microversion_parse
from hypothesis import example, given, settings

from steelyard import errors, microversions
from steelyard.web.microversions import check
from support.examples import examples

SUPPORTED = "1.38"
WORDS = ["placement", "Placement", "compute", "1.38", "1.39", "1.038", "+1.3_8", "latest", "1"]
SEPARATORS = [" ", "  ", ",", ", ", "\t", ".", "\xa0"]
HEADERS = st.lists(st.sampled_from([*WORDS, *SEPARATORS]) | st.text(max_size=3), max_size=9)


def theirs(header: str) -> int:
    """Return the status with which Placement would answer if it supported only 1.38."""
    sent = {"openstack-api-version": header}
    try:
        microversion_parse.extract_version(sent, "placement", [SUPPORTED])
    except ValueError:
        return 406
    except TypeError:
        return 400
    return 200


def ours(header: str) -> int:
    try:
        check(header, "placement", SUPPORTED)
    except errors.BadRequest as error:
        return error.status or 500
    return 200


@given(HEADERS.map("".join))
@settings(max_examples=examples(300))
@example("placement 1.38, placement 1.37")
@example("placement 1.38,compute 2.1")
@example("placement latest")
@example("placement  1. 38 ")
@example("placement 1.38.0")
def test_check_accepts_the_headers_that_placement_accepts(header: str) -> None:
    assert ours(header) == theirs(header)


@given(HEADERS.map("".join))
@settings(max_examples=examples(300))
@example("+1.3_8")
@example(" 1. 38 ")
@example("1.99999")
@example("1.\u0663\u0668")
def test_requested_reads_the_headers_that_placement_reads(text: str) -> None:
    header = f"placement {text},compute 2.1"
    sent = {"openstack-api-version": header}
    known = [f"1.{minor}" for minor in range(40)]
    expected: str | int
    try:
        expected = str(microversion_parse.extract_version(sent, "placement", known))
    except ValueError:
        expected = 406
    except TypeError:
        expected = 400
    assert requested(header) == expected


def requested(header: str) -> str | int | None:
    try:
        return microversions.requested(header)
    except errors.BadRequest as error:
        return error.status
