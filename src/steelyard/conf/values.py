"""Values of options, read at each access."""

from collections.abc import Callable
from typing import Any

from oslo_config import cfg
from oslo_log import log as logging

from steelyard.conf.sources import BAD_VALUE, InvalidOption, invalid, refused, registered

LOG = logging.getLogger(__name__)


class Values:
    """The values of a group of options. Reading an invalid one raises InvalidOption."""

    def __init__(self, conf: cfg.ConfigOpts, group: str) -> None:
        self._conf = conf
        self._name = group

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_"):  # copy and pickle look up names before __init__ has run
            raise AttributeError(name)
        try:
            return getattr(self._conf[self._name], name)
        except BAD_VALUE as error:
            opt = self._opt(name)
            if opt is None:
                raise  # the option does not exist
            # Suppress oslo.config's error: it may contain a secret value.
            raise invalid(self._conf, self._name, opt, error) from None

    def _require(self, name: str, fault: str) -> None:
        """Raise InvalidOption with the fault as its reason, unless the fault is empty."""
        opt = self._opt(name)
        if fault and opt is not None:
            raise refused(self._conf, self._name, opt, fault)

    def _opt(self, name: str) -> cfg.Opt | None:
        for group, opt in registered(self._conf):
            if (group, opt.dest) == (self._name, name):
                return opt
        return None


class Latest:
    """The current value of an option that may change at run time.

    The constructor raises InvalidOption for an invalid value. Later, an invalid value is logged
    once, and the last valid one stays in force.
    """

    def __init__(
        self, group: Any, name: str, fault: Callable[[Any], str] = lambda value: ""
    ) -> None:
        """Read the option. ``fault`` returns why a value is invalid, or an empty text."""
        self._group = group
        self._name = name
        self._fault = fault
        self._good = self._read()
        self._last_error: tuple[str, str | None, str] | None = None

    def _read(self) -> Any:
        value = getattr(self._group, self._name)
        self._group._require(self._name, self._fault(value))
        return value

    def __call__(self) -> Any:
        try:
            self._good = self._read()
        except InvalidOption as error:
            parts = error.where, error.text, error.reason
            if parts != self._last_error:
                self._last_error = parts
                LOG.error("Invalid option ignored: %s; keeping %r", error, self._good)
        return self._good
