"""The contract of consumer models."""

import inspect

import pytest

from steelyard import plugins
from steelyard.consumers import ConsumerStore, PlacementConsumers
from steelyard.consumers.base import CONSUMER_MODELS, ConsumerModel, Consumers

# With this annotation, mypy checks the types of arguments and results.
MODELS: list[type[ConsumerModel]] = [ConsumerStore, PlacementConsumers]


def test_installed_consumer_models_are_checked_by_mypy() -> None:
    installed = plugins.installed(CONSUMER_MODELS)
    names = [each.name for each in installed if each.distribution.startswith("steelyard ")]
    loaded = plugins.load_classes(CONSUMER_MODELS, names)
    assert set(loaded.values()) == set(MODELS)


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("method", ["post_allocations", "get_allocations", "usages", "count"])
def test_consumer_model_has_the_signatures_of_the_contract(
    model: type[ConsumerModel], method: str
) -> None:
    expected = inspect.signature(getattr(ConsumerModel, method))
    assert inspect.signature(getattr(model, method)) == expected


@pytest.mark.parametrize("model", [ConsumerStore, PlacementConsumers])
@pytest.mark.parametrize("method", [name for name in vars(Consumers) if not name.startswith("_")])
def test_store_and_client_have_the_signatures_of_the_contract(
    model: type[Consumers], method: str
) -> None:
    assert issubclass(model, Consumers)
    expected = inspect.signature(getattr(Consumers, method))
    assert inspect.signature(getattr(model, method)) == expected


def test_consumer_model_without_a_method_is_rejected() -> None:
    class Half:
        def usages(self) -> None:
            """Return nothing."""

    assert CONSUMER_MODELS.fault(ConsumerStore) == ""
    assert CONSUMER_MODELS.fault(Half) == "has no method post_allocations, get_allocations, count"
