"""The usage callback for quotas: what limits count, and the requests that it sends."""

from typing import Any

import pytest

from steelyard.consumers import QuotaUsage
from steelyard.errors import BadRequest, InvalidConsumerType


class Noted:
    """A model that records what it is asked."""

    def __init__(self) -> None:
        self.asked: list[Any] = []

    def count(self, project_id: str, user_id: Any = None, consumer_type: str = "all") -> int:
        self.asked.append(("count", project_id, consumer_type))
        return 3

    def usages(self, *asked: Any) -> Any:
        self.asked.append(("usages", *asked))
        group = "all" if asked[2] == "all" else "INSTANCE"
        return {"usages": {group: {"consumer_count": 2, "VCPU": 5}}}


@pytest.mark.parametrize(
    ("names", "asked", "used"),
    [
        (["servers"], [("count", "p", "INSTANCE")], {"servers": 3}),
        (["servers", "vms"], [("count", "p", "INSTANCE")], {"servers": 3, "vms": 3}),
        (["class:VCPU"], [("usages", "p", None, "all")], {"class:VCPU": 5}),
        (["vms", "cores"], [("usages", "p", None, None)], {"vms": 2, "cores": 5}),
        ([], [], {}),
    ],
)
def test_usage_asks_the_model_once(names: Any, asked: Any, used: Any) -> None:
    model: Any = Noted()
    limits = {"servers": "INSTANCE", "vms": "INSTANCE", "cores": "class:VCPU"}
    assert QuotaUsage(model, limits)("p", names) == used
    assert model.asked == asked


@pytest.mark.parametrize(
    ("project", "names", "message"),
    [
        (None, ["servers"], "missing project: consumers are counted by project"),
        (
            "p",
            ["server"],
            "unknown limit 'server': the map has 'servers'; add it, or name a resource class, such "
            "as 'class:VCPU'; did you mean 'servers'?",
        ),
        ("p", ["class:vcpu"], "limit 'class:vcpu': invalid resource class 'vcpu': expected 1 to"),
        ("p", ["class:"], "limit 'class:': invalid resource class '': expected 1 to"),
    ],
)
def test_usage_of_unknown_limit_is_rejected(project: Any, names: Any, message: str) -> None:
    model: Any = Noted()
    with pytest.raises(BadRequest) as caught:
        QuotaUsage(model, {"servers": "INSTANCE"})(project, names)
    assert str(caught.value).startswith(message)
    assert model.asked == []


@pytest.mark.parametrize("what", ["instance", "all", "", None, ["INSTANCE"]])
def test_limit_of_an_invalid_type_is_rejected(what: Any) -> None:
    model: Any = Noted()
    with pytest.raises(InvalidConsumerType, match=r"^limit 'servers': invalid consumer type"):
        QuotaUsage(model, {"servers": what})
    with pytest.raises(BadRequest, match="limit 'cores': invalid resource class 'Vcpu'"):
        QuotaUsage(model, {"cores": "class:Vcpu"})
