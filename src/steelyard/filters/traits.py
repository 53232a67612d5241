"""A filter for hosts with the traits that flavors require."""

from collections.abc import Collection, Iterator, Sequence

from oslo_config import cfg
from oslo_log import log as logging

from steelyard import errors
from steelyard._once import Once
from steelyard.attributes import read, read_all
from steelyard.filters import base
from steelyard.traits.flavors import flavor_traits
from steelyard.verdict import Verdict

__all__ = ["TraitsFilter"]

LOG = logging.getLogger(__name__)


class TraitsFilter(base.Filter):
    """A filter for hosts that have the traits a flavor requires, and none of those it forbids.

    The traits are in the flavor's ``trait:`` extra specs, as Nova and Placement read them. A flavor
    with malformed trait extra specs fits no host; the log says why, once for each error.
    """

    run_filter_once_per_request = True
    host_local = True
    in_nova = False  # hosts in Nova have no traits; Placement does this

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        self._first_time = Once()

    def by_kind(self, request: object) -> bool:
        return True

    def judge(self, request: object) -> base.Rejections:
        try:
            query = flavor_traits(read(request, "flavor"))
        except errors.InvalidTrait as error:
            malformed = (self._malformed(error),)
            return lambda host: malformed

        def rejections(host: object) -> Iterator[Verdict]:
            for text, trait in query.unmet_traits(_traits(host)):
                yield Verdict.rejected(text, key=f"trait:{trait}")

        return rejections

    def passing(self, hosts: Sequence[object], request: object) -> list[bool]:
        """Return whether each host passes, without the text of a reason."""
        try:
            query = flavor_traits(read(request, "flavor"))
        except errors.InvalidTrait as error:
            self._malformed(error)
            return [False] * len(hosts)
        found = read_all(hosts, "traits")
        if set(map(type, found)) <= {frozenset}:
            satisfied = {traits: query.satisfied_by(_names(traits)) for traits in set(found)}
            return list(map(satisfied.__getitem__, found))
        return [query.satisfied_by(_names(traits)) for traits in found]

    def _malformed(self, error: errors.InvalidTrait) -> Verdict:
        if self._first_time(error.message):
            LOG.warning(
                "A flavor fits no host, because its traits are malformed: %s", error.message
            )
        return Verdict.rejected(f"the flavor's traits are malformed: {error.message}")


def _traits(host: object) -> frozenset[str]:
    return _names(read(host, "traits"))


def _names(value: object) -> frozenset[str]:
    """Return the names among the traits of a host; none if they are not a collection."""
    if isinstance(value, str) or not isinstance(value, Collection):
        return frozenset()
    return frozenset(trait for trait in value if isinstance(trait, str))
