"""The distributions: built, looked into, installed where nothing is, and run."""

import pathlib
import subprocess
import sys
import tarfile
import zipfile

import pytest

pytestmark = pytest.mark.package

ROOT = pathlib.Path(__file__).parents[2]


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    target = tmp_path_factory.mktemp("dist")
    subprocess.run([sys.executable, "-m", "build", "--outdir", str(target), str(ROOT)], check=True)
    return target


@pytest.fixture(scope="module")
def wheel(built: pathlib.Path) -> pathlib.Path:
    (found,) = built.glob("*.whl")
    return found


@pytest.fixture(scope="module")
def python(wheel: pathlib.Path, tmp_path_factory: pytest.TempPathFactory) -> str:
    """The interpreter of an environment that has the wheel and nothing but what it needs."""
    home = tmp_path_factory.mktemp("clean")
    subprocess.run([sys.executable, "-m", "venv", str(home)], check=True)
    found = str(home / "bin" / "python")
    subprocess.run([found, "-m", "pip", "install", "--quiet", str(wheel)], check=True)
    return found


def test_the_wheel_holds_what_it_should(wheel: pathlib.Path) -> None:
    names = zipfile.ZipFile(wheel).namelist()
    assert "steelyard/py.typed" in names
    assert "steelyard/scheduler/example.yaml" in names
    page = "steelyard/desk/page"
    assert {f"{page}/page.css", f"{page}/page.js", f"{page}/templates/decision.html"} <= set(names)
    assert any(name.endswith("licenses/LICENSE") for name in names)
    assert {name.split("/")[0] for name in names if ".dist-info" not in name} == {"steelyard"}


def test_the_source_distribution_holds_what_it_should(built: pathlib.Path) -> None:
    (found,) = built.glob("*.tar.gz")
    with tarfile.open(found) as archive:
        names = {name.partition("/")[2] for name in archive.getnames()}
    wanted = ["LICENSE", "README.rst", "tox.ini", "src/steelyard/py.typed", "docs/index.rst"]
    assert [name for name in wanted if name not in names] == []
    assert any(name.startswith("tests/unit/") for name in names)


def test_without_extras_it_imports_and_the_command_names_its_extra(python: str) -> None:
    subprocess.run([python, "-c", "from steelyard.scheduler import Cloud"], check=True)
    command = pathlib.Path(python).with_name("steelyard")
    done = subprocess.run([command, "plugins"], capture_output=True, text=True, check=False)
    assert done.returncode == 2
    assert "pip install 'steelyard[cli]'" in done.stderr


def test_with_its_extra_the_command_runs(python: str, wheel: pathlib.Path) -> None:
    subprocess.run([python, "-m", "pip", "install", "--quiet", f"{wheel}[cli]"], check=True)
    command = pathlib.Path(python).with_name("steelyard")
    done = subprocess.run(
        [command, "schedule", "--example", "-f", "value", "-c", "Host"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.split() == ["rack2-node2", "rack3-node1"]


def test_with_another_extra_it_writes_the_page(
    python: str, wheel: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    extras = f"{wheel}[cli,desk]"
    subprocess.run([python, "-m", "pip", "install", "--quiet", extras], check=True)
    command = pathlib.Path(python).with_name("steelyard")
    file = tmp_path / "page.html"
    subprocess.run([command, "explain", "--example", "--html", str(file)], check=True)
    assert file.read_text("utf-8").startswith("<!doctype html>")
