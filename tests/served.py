"""The command while it serves."""

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
    """The process, and what it has said first."""

    process: subprocess.Popen[str]
    said: str

    @property
    def port(self) -> int:
        return int(re.findall(r":(\d+)", self.said)[-1])

    @property
    def url(self) -> str:
        return str(re.findall(r"http://\S+?(?=;)", self.said)[-1]) + "/"


@contextlib.contextmanager
def serving(*argv: str, cwd: str | os.PathLike[str] | None = None) -> Iterator[Served]:
    """The command, at any free port, once it has said so; it is ended with the block."""
    process = subprocess.Popen(
        [*COMMAND, *argv, "--port", "0"],
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
