"""The documentation and the README, and all their examples, which the tests execute."""

import collections
import doctest
import os
import pathlib
import re
import shutil
import subprocess
import sys
import textwrap
from collections.abc import Iterator
from typing import Any

import pytest
import sqlalchemy as sa
from oslo_config import cfg
from oslo_policy import policy

from steelyard import conf as options
from steelyard.consumers import ConsumerStore
from steelyard.tags.jobs import messages
from support.consumers import store_laws
from support.repository import DOCS, EXAMPLES, ROOT

pytestmark = pytest.mark.documentation

README = ROOT / "README.rst"
PAGES = [README, *sorted(DOCS.rglob("*.rst"))]
# Files are linked relative to the README, as all renderers of reStructuredText read it.
LINKED = [ROOT / path for path in re.findall(r"<([^>]+\.rst)>`_", README.read_text())]
_BLOCK = re.compile(r"^( *)\.\. code-block:: (\w+)\n((?:\n|\1 +.*\n)+)", re.MULTILINE)
_COPY = re.compile(
    r"^``(\S+[.](?:conf|json|py|toml|yaml))``:\n\n\.\. code-block:: \w+\n((?:\n| +.*\n)+)",
    re.MULTILINE,
)


def name_of(page: pathlib.Path) -> str:
    """Return the path of the page in the repository."""
    return str(page.relative_to(ROOT))


