"""The systemd units of the tag service: their commands, as systemd would start them."""

import re
import shlex
from collections.abc import Mapping

from support.repository import EXAMPLES

FOLDER = EXAMPLES / "systemd"
ENVIRONMENT = "steelyard-tags.env"
UNITS = {path.name: path.read_text() for path in sorted(FOLDER.iterdir())}
PROGRAMS = "/opt/steelyard/.venv/bin/"
CONFIGURATION = "/etc/steelyard/steelyard.conf"


def setting(unit: str, name: str) -> str:
    """Return the value of a setting that the unit has once."""
    (value,) = re.findall(rf"^{name}=(.*)$", UNITS[unit], re.MULTILINE)
    return str(value)


def environment(unit: str, run: str = "/run") -> dict[str, str]:
    """Return the environment that the unit sets. ``run`` is the folder for ``%t``."""
    lines = [setting(unit, "Environment")] if "\nEnvironment=" in UNITS[unit] else []
    if "\nEnvironmentFile=" in UNITS[unit]:
        assert setting(unit, "EnvironmentFile") == "/etc/default/steelyard-tags"
        lines += [line for line in UNITS[ENVIRONMENT].splitlines() if not line.startswith("#")]
    return {
        name: value.replace("%t", run) for name, _, value in (line.partition("=") for line in lines)
    }


def command(unit: str, variables: Mapping[str, str], instance: str = "") -> list[str]:
    """Return the program and the arguments that the unit starts, without the program's folder."""
    line = setting(unit, "ExecStart").replace("%i", instance)
    line = re.sub(r"\$\{(\w+)\}", lambda found: variables[found[1]], line)
    program, *arguments = shlex.split(line)
    assert program.startswith(PROGRAMS)
    return [program.removeprefix(PROGRAMS), *arguments]
