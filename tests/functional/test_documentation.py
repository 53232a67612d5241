"""Every example in the documentation and the README, executed."""

import doctest
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
from typing import Any

import pytest
from oslo_config import cfg

from steelyard import conf as options

pytestmark = pytest.mark.documentation

ROOT = pathlib.Path(__file__).parents[2]
EXAMPLES = ROOT / "docs" / "examples"
PAGES = [ROOT / "README.rst", *sorted((ROOT / "docs").rglob("*.rst"))]
_BLOCK = re.compile(r"^( *)\.\. code-block:: (\w+)\n((?:\n|\1 +.*\n)+)", re.MULTILINE)


def blocks(language: str) -> list[Any]:
    """The code blocks of that language in all pages, as parameters named by page and line."""
    found = []
    for page in PAGES:
        text = page.read_text()
        for match in _BLOCK.finditer(text):
            if match[2] == language:
                line = text.count("\n", 0, match.start()) + 1
                name = f"{page.relative_to(ROOT)}:{line}"
                found.append(pytest.param(textwrap.dedent(match[3]).strip("\n"), id=name))
    return found


def sessions(block: str) -> list[tuple[str, str]]:
    """The commands of a console session, each with what it printed."""
    found: list[tuple[list[str], list[str]]] = []
    for line in block.splitlines():
        if line.startswith("$ "):
            found.append(([line[2:]], []))
        elif line.startswith("> ") and found and not found[-1][1]:
            found[-1][0].append(line[2:])
        else:
            assert found, f"{line!r} stands before the first command"
            found[-1][1].append(line.rstrip())
    return [("\n".join(command), "\n".join(output).rstrip("\n")) for command, output in found]


@pytest.mark.parametrize("block", blocks("console"))
def test_a_console_session_prints_what_it_says(block: str, tmp_path: pathlib.Path) -> None:
    # A copy: there are commands that change the file that they are given.
    here = shutil.copytree(EXAMPLES, tmp_path / "examples")
    path = f"{pathlib.Path(sys.executable).parent}:/usr/bin:/bin"
    for command, output in sessions(block):
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=here,
            env={"PATH": path, "LC_ALL": "C.UTF-8", "PYTHONDONTWRITEBYTECODE": "1"},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        assert "\n".join(map(str.rstrip, done.stdout.splitlines())).rstrip("\n") == output, command


@pytest.mark.parametrize(
    "page", [page for page in PAGES if ">>> " in page.read_text()], ids=lambda page: page.name
)
def test_the_python_examples_of_a_page_run(page: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(EXAMPLES)
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted
    assert result.failed == 0


@pytest.mark.parametrize("block", blocks("ini"))
def test_a_configuration_example_sets_real_options(block: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "example.conf"
    path.write_text(block)
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[str(path)], default_config_dirs=[])
    groups = {
        options.GROUP: options.register(conf),
        options.TAGS_GROUP: options.register_tags(conf),
    }
    names = [
        (group, name)
        for group in groups
        for section in re.findall(rf"^\[{group}\]\n((?:(?!\[).*\n?)*)", block, re.MULTILINE)
        for name in re.findall(r"^(\w+) *=", section, re.MULTILINE)
    ]
    assert names
    for group, name in names:
        getattr(groups[group], name)


def test_the_sample_configuration_is_up_to_date(tmp_path: pathlib.Path) -> None:
    made = tmp_path / "sample.conf"
    subprocess.run(
        [
            pathlib.Path(sys.executable).with_name("oslo-config-generator"),
            "--namespace",
            "steelyard",
            "--output-file",
            str(made),
        ],
        check=True,
    )
    kept = ROOT / "docs" / "reference" / "steelyard.conf.sample"
    assert kept.read_text() == made.read_text()


def test_documentation_installs_only_into_named_environments() -> None:
    """Outside of an environment, pip refuses to install on Debian and Ubuntu (PEP 668)."""
    commands = [
        line
        for page in PAGES
        for line in re.findall(
            r"\S+(?: -m pip|/pip) (?:install|wheel)|pip install", page.read_text()
        )
    ]
    assert len(commands) > 10
    environments = r"\.venv/bin/pip|/(path/to|var/lib/kolla)/venv/bin/python -m pip"
    assert [each for each in commands if not re.match(f"`*({environments}) ", each)] == []


@pytest.mark.parametrize("page", ["aggregate-instance-type", "nova"])
def test_longer_list_of_ignored_keys_repeats_the_default(page: str) -> None:
    text = (ROOT / "docs" / "guides" / f"{page}.rst").read_text()
    (line,) = re.findall("force_check_ignored_keys = (.*)", text)
    conf = cfg.ConfigOpts()
    default = options.register(conf).force_check_ignored_keys
    assert [key.strip() for key in line.split(",")][:-1] == default
