"""A real Nova with a real Placement, in which a test seeds the causes of failures.

``steelyard why`` answers over HTTP.
"""

import contextlib
import dataclasses
import io
import warnings
from collections.abc import Callable
from typing import Any
from unittest import mock

from support.nova import clouds  # before the rest of Nova; see there

# isort: split
from steelyard import cli
from steelyard.cli.cloud import why
from support.nova.looks import Looks

FILTERS = (
    *clouds.NOVAS_FILTERS,
    "ServerGroupAffinityFilter",
    "ServerGroupAntiAffinityFilter",
    "AggregateInstanceTypeFilter",
)


@dataclasses.dataclass(frozen=True)
class Mend:
    """The mending of one cause, and the way back."""

    do: Callable[[], Any]
    undo: Callable[[], Any]


class Seeded(Looks):
    """A cloud whose faults are undone at the end of each test.

    ``wanted`` describes the server that fails: extra specs, and names that ``booted`` knows.
    """

    def configure(self) -> None:
        super().configure()
        clouds.CONF.set_override("enabled_filters", list(FILTERS), group="filter_scheduler")

    def prepare(self) -> None:
        super().prepare()
        self.novas_options: dict[str, str] = {}
        self.wanted: dict[str, Any] = {"memory_mb": 512}
        for host in self.hosts:
            provider = self.provider(host)
            self.addCleanup(self._set_provider_traits, provider, self.traits(host))
            self.addCleanup(self._restore, provider, self.inventories(host))

    def inventories(self, host: str) -> dict[str, Any]:
        found: dict[str, Any] = self._get_provider_inventory(self.provider(host))
        return found

    def _restore(self, provider: str, inventories: dict[str, Any]) -> None:
        url = f"/resource_providers/{provider}/inventories"
        generation = self.placement.get(url).body["resource_provider_generation"]
        body = {"resource_provider_generation": generation, "inventories": inventories}
        answer = self.placement.put(url, body, version="1.26")  # may reserve everything
        assert answer.status == 200, answer.body

    def change_inventory(self, host: str, name: str, **fields: int) -> None:
        found = self.inventories(host)
        found[name] = {**found[name], **fields}
        self._restore(self.provider(host), found)

    def exhaust(self, name: str, *hosts: str) -> Mend:
        """Leave nothing of a resource class on the hosts; the mending restores it on the first."""
        before = self.inventories(hosts[0])[name]
        for host in hosts:
            self.change_inventory(host, name, reserved=before["total"])
        return Mend(
            lambda: self.change_inventory(hosts[0], name, reserved=before["reserved"]),
            lambda: self.change_inventory(hosts[0], name, reserved=before["total"]),
        )

    def add_trait(self, host: str, trait: str) -> None:
        self._create_trait(trait)
        self._set_provider_traits(self.provider(host), sorted({*self.traits(host), trait}))

    def remove_trait(self, host: str, trait: str) -> None:
        kept = sorted(each for each in self.traits(host) if each != trait)
        self._set_provider_traits(self.provider(host), kept)

    def asking_for(self, **specs: str) -> Mend:
        """Return the mending that requests these extra specs instead."""
        before = dict(self.wanted)

        def undo() -> None:
            self.wanted = before

        return Mend(lambda: self.wanted.update(specs), undo)

    def booted(self, **more: Any) -> dict[str, Any]:
        """Boot the wanted server, and return it when it is active or failed."""
        wanted = {"host": None, "group": None, **self.wanted, **more}
        named = {name: wanted.pop(name) for name in ("host", "group", "memory_mb")}
        others = ("availability_zone", "flavorRef", "imageRef", "name")
        body = {name: wanted.pop(name) for name in others if name in wanted}
        asked = self.asked_for(named["host"], named["group"], named["memory_mb"], wanted, **body)
        return self.settled(asked["id"])

    def run_why(self, *argv: str) -> tuple[int, str, str]:
        """Run the command with Nova's configuration; return its status, output and errors."""
        lines = [f"[filter_scheduler]\nenabled_filters = {','.join(FILTERS)}\n[scheduler]"]
        lines += [f"{name} = {value}" for name, value in self.novas_options.items()]
        path = self.directory / "nova.conf"
        path.write_text("\n".join(lines))
        out, err = io.StringIO(), io.StringIO()
        with (
            # It would override the options of the Nova that runs in this process.
            mock.patch("steelyard.cli.cloud.why._installed_nova", why._Nova),
            contextlib.redirect_stdout(out),
            contextlib.redirect_stderr(err),
            warnings.catch_warnings(),
        ):
            warnings.simplefilter("ignore")  # an old Nova, in the same process, has many
            status = cli.main(["--config-file", str(path), "why", *argv, "--os-cloud", "admin"])
        return status, out.getvalue(), err.getvalue()
