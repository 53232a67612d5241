"""Hosts by the traits that flavors require and forbid."""

from collections.abc import Collection, Iterable, Iterator

from oslo_config import cfg
from oslo_log import log as logging

from steelyard import errors
from steelyard.attributes import read
from steelyard.filters import base
from steelyard.once import Once
from steelyard.traits.flavors import flavor_traits
from steelyard.verdict import PASSED, Verdict

LOG = logging.getLogger(__name__)


class TraitsFilter(base.Filter):
    """Keeps hosts that have the traits a flavor requires, and none of those it forbids.

    They are in the flavor's ``trait:`` extra specs, as Nova and Placement read them. A flavor
    whose extra specs are malformed fits no host; the log says why, once.
    """

    run_filter_once_per_request = True
    in_nova = False  # Nova's hosts carry no traits: Placement does this there

    def __init__(self, conf: cfg.ConfigOpts | None = None) -> None:
        super().__init__(conf)
        self._first_time = Once()

    def examine(self, host: object, request: object) -> Verdict:
        return next(self.rejections(host, request), PASSED)

    def rejections(self, host: object, request: object) -> Iterator[Verdict]:
        try:
            query = flavor_traits(read(request, "flavor"))
        except errors.InvalidTrait as error:
            return iter((self._malformed(error),))
        return map(Verdict.rejected, query.unmet(_traits(host)))

    def filter_all(self, hosts: Iterable[base.HostT], request: object) -> Iterator[base.HostT]:
        """The hosts that pass, in their order; the flavor is read once."""
        try:
            query = flavor_traits(read(request, "flavor"))
        except errors.InvalidTrait as error:
            self._malformed(error)
            return iter(())
        return (host for host in hosts if query.satisfied_by(_traits(host)))

    def _malformed(self, error: errors.InvalidTrait) -> Verdict:
        why = str(error).partition("\n")[0]  # without the marker
        if self._first_time(why):
            LOG.warning("A flavor fits no host, for its traits are malformed: %s", why)
        return Verdict.rejected(f"the flavor's traits are malformed: {why}")


def _traits(host: object) -> frozenset[str]:
    value = read(host, "traits")
    if isinstance(value, str) or not isinstance(value, Collection):
        return frozenset()
    return frozenset(trait for trait in value if isinstance(trait, str))
