"""Imports of the packages that extras bring."""

import contextlib
import importlib.metadata
import re
import shlex
import sys
from collections.abc import Iterator

from steelyard import errors


@contextlib.contextmanager
def required(extra: str, feature: str) -> Iterator[None]:
    """Raise MissingExtra where an import in the block fails because the extra is not installed.

    The error passes unchanged if the missing module is steelyard's own, or if all packages of the
    extra are installed: then the installation is broken, and another command would not help.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        command = install_command(extra)
        if not command or str(error.name).partition(".")[0] == "steelyard":
            raise
        raise errors.MissingExtra(
            f"{feature} needs {error.name!r}: the extra {extra!r} is not installed; run {command}"
        ) from error


def install_command(extra: str) -> str:
    """Return the shell command that installs the missing packages of the extra, "" if none is.

    It names the packages, not steelyard[extra]: no index has that for an installation from a
    checkout. It calls this interpreter, so it reaches a virtual environment that is not activated.
    """
    missing = list(_missing(extra))
    return shlex.join([sys.executable, "-m", "pip", "install", *missing]) if missing else ""


def _missing(extra: str) -> Iterator[str]:
    """Yield the requirements of the extra of which no version is installed."""
    for line in importlib.metadata.requires("steelyard") or ():
        requirement, _, marker = line.partition(";")
        if marker.split() != ["extra", "==", f"'{extra}'"]:
            continue
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        try:
            importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            yield requirement.strip()
