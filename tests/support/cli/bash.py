"""Completion in a real bash: the candidates of a command line, and lines typed at a terminal."""

import os
import pathlib
import pty
import select
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Sequence

_BASH = shutil.which("bash")
_PROGRAM = f"""\
#!/bin/sh
exec {shlex.quote(sys.executable)} -c \
'from steelyard import cli; raise SystemExit(cli.main())' "$@"
"""
# Bash has compopt only while readline completes, so its call is printed.
_CALL = """\
compopt() { echo "compopt $*"; }
_steelyard "${COMP_WORDS[0]}" "$replaced" "${COMP_WORDS[COMP_CWORD-1]}"
((${#COMPREPLY[@]} == 0)) || printf '%s\\n' "${COMPREPLY[@]}"
"""
_SECONDS = 60


def bash() -> str:
    """Return the path of bash; the tests of completion need it."""
    assert _BASH, "bash is missing: install it, completion is tested in a real one"
    return _BASH


class Shell:
    """Bash with the script of ``steelyard complete``, in a folder of its own."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.program = folder / "bin/steelyard"
        self.program.parent.mkdir()
        self.program.write_text(_PROGRAM)
        self.program.chmod(0o755)
        self.environment = {
            **os.environ,
            "PATH": f"{self.program.parent}:{os.environ['PATH']}",
            "LC_ALL": "C.UTF-8",
            "HOME": str(folder),
            "TERM": "dumb",
            "HISTFILE": "",
        }
        self._script = folder / "complete.bash"
        self._script.write_text(self.run("steelyard complete")[0])

    def run(self, commands: str) -> tuple[str, str]:
        """Return the standard output and the standard error of the commands."""
        done = subprocess.run(
            [bash(), "--norc", "--noprofile", "-c", commands],
            cwd=self.folder,
            env=self.environment,
            capture_output=True,
            text=True,
            check=True,
            timeout=_SECONDS,
        )
        return done.stdout, done.stderr

    def completions(self, *words: str, line: str | None = None, setup: str = "") -> list[str]:
        """Return the candidates for the last of the words, which follow ``steelyard``.

        ``line`` is the command line, if the words are pieces of it. Nothing may be written to
        standard error.
        """
        # Readline keeps a separator or a quote before the replaced text.
        replaced = words[-1].lstrip("=:'\"")
        pieces = ["steelyard", *words]
        commands = [
            f". {shlex.quote(str(self._script))}",
            setup,
            f"COMP_WORDS=({shlex.join(pieces)})",
            f"COMP_CWORD={len(words)}",
            f"COMP_LINE={shlex.quote(' '.join(pieces) if line is None else line)}",
            "COMP_POINT=${#COMP_LINE}",
            f"replaced={shlex.quote(replaced)}",
            _CALL,
        ]
        out, err = self.run("\n".join(commands))
        assert err == ""
        return out.splitlines()

    def typed(self, keys: str) -> list[str]:
        """Return the arguments of a command line after these keys at a terminal."""
        result = self.folder / "arguments"
        result.unlink(missing_ok=True)
        setup = [
            f". {shlex.quote(str(self._script))}",
            f"arguments() {{ printf '%s\\0' \"$@\" > {shlex.quote(str(result))}.new; "
            f"mv {shlex.quote(str(result))}.new {shlex.quote(str(result))}; }}",
            "bind 'set enable-bracketed-paste off' 2> /dev/null",
        ]
        (self.folder / "setup.bash").write_text("\n".join(setup))
        # Control-A moves to the start, where the function replaces the command.
        _type(
            [bash(), "--noprofile", "--rcfile", "setup.bash", "-i"],
            f"{keys}\x01arguments \n",
            result,
            self,
        )
        return result.read_text().split("\0")[:-1]


def _type(command: Sequence[str], keys: str, result: pathlib.Path, shell: Shell) -> None:
    """Run the command in a terminal, send the keys, and wait until the file exists."""
    controller, terminal = pty.openpty()
    process = subprocess.Popen(
        command,
        cwd=shell.folder,
        env=shell.environment,
        stdin=terminal,
        stdout=terminal,
        stderr=terminal,
        start_new_session=True,
    )
    os.close(terminal)
    shown = b""
    try:
        deadline = time.monotonic() + _SECONDS
        os.write(controller, keys.encode())
        while not result.exists():
            assert time.monotonic() < deadline, f"bash did not run the line: {shown.decode()}"
            if select.select([controller], [], [], 0.05)[0]:
                shown += os.read(controller, 4096)
    finally:
        process.kill()
        process.wait()
        os.close(controller)
