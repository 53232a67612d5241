"""Imports of optional dependencies."""

import contextlib
import importlib.metadata
import re
import shlex
import sys
from collections.abc import Iterator

from steelyard import errors


@contextlib.contextmanager
def required(extra: str, feature: str) -> Iterator[None]:
    """Raise MissingExtra if an import in the block fails because the extra is not installed.

    The original error is raised unchanged if the missing module is steelyard's own, or if all
    packages of the extra are installed: installing the extra would not help then.
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
    """Return the shell command that installs the extra's missing packages, "" if all are installed.

    The command names the packages instead of ``steelyard[extra]``, which pip cannot find in a
    package index if steelyard was installed from a checkout. It runs this interpreter, so it also
    works for a virtual environment that is not activated.
    """
    missing = list(_missing(extra))
    return shlex.join([sys.executable, "-m", "pip", "install", *missing]) if missing else ""


def _missing(extra: str) -> Iterator[str]:
    """Yield the requirements of the extra that are not installed in any version."""
    for line in importlib.metadata.requires("steelyard") or ():
        requirement, _, marker = line.partition(";")
        if marker.split() != ["extra", "==", f"'{extra}'"]:
            continue
        name = re.split(r"[^\w.-]", requirement, maxsplit=1)[0]
        try:
            importlib.metadata.distribution(name)
        except importlib.metadata.PackageNotFoundError:
            yield requirement.strip()
