"""A Placement and a consumer store that get the same requests."""

import collections
import contextlib
import json
import re
import uuid
from collections.abc import Callable, Iterator, Sequence
from typing import Any
from urllib.parse import quote, urlencode

from steelyard.consumers import ConsumerStore
from steelyard.errors import SteelyardError
from support.nova import placements

PROVIDERS = [f"1000000{n}-abcd-4000-8000-00000000000f" for n in (1, 2)]
DASHLESS = PROVIDERS[0].replace("-", "")
# Variants of a UUID, some of them valid.
SPELLINGS: dict[str, Callable[[str], str]] = {
    "as it is": lambda uuid: uuid,
    "dashless": lambda uuid: uuid.replace("-", ""),
    "braces": lambda uuid: f"{{{uuid}}}",
    "urn": lambda uuid: f"urn:uuid:{uuid}",
    "short": lambda uuid: uuid[:-1],
    "sign": lambda uuid: f"+{uuid[1:]}",
    "prefix": lambda uuid: f"0x{uuid[2:]}",
    "underscore": lambda uuid: f"{uuid[0]}_{uuid[2:]}",
    "digit of another script": lambda uuid: f"{uuid[:-1]}\N{ARABIC-INDIC DIGIT ONE}",
    "space": lambda uuid: f"{uuid[:-1]} ",
    "words": lambda uuid: "not a UUID",
}
LATEST = placements.at("1.39")
JSON = {**LATEST, "Content-Type": "application/json"}
UNTYPED = placements.at("1.37")

# The store rejects values that do not fit its columns at once. Placement rejects them only after it
# has compared generations, as unknown classes, as missing capacity or as wrong generations.
_NO_ROOM = re.compile(
    r"is (greater than the maximum|less than the minimum) of -?214748364\d$"
    r"|\.resources: '\w+' is too long$"
    r"|\.resources: '\w+\\n' contains a newline$"
)


@contextlib.contextmanager
def placement_with_plenty(providers: Sequence[str] = PROVIDERS) -> Iterator[Any]:
    """Yield a client of a Placement with these providers, which have ample capacity."""
    with placements.placement() as client:
        client.additional_headers["X-Roles"] = "admin,service"  # the role that may reshape
        for provider in providers:
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


def spelled(uuid: str, spelling: str) -> str:
    """Return the UUID in that spelling."""
    return SPELLINGS[spelling](uuid)


def new() -> str:
    """Return the UUID of a new consumer."""
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
    """Return the body of a write with these resources of provider one and two."""
    taken = zip(PROVIDERS, (one, two), strict=True)
    return {
        "allocations": {provider: {"resources": sent} for provider, sent in taken if sent},
        "project_id": project,
        "user_id": user,
        "consumer_generation": generation,
        "consumer_type": kind,
    }


def without(sent: dict[str, Any], *names: str) -> dict[str, Any]:
    return {name: value for name, value in sent.items() if name not in names}


def status(ask: Callable[[], Any]) -> tuple[int, Any]:
    """Return the status and the answer of the store, or the status and the message of its error."""
    try:
        found = ask()
    except SteelyardError as error:
        return error.status or 500, str(error)
    return (204 if found is None else 200), found


class Both:
    """A Placement and a store that get the same requests and must give the same answers.

    ``named`` has the two statuses of an intended difference, Placement's first.
    """

    def __init__(self, placement: Any, store: ConsumerStore) -> None:
        self.placement = placement
        self.store = store
        self.seen: collections.Counter[tuple[str, int | str]] = collections.Counter()

    def put(self, consumer: str, sent: Any, named: tuple[int, int] | None = None) -> int:
        theirs = self._ask("PUT", f"/allocations/{quote(consumer)}", sent)
        return self._compare(
            "put", theirs, lambda: self.store.put_allocations(consumer, sent), named
        )

    def post(self, sent: Any, named: tuple[int, int] | None = None) -> int:
        theirs = self._ask("POST", "/allocations", sent)
        return self._compare("post", theirs, lambda: self.store.post_allocations(sent), named)

    def reshape(self, sent: Any, named: tuple[int, int] | None = None) -> int:
        """Send a reshape that does not change the inventories; the store has none."""
        inventories = {PROVIDERS[0]: self.inventories(PROVIDERS[0])}
        theirs = self._ask("POST", "/reshaper", {"inventories": inventories, "allocations": sent})
        ours = {"allocations": sent}
        return self._compare("reshape", theirs, lambda: self.store.reshape(ours), named)

    def delete(self, consumer: str, named: tuple[int, int] | None = None) -> int:
        theirs = self._ask("DELETE", f"/allocations/{quote(consumer)}")
        return self._compare(
            "delete", theirs, lambda: self.store.delete_allocations(consumer), named
        )

    def get(self, consumer: str) -> Any:
        theirs = self._ask("GET", f"/allocations/{quote(consumer)}").json()
        for provider in theirs["allocations"].values():
            del provider["generation"]  # the store has no generations of providers
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
        """Return the usages, or None if both reject the request."""
        # Placement's tables have no type in place of the store's UNKNOWN.
        return self.usages_of(project, user, kind, theirs=kind, named=named)

    def usages_of(
        self,
        project: Any,
        user: Any,
        kind: Any,
        theirs: Any,
        named: tuple[int, int] | None = None,
    ) -> Any:
        """Return the usages of a type that Placement calls ``theirs``."""
        asked = {"project_id": project, "user_id": user, "consumer_type": theirs}
        sent = {key: value for key, value in asked.items() if value is not None}
        answer = self._ask("GET", f"/usages?{urlencode(sent, errors='surrogatepass')}")

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

    def put_untyped(self, consumer: str, sent: Any) -> None:
        """Write with a microversion that has no consumer types."""
        old = without(sent, "consumer_type")
        answer = self.placement.put(f"/allocations/{consumer}", json=old, headers=UNTYPED)
        assert answer.status_code == 204, answer.text
        self.store.put_allocations(consumer, {**sent, "consumer_type": "UNKNOWN"})

    def _ask(self, method: str, url: str, sent: Any = ...) -> Any:
        more: dict[str, Any] = {} if sent is ... else {"data": json.dumps(sent)}
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
