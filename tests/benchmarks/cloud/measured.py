"""Measured reads and changes of one cloud file, each for a process of its own.

The imports are inside the functions, so that the peak memory has only what the function needs.
"""

import json
import pathlib
import re
import sys
import time
from collections.abc import Callable


def json_load(path: str) -> Callable[[], object]:
    """Return the floor of JSON: ``json.load``."""

    def run() -> object:
        with open(path, encoding="utf-8") as file:
            return json.load(file)

    return run


def yaml_load(path: str) -> Callable[[], object]:
    """Return the floor of YAML: PyYAML's loader of plain text in C."""
    import yaml

    def run() -> object:
        with open(path, encoding="utf-8") as file:
            return yaml.load(file.read(), yaml.CBaseLoader)

    return run


def load(path: str) -> Callable[[], object]:
    """Return the reading of the cloud by a command."""
    from steelyard.cli.inputs import clouds

    return lambda: clouds.read(path)


def change(path: str) -> Callable[[], object]:
    """Return the move of a server in the file, without the choice of a host."""
    from steelyard.cli.inputs import clouds

    def run() -> object:
        saved = clouds.saved(path)
        server = next(iter(saved.cloud.servers.values()))
        hosts = list(saved.cloud.hosts)
        saved.save(saved.cloud.with_moved(server, hosts[-1]))
        return saved

    return run


ACTIONS = {each.__name__: each for each in (json_load, yaml_load, load, change)}


def main() -> None:
    """Print the seconds of CPU time that the action took, and the process's peak memory in MiB, as JSON."""
    name, path = sys.argv[1:]
    run = ACTIONS[name](path)
    start = time.process_time()
    kept = run()
    taken = time.process_time() - start
    assert kept is not None
    json.dump([taken, peak_memory()], sys.stdout)


def peak_memory() -> float:
    """Return the peak of this process; ``ru_maxrss`` would have the parent's memory in it."""
    found = re.search(r"VmHWM:\s+(\d+) kB", pathlib.Path("/proc/self/status").read_text())
    assert found
    return int(found[1]) / 1024


if __name__ == "__main__":
    main()
