"""The contract of the store and of the client, on SQLite and on a real Placement."""

from collections.abc import Iterator
from typing import Any

import pytest

from steelyard.consumers import ConsumerStore, PlacementConsumers
from steelyard.consumers.base import Consumers
from steelyard.errors import BadRequest
from support.consumers import contract
from support.consumers.store_laws import P1, P2
from support.nova.consumers_in_both import placement_with_plenty


@pytest.fixture(scope="module")
def placement() -> Iterator[Any]:
    with placement_with_plenty([P1, P2]) as client:
        yield client


@pytest.fixture(params=["store", "client"])
def model(request: Any, placement: Any, store: ConsumerStore) -> Consumers:
    return store if request.param == "store" else PlacementConsumers(placement)


@pytest.mark.parametrize("check", contract.CONTRACT)
def test_model_obeys_the_contract(model: Consumers, check: Any) -> None:
    check(model)


def test_client_names_questions_that_placement_cannot_answer(placement: Any) -> None:
    client = PlacementConsumers(placement)
    for which in ({}, {"project": "p"}, {"type": "INSTANCE"}, {"project": "p", "type": "A"}):
        with pytest.raises(BadRequest, match="cannot list the consumers of a project or of a type"):
            client.consumers_of(**which)
    with pytest.raises(BadRequest, match="cannot count the consumers of all projects by type"):
        client.types()
    assert set(client.providers()) == {P1, P2}