def blocks_of(page: pathlib.Path, language: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the text of each code block of that language in the page."""
    text = page.read_text()
    for match in _BLOCK.finditer(text):
        if match[2] == language:
            yield text.count("\n", 0, match.start()) + 1, textwrap.dedent(match[3]).strip("\n")


def blocks(language: str) -> list[Any]:
    """Return the code blocks of that language in all pages, as parameters named by page and line."""
    return [
        pytest.param(block, id=f"{name_of(page)}:{line}")
        for page in PAGES
        for line, block in blocks_of(page, language)
    ]


def commands_of(block: str) -> list[tuple[str, str]]:
    """Return the commands of a console block, each with its output."""
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


SESSIONS = {
    page: [
        (line, command, output)
        for line, block in blocks_of(page, "console")
        for command, output in commands_of(block)
    ]
    for page in PAGES
}
# The longest sessions come first, so that workers end at about the same time.
RUNNABLE = sorted(
    (page for page in PAGES if SESSIONS[page]), key=lambda page: (-len(SESSIONS[page]), page)
)


def test_documentation_builds_without_warnings(tmp_path: pathlib.Path) -> None:
    sphinx = str(pathlib.Path(sys.executable).with_name("sphinx-build"))
    command = [sphinx, "-W", "--keep-going", "-q", "-b", "html", str(DOCS), str(tmp_path / "html")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "html" / "index.html").exists()


@pytest.fixture(scope="session")
def bytecode(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """Return a folder for the bytecode that the commands of all pages share.

    The pages list folders, so that no bytecode may be written there.
    """
    return tmp_path_factory.mktemp("bytecode")


@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_commands_of_a_page_print_the_output_shown(
    page: pathlib.Path, tmp_path: pathlib.Path, bytecode: pathlib.Path
) -> None:
    # Commands run in a copy of the examples, because some write files for later commands.
    here = shutil.copytree(EXAMPLES, tmp_path / "examples")
    path = f"{pathlib.Path(sys.executable).parent}:{os.defpath}"
    wrong = []
    for line, command, output in SESSIONS[page]:
        done = subprocess.run(
            ["bash", "-c", command],
            cwd=here,
            env={"PATH": path, "LC_ALL": "C.UTF-8", "PYTHONPYCACHEPREFIX": str(bytecode)},
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            check=False,
        )
        printed = "\n".join(map(str.rstrip, done.stdout.splitlines())).rstrip("\n")
        if printed != output:
            wrong.append(f"line {line}:\n$ {command}\n{printed}\n--- instead of:\n{output}")
    assert not wrong, "\n\n".join(wrong)


def test_every_console_block_is_run() -> None:
    written = sum(page.read_text().count(".. code-block:: console\n") for page in PAGES)
    lines = {(page, line) for page in PAGES for line, _, _ in SESSIONS[page]}
    assert len(lines) == written


@pytest.mark.parametrize("page", RUNNABLE, ids=name_of)
def test_page_with_commands_names_the_folder_of_its_files(page: pathlib.Path) -> None:
    assert "docs/examples" in page.read_text()


def test_text_of_an_example_repeats_its_file() -> None:
    copies = [
        (name_of(page), name, textwrap.dedent(text).strip("\n"))
        for page in PAGES
        for name, text in _COPY.findall(page.read_text())
    ]
    assert len(copies) > 5
    for page, name, text in copies:
        assert text == (EXAMPLES / name).read_text().strip("\n"), f"{name} in {page}"


@pytest.mark.parametrize("page", [README, *LINKED], ids=name_of)
def test_page_that_readme_links_to_shows_its_examples_without_sphinx(page: pathlib.Path) -> None:
    # Other renderers leave out directives and options of Sphinx.
    text = page.read_text()
    assert "literalinclude::" not in text
    assert not re.search(r"code-block:: \w+\n +:caption:", text)


def test_readme_links_to_files_that_exist() -> None:
    text = README.read_text()
    assert len(LINKED) > 3
    assert not re.search(r":(?:doc|ref):", text)
    for path in re.findall(r"<((?!http)[^>]+)>`_", text):
        assert (ROOT / path).exists(), path


def test_index_lists_every_page_once() -> None:
    listed = collections.Counter(
        re.findall(r"^   ([\w/-]+)$", (DOCS / "index.rst").read_text(), re.MULTILINE)
    )
    pages = {str(page.relative_to(DOCS).with_suffix("")) for page in PAGES if page != README}
    assert listed == dict.fromkeys(pages - {"index"}, 1)


@pytest.mark.parametrize(
    "page", [page for page in PAGES if ">>> " in page.read_text()], ids=name_of
)
def test_python_examples_of_a_page_run(page: pathlib.Path, monkeypatch: Any) -> None:
    monkeypatch.chdir(EXAMPLES)
    result = doctest.testfile(str(page), module_relative=False)
    assert result.attempted
    assert result.failed == 0


def test_messages_of_jobs_in_the_documentation_are_parsed() -> None:
    texts = [block.values[0] for block in blocks("json") if "OP_TAGS_SET" in block.values[0]]
    outcomes = [outcome for outcome in map(messages.parse, texts) if outcome]
    assert {(outcome.job, outcome.cluster) for outcome in outcomes} == {
        (1042, None),
        (1042, "cluster.example.org"),
    }


def test_consumers_of_a_pre_release_are_copied_with_their_types(
    tmp_path: pathlib.Path, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    engine = sa.create_engine("sqlite:///old.db")
    store_laws.make_pre_release(engine)
    engine.dispose()
    (block,) = (each.values[0] for each in blocks("python") if "old.db" in each.values[0])
    for _ in range(2):
        exec(block, {})
    with ConsumerStore("sqlite:///new.db") as store:
        found = store.get_allocations(store_laws.C1)
    assert found == store_laws.body(1, p1={"VCPU": 2})


@pytest.mark.parametrize("block", blocks("ini"))
def test_configuration_example_sets_existing_options(block: str, tmp_path: pathlib.Path) -> None:
    path = tmp_path / "example.conf"
    path.write_text(block)
    conf = cfg.ConfigOpts()
    conf([], project="steelyard", default_config_files=[str(path)], default_config_dirs=[])
    groups = {
        options.GROUP: options.register(conf),
        options.CONSUMERS_GROUP: options.register_consumers(conf),
        options.TAGS_GROUP: options.register_tags(conf),
        "oslo_policy": policy.Enforcer(conf).conf.oslo_policy,
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


def test_sample_configuration_is_up_to_date(tmp_path: pathlib.Path) -> None:
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
    kept = DOCS / "reference" / "steelyard.conf.sample"
    assert kept.read_text() == made.read_text()


def test_sample_policy_is_up_to_date(tmp_path: pathlib.Path) -> None:
    made = tmp_path / "policy.yaml"
    command = pathlib.Path(sys.executable).with_name("oslopolicy-sample-generator")
    subprocess.run([command, "--namespace", "steelyard", "--output-file", str(made)], check=True)
    kept = DOCS / "reference" / "steelyard.policy.yaml.sample"
    assert kept.read_text() == made.read_text()


def test_documentation_installs_only_into_named_environments() -> None:
    # Outside of an environment, pip refuses to install on Debian and Ubuntu (PEP 668).
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


@pytest.mark.parametrize(
    "page", ["guides/reserve-hosts-for-flavors", "guides/describe-hosts-in-nova"]
)
def test_longer_list_of_ignored_keys_repeats_the_default(page: str) -> None:
    text = (DOCS / f"{page}.rst").read_text()
    (line,) = re.findall("force_check_ignored_keys = (.*)", text)
    conf = cfg.ConfigOpts()
    default = options.register(conf).force_check_ignored_keys
    assert [key.strip() for key in line.split(",")][:-1] == default
