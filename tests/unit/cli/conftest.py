import logging
import pathlib

import pytest

from steelyard import cli
from steelyard.cli.app import App
from support.cli.in_process import Ran, Run

CLOUD = """\
hosts:
  h1: {vcpus: 4, ram_mb: 4096, disk_gb: 100}
  h2: {vcpus: 4, ram_mb: 8192, disk_gb: 100}
aggregates:
  slow: {hosts: [h2], metadata: {ssd: sata}}
flavors:
  small: {vcpus: 1, ram_mb: 1024, disk_gb: 10}
  fast: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {ssd: nvme}}
  open: {vcpus: 1, ram_mb: 1024, disk_gb: 10, extra_specs: {ssd: "!"}}
server_groups:
  near: {policy: soft-affinity}
"""


@pytest.fixture
def cloud(tmp_path: pathlib.Path) -> pathlib.Path:
    """Return the path of a cloud.yaml, in the folder where ``run`` runs commands."""
    path = tmp_path / "cloud.yaml"
    path.write_text(CLOUD)
    return path


@pytest.fixture
def run(
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    the_log: None,
    closed_databases: None,
) -> Run:
    """Return a function that runs a command in a folder of its own."""
    monkeypatch.chdir(tmp_path)
    # cliff takes the name of the program from the process, which is pytest here.
    monkeypatch.setattr(App, "NAME", "steelyard")

    handlers = logging.root.handlers[:]

    def run(*argv: object) -> Ran:
        # A command expects to be the only one in a process, and adds handlers.
        for handler in logging.root.handlers[:]:
            if handler not in handlers:
                logging.root.removeHandler(handler)
                handler.close()
        status = cli.main([str(each) for each in argv])
        return Ran(status, *capfd.readouterr())

    return run
