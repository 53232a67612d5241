"""Reading of provider files: resource providers with the names and the values of Placement."""

import os
from collections.abc import Mapping
from typing import IO, Any

from steelyard import errors
from steelyard.cloud import garbage
from steelyard.cloud.files import entries, loading, provider_records, syntax
from steelyard.cloud.files.syntax import Mistake
from steelyard.traits import ProviderTrees, ResourceProvider

SECTION = "resource_providers"


def load(path: str | os.PathLike[str]) -> ProviderTrees[ResourceProvider]:
    """Return the resource providers in a YAML or JSON file.

    Raises InvalidCloud if the file is invalid.
    """
    found = loading.loaded(path, read)
    if isinstance(found, ProviderTrees):
        return found
    raise errors.InvalidCloud(
        f"missing key {SECTION!r}: this is a cloud file; expected a provider file", os.fspath(path)
    )


@garbage.paused()
def read(file: IO[str], name: str) -> ProviderTrees[ResourceProvider] | loading.Described:
    """Return the resource providers in the open file, or the cloud if it is a cloud file.

    ``name`` is the name of the file in errors. A name that ends in ``.json`` means JSON, any other
    YAML.
    """
    content = syntax.parsed(file, name)
    with syntax.placing_mistakes(file, name):
        if isinstance(content, dict) and SECTION in content:
            return _trees(content)
        return loading.described(content)


def _trees(content: Mapping[str, Any]) -> ProviderTrees[ResourceProvider]:
    records = entries.fields(content, (), required=(SECTION,))[SECTION]
    try:
        return ProviderTrees(provider_records.parse(records, (SECTION,)))
    except errors.InvalidProvider as error:
        raise Mistake(error.message, (SECTION,), text=error.text) from error
