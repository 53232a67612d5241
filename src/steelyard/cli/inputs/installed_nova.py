"""The code of a Nova that is installed in the same environment."""

import warnings
from collections.abc import Callable
from typing import TypeVar

from steelyard import errors
from steelyard.analysis.why.comparing import InstalledNova
from steelyard.scheduler.rules import NovaRules

CodeT = TypeVar("CodeT")


def rules() -> NovaRules | None:
    """Return the rules of the installed Nova; None without one.

    Raises BadRequest if Nova is installed, but cannot be used.
    """

    def load() -> NovaRules:
        from steelyard.nova.rules import InstalledRules  # noqa: PLC0415  (needs Nova)

        return InstalledRules()

    return _loaded(load)


def requests() -> InstalledNova | None:
    """Return the function that builds the requests of the installed Nova; None without one.

    Raises BadRequest if Nova is installed, but cannot be used.
    """

    def load() -> InstalledNova:
        from steelyard.nova.requests import sent_requests  # noqa: PLC0415  (needs Nova)

        return sent_requests

    return _loaded(load)


def _loaded(load: Callable[[], CodeT]) -> CodeT | None:
    try:
        with warnings.catch_warnings():
            # Suppress warnings about Nova's own code.
            warnings.simplefilter("ignore")
            return load()
    except Exception as error:  # importing Nova may raise anything
        if isinstance(error, ModuleNotFoundError) and error.name == "nova":
            return None
        raise errors.BadRequest(
            f"cannot use the installed Nova: {type(error).__name__}: {error}; repair it"
        ) from error
