"""A serving command in its own process."""

import contextlib
import dataclasses
import os
import re
import subprocess
import sys
from collections.abc import Iterator

COMMAND = [sys.executable, "-c", "from steelyard import cli; raise SystemExit(cli.main())"]


@dataclasses.dataclass
class Served:
    """The process and its first line of output."""

    process: subprocess.Popen[str]
    said: str

    @property
    def port(self) -> int:
        return int(re.findall(r":(\d+)", self.said)[-1])

    @property
    def url(self) -> str:
        return str(re.findall(r"http://\S+?(?=;)", self.said)[-1]) + "/"


@contextlib.contextmanager
def serving(
    *argv: str,
    cwd: str | os.PathLike[str] | None = None,
    files: tuple[int, int] | None = None,
) -> Iterator[Served]:
    """Run the command on a free port until the block ends, and yield it once it listens.

    ``files`` are its soft and hard limits of open files.
    """
    limited = [] if files is None else ["prlimit", f"--nofile={files[0]}:{files[1]}"]
    process = subprocess.Popen(
        [*limited, *COMMAND, *argv, "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
    )
    assert process.stdout is not None
    with process, contextlib.ExitStack() as ending:
        ending.callback(process.kill)
        said = process.stdout.readline()
        assert "Ctrl-C" in said, process.communicate()
        yield Served(process, said)
