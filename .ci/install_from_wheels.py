#!/usr/bin/env python3
"""Install packages with pip from a folder of wheels that several tox environments share.

The arguments are the folder and the arguments of ``pip install``. Reading the pages of an index
takes pip longer than installing, so only the first installation reads them: it collects the wheels
of all dependencies in pyproject.toml, and collects them again when these or the version of Python
change. The dependencies of each environment are resolved as usual, among these wheels.
"""

import fcntl
import pathlib
import subprocess
import sys
import tomllib

_PYPROJECT = pathlib.Path(__file__).parents[1] / "pyproject.toml"
# Other environments install these groups. The requirements of Nova hold back those of the others.
_OTHERS = {"nightly", "nova"}


def declared(text: str) -> list[str]:
    """Return all requirements of a pyproject.toml with this text, except those of other groups."""
    content = tomllib.loads(text)
    project = content["project"]
    groups = content["dependency-groups"]
    lists = [
        content["build-system"]["requires"],
        project["dependencies"],
        *project["optional-dependencies"].values(),
        *(group for name, group in groups.items() if name not in _OTHERS),
    ]
    # An included group is a table, and an extra that names other extras names the project.
    lines = (line for each in lists for line in each if isinstance(line, str))
    return sorted({line for line in lines if not line.startswith(f"{project['name']}[")})


def _pip(*arguments: str) -> None:
    subprocess.run([sys.executable, "-I", "-m", "pip", *arguments], check=True)


def _collect(folder: pathlib.Path) -> None:
    """Make the folder hold the wheels of the requirements for this version of Python."""
    version = f"# Python {sys.version_info.major}.{sys.version_info.minor}"
    requirements = "\n".join([version, *declared(_PYPROJECT.read_text()), ""])
    collected = folder / "requirements.txt"
    if collected.exists() and collected.read_text() == requirements:
        return
    new = folder / "new-requirements.txt"
    new.write_text(requirements)
    _pip("wheel", "--quiet", "--wheel-dir", str(folder), "--requirement", str(new))
    new.replace(collected)


def main(arguments: list[str]) -> int:
    """Install the packages and return the exit status."""
    folder = pathlib.Path(arguments[0])
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with (folder / "lock").open("w") as lock:
            fcntl.flock(lock, fcntl.LOCK_EX)
            _collect(folder)
        _pip("install", "--no-compile", "--no-index", "--find-links", str(folder), *arguments[1:])
    except subprocess.CalledProcessError as error:
        return int(error.returncode)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
