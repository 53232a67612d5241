"""``steelyard explain --html``: the page as a file, or on standard output."""

import os
import pathlib
import stat
import subprocess
import threading
from typing import Any

import pytest

from support.cli.served_command import COMMAND
from support.page.parsed_pages import Page
from support.page.shown_cloud import CLOUD
from support.repository import EXAMPLES


def test_explain_writes_the_page(steelyard: Any, cloud: Any, tmp_path: Any) -> None:
    file = tmp_path / "page.html"
    argv = ["explain", "--cloud", str(cloud), "--flavor", "fast", "--html", str(file)]
    summary = "steelyard: 1 of 2 hosts fit flavor 'fast'; 2 hosts shown\n"
    assert steelyard(*argv) == (0, f"page written to {file}\n", summary)
    page = Page(file.read_text("utf-8"))
    assert page.one("h1").text == "fast goes to h1"
    assert page.one("p", "source").text.strip().startswith(f"The cloud: {cloud}, modified 2")
    # The time is that of the file, so the same input makes the same page.
    os.utime(cloud, (0, 0))
    assert steelyard(*argv)[0] == 0
    assert Page(file.read_text("utf-8")).one("time").text == "1970-01-01 00:00:00 UTC"
    assert [row[:3] for row in page.rows("plain")] == [
        ["h1", "", "chosen"],
        ["h2", "<b>slow</b>", "rejected"],
    ]
    assert "ssd=<script>alert(1)</script>" in [each.text for each in page.all("code")]


