"""A Placement and a store of consumers that are told and asked the same."""

import collections
import contextlib
import json
import re
import uuid
from collections.abc import Callable, Iterator
from typing import Any
from unittest import mock
from urllib.parse import quote, urlencode

import placements
from placement import deploy

from steelyard.consumers import ConsumerStore
from steelyard.errors import SteelyardError

PROVIDERS = [f"1000000{n}-abcd-4000-8000-00000000000f" for n in (1, 2)]
LATEST = placements.at("1.39")
JSON = {**LATEST, "Content-Type": "application/json"}
UNTYPED = placements.at("1.37")

# What the store refuses at once, for its tables have no room for it, Placement refuses only after it
# has looked at generations: there is no such class, or not as much of it, or no such generation.
_NO_ROOM = re.compile(
    r"is (greater than the maximum|less than the minimum) of -?214748364\d$"
    r"|\.resources: '\w+' is too long$"
    r"|\.resources: '\w+\\n' has more than one line$"
)


@contextlib.contextmanager
def placement_with_plenty() -> Iterator[Any]:
    """With two providers that have more than anybody asks for."""
    # Each request would look for migrations, which takes longer than to answer it.
    with placements.placement() as client, mock.patch.object(deploy, "update_database"):
        client.additional_headers["X-Roles"] = "admin,service"  # who may reshape
        for provider in PROVIDERS:
            made = {"name": provider, "uuid": provider}
            assert client.post("/resource_providers", json=made, headers=LATEST).status_code == 200
            inventories = {name: {"total": 10**9} for name in ("VCPU", "MEMORY_MB", "DISK_GB")}
            body = {"inventories": inventories, "resource_provider_generation": 0}
            url = f"/resource_providers/{provider}/inventories"
            assert client.put(url, json=body, headers=LATEST).status_code == 200
        yield client


def store_in(directory: Any) -> ConsumerStore:
    made = ConsumerStore(f"sqlite:///{directory}/consumers.db")
    made.upgrade()
    return made


def new() -> str:
    """The UUID of a consumer that nobody has heard of."""
    return str(uuid.uuid4())


def body(
    generation: int | None = None,
    kind: str = "INSTANCE",
    *,
    project: str = "p",
    user: str = "u",
    one: Any = None,
    two: Any = None,
) -> dict[str, Any]:
    """A write; what it takes from provider one, and from provider two."""
    taken = zip(PROVIDERS, (one, two), strict=True)
    return {
        "allocations": {provider: {"resources": said} for provider, said in taken if said},
        "project_id": project,
        "user_id": user,
        "consumer_generation": generation,
        "consumer_type": kind,
    }


def without(said: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in said.items() if name not in names}


def status(ask: Callable[[], Any]) -> tuple[int, Any]:
    """The status of the store's answer, and the answer, or what is wrong."""
    try:
        found = ask()
    except SteelyardError as error:
        return error.status or 500, str(error)
    return (204 if found is None else 200), found


class Both:
    """Each question goes to both, and the answers are equal.

    A difference that has a name is said by the two statuses, Placement's first.
    """

    def __init__(self, placement: Any, store: ConsumerStore) -> None:
        self.placement = placement
        self.store = store
        self.seen: collections.Counter[tuple[str, int | str]] = collections.Counter()

    def put(self, consumer: str, said: Any, named: tuple[int, int] | None = None) -> int:
        theirs = self._ask("PUT", f"/allocations/{quote(consumer)}", said)
        return self._compare(
            "put", theirs, lambda: self.store.put_allocations(consumer, said), named
        )

    def post(self, said: Any, named: tuple[int, int] | None = None) -> int:
        theirs = self._ask("POST", "/allocations", said)
        return self._compare("post", theirs, lambda: self.store.post_allocations(said), named)

    def reshape(self, said: Any, named: tuple[int, int] | None = None) -> int:
        """The inventories stay as they are."""
        inventories = {PROVIDERS[0]: self.inventories(PROVIDERS[0])}
        whole = {"inventories": inventories, "allocations": said}
        theirs = self._ask("POST", "/reshaper", whole)
        return self._compare("reshape", theirs, lambda: self.store.reshape(said), named)

    def delete(self, consumer: str, named: tuple[int, int] | None = None) -> int:
        theirs = self._ask("DELETE", f"/allocations/{quote(consumer)}")
        return self._compare(
            "delete", theirs, lambda: self.store.delete_allocations(consumer), named
        )

    def get(self, consumer: str) -> Any:
        theirs = self._ask("GET", f"/allocations/{quote(consumer)}").json()
        for provider in theirs["allocations"].values():
            del provider["generation"]  # the store has no providers, and no generations of them
        if theirs.get("consumer_type") == "unknown":
            theirs["consumer_type"] = "UNKNOWN"
        found = self.store.get_allocations(consumer)
        assert found == theirs
        self.seen["get", "something" if found["allocations"] else "nothing"] += 1
        return found

    def usages(
        self,
        project: Any,
        user: Any = None,
        kind: Any = None,
        named: tuple[int, int] | None = None,
    ) -> Any:
        """Both say the same; None if they refuse to."""
        # What the store calls UNKNOWN is nothing in the tables of Placement.
        return self.usages_of(project, user, kind, theirs=kind, named=named)

    def usages_of(
        self,
        project: Any,
        user: Any,
        kind: Any,
        theirs: Any,
        named: tuple[int, int] | None = None,
    ) -> Any:
        """The type has another name in Placement."""
        asked = {"project_id": project, "user_id": user, "consumer_type": theirs}
        said = {key: value for key, value in asked.items() if value is not None}
        answer = self._ask("GET", f"/usages?{urlencode(said, errors='surrogatepass')}")

        def ask() -> Any:
            return self.store.usages(project, user, kind)

        if self._compare("usages", answer, ask, named) != 200:
            return None
        found = ask()
        used = {
            "UNKNOWN" if name == "unknown" else name: group
            for name, group in answer.json()["usages"].items()
        }
        assert found == {"usages": used}, asked
        return found["usages"]

    def inventories(self, provider: str) -> Any:
        return self._ask("GET", f"/resource_providers/{provider}/inventories").json()

    def put_untyped(self, consumer: str, said: Any) -> None:
        """As it was done before there were types."""
        old = without(said, "consumer_type")
        answer = self.placement.put(f"/allocations/{consumer}", json=old, headers=UNTYPED)
        assert answer.status_code == 204, answer.text
        self.store.put_allocations(consumer, {**said, "consumer_type": "UNKNOWN"})

    def _ask(self, method: str, url: str, said: Any = ...) -> Any:
        more: dict[str, Any] = {} if said is ... else {"data": json.dumps(said)}
        return self.placement.request(url, method, headers=JSON, raise_exc=False, **more)

    def _compare(
        self, operation: str, theirs: Any, ask: Callable[[], Any], named: tuple[int, int] | None
    ) -> int:
        ours, found = status(ask)
        if named:
            assert (theirs.status_code, ours) == named, (theirs.text, found)
        elif ours == 400 and _NO_ROOM.search(found):
            assert theirs.status_code in (400, 409), (theirs.text, found)
        else:
            assert theirs.status_code == ours, (theirs.text, found)
        self.seen[operation, ours] += 1
        return ours
