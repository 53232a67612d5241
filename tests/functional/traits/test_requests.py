"""Requests read from the query strings that web frameworks have decoded."""

import warnings
from typing import Any

import pytest

from steelyard.traits import CandidatesRequest, ProvidersRequest

with warnings.catch_warnings():
    # WebOb imports modules that are deprecated.
    warnings.simplefilter("ignore")
    import webob

from werkzeug.test import EnvironBuilder
from werkzeug.wrappers import Request

TEXT = "resources=VCPU:1&required=A,!B&required=in:C,D"


@pytest.mark.parametrize("kind", [ProvidersRequest, CandidatesRequest])
def test_of_reads_the_items_of_a_webob_request(kind: Any) -> None:
    # WebOb returns an iterator.
    items = webob.Request.blank(f"/?{TEXT}").GET.items()
    assert iter(items) is items
    assert kind.of(items) == kind.parse(TEXT)


@pytest.mark.parametrize("kind", [ProvidersRequest, CandidatesRequest])
def test_of_reads_the_items_of_a_werkzeug_request(kind: Any) -> None:
    args = Request(EnvironBuilder("/", query_string=TEXT).get_environ()).args
    assert kind.of(args.items(multi=True)) == kind.parse(TEXT)