def test_explain_writes_the_page_of_the_example(
    steelyard: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    monkeypatch.chdir(tmp_path)
    assert steelyard("explain", "--example", "--html", "page.html")[0] == 0
    page = Page(pathlib.Path("page.html").read_text("utf-8"))
    assert page.one("h1").text == "web.small goes to rack2-node2"
    assert page.one("p", "source").text == "The cloud: the cloud that comes with steelyard"


def test_explain_writes_the_page_when_no_host_fits(
    steelyard: Any, cloud: Any, tmp_path: Any
) -> None:
    file = tmp_path / "page.html"
    argv = ["explain", "--cloud", str(cloud), "--flavor", "huge", "--html", str(file)]
    status, out, err = steelyard(*argv)
    assert (status, out) == (1, f"page written to {file}\n")
    assert "\nsteelyard: no valid host: 0 of 2 hosts fit flavor 'huge'\n" in err
    assert Page(file.read_text("utf-8")).one("h1").text == "No host fits huge"


def test_page_shows_failure_domains(steelyard: Any, tmp_path: Any) -> None:
    examples = EXAMPLES
    file = tmp_path / "page.html"
    argv = ["--config-file", str(examples / "decision.conf"), "explain", "--flavor", "web.large"]
    argv += ["--cloud", str(examples / "decision.yaml"), "--group", "shop", "--html", str(file)]
    assert steelyard(*argv)[0] == 0
    captions = [each.text for each in Page(file.read_text("utf-8")).all("caption")]
    assert "Failure domains: room, rack" in captions


@pytest.mark.parametrize("coding", ["ascii", "latin-1", "utf-8"])
def test_standard_output_gets_only_the_page(cloud: Any, coding: str) -> None:
    done = subprocess.run(
        [*COMMAND, "explain", "--cloud", "-", "--flavor", "small", "--html", "-"],
        input=cloud.read_bytes(),
        capture_output=True,
        check=True,
        env={**os.environ, "PYTHONIOENCODING": coding},
    )
    text = done.stdout.decode("utf-8")
    assert text.startswith("<!doctype html>")
    assert text.endswith("</html>\n")
    assert Page(text).one("p", "source").text.strip() == "The cloud: standard input"
    assert done.stderr == b"steelyard: 2 of 2 hosts fit flavor 'small'; 2 hosts shown\n"


def test_existing_page_is_replaced_as_a_whole(steelyard: Any, cloud: Any, tmp_path: Any) -> None:
    real, link = tmp_path / "real.html", tmp_path / "page.html"
    real.write_text("old")
    real.chmod(0o640)
    link.symlink_to(real)
    before = real.stat().st_ino
    argv = ["explain", "--cloud", str(cloud), "--flavor", "small", "--html", str(link)]
    assert steelyard(*argv)[0] == 0
    assert link.is_symlink()
    assert stat.S_IMODE(real.stat().st_mode) == 0o640
    assert real.stat().st_ino != before
    assert real.read_text("utf-8").startswith("<!doctype html>")
    assert sorted(each.name for each in tmp_path.iterdir()) == [
        "cloud.yaml",
        "page.html",
        "real.html",
    ]


def test_page_is_written_to_a_pipe(steelyard: Any, cloud: Any, tmp_path: Any) -> None:
    pipe = tmp_path / "pipe"
    os.mkfifo(pipe)
    read: list[str] = []
    reader = threading.Thread(target=lambda: read.append(pipe.read_text("utf-8")))
    reader.start()
    argv = ["explain", "--cloud", str(cloud), "--flavor", "small", "--html", str(pipe)]
    assert steelyard(*argv)[0] == 0
    reader.join()
    assert read[0].startswith("<!doctype html>")
    assert stat.S_ISFIFO(pipe.stat().st_mode)


def test_page_never_replaces_the_cloud_file(
    steelyard: Any, cloud: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    link = tmp_path / "page.html"
    link.symlink_to(cloud)
    monkeypatch.chdir(tmp_path)
    for named in (["--cloud", str(cloud)], []):
        status, _, err = steelyard("explain", *named, "--flavor", "small", "--html", str(link))
        assert (status, err) == (
            2,
            f"steelyard: --html {link}: this is the cloud file; name another file\n",
        )
    assert cloud.read_text() == CLOUD


def test_unwritable_page_keeps_its_content(
    steelyard: Any, cloud: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    page = tmp_path / "page.html"
    page.write_text("old")
    monkeypatch.setattr(os, "access", lambda found, mode: False)  # root may write everything
    argv = ["explain", "--cloud", str(cloud), "--flavor", "small", "--html", str(page)]
    status, _, err = steelyard(*argv)
    assert (status, err) == (2, f"steelyard: cannot write '{page}': Permission denied\n")
    assert page.read_text() == "old"


@pytest.mark.parametrize(
    ("argv", "said"),
    [
        (["--html", "{0}/none/page"], "cannot write '{0}/none/page': No such file"),
        (["--html", "{0}"], "cannot write '{0}': Is a directory"),
        (["--html", "{0}/page", "-f", "json"], "--html writes a page instead of a table"),
        (["--html", "{0}/page", "-c", "Host"], "--html writes a page instead of a table"),
        (
            ["--html", "{0}/page", "--sort-column", "Host"],
            "--html writes a page instead of a table",
        ),
        (
            ["--html", "{0}/page", "--group", "apar"],
            "no server group 'apar'; did you mean",
        ),
    ],
)
@pytest.mark.parametrize("flavor", ["small", "huge"])
def test_explain_html_reports_a_mistake_and_writes_nothing(
    steelyard: Any, cloud: Any, tmp_path: Any, argv: list[str], said: str, flavor: str
) -> None:
    given = [each.format(tmp_path) for each in argv]
    status, out, err = steelyard("explain", "--cloud", str(cloud), "--flavor", flavor, *given)
    assert (status, out) == (2, "")
    assert err.startswith(f"steelyard: {said.format(tmp_path)}")
    assert [each.name for each in tmp_path.iterdir()] == ["cloud.yaml"]


def test_page_that_cannot_be_finished_leaves_no_file(
    steelyard: Any, cloud: Any, tmp_path: Any, monkeypatch: Any
) -> None:
    def fail(*_: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", fail)
    file = tmp_path / "page.html"
    argv = ["explain", "--cloud", str(cloud), "--flavor", "small", "--html", str(file)]
    assert "page.html': No space left on device" in steelyard(*argv)[2]
    assert [each.name for each in tmp_path.iterdir()] == ["cloud.yaml"]
