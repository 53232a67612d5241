"""``steelyard tags dead-letters`` without a broker: configurations and arguments it rejects."""

import pathlib
from collections.abc import Callable

import pytest

Run = Callable[..., tuple[int, str, str]]


@pytest.fixture
def rejected(steelyard: Run, tmp_path: pathlib.Path) -> Callable[..., str]:
    """Return a function that runs a rejected command and returns its errors."""
    path = tmp_path / "tags.conf"
    path.touch(mode=0o600)

    def run(*words: str, url: str | None = "amqp://u:secret@127.0.0.1:1/tags") -> str:
        lines = [] if url is None else [f"transport_url = {url}"]
        path.write_text("\n".join(["[steelyard_tags]", *lines, ""]))
        status, out, err = steelyard("--config-file", str(path), "tags", "dead-letters", *words)
        assert (status, out) == (2, "")
        assert "secret" not in err
        return err

    return run


COMMANDS = [("list",), ("replay", "--all"), ("drop", "--all", "--yes")]


@pytest.mark.parametrize("words", COMMANDS)
def test_dead_letters_require_a_broker(rejected: Callable[..., str], words: list[str]) -> None:
    assert rejected(*words, url=None) == (
        "steelyard: no broker configured: set transport_url in [steelyard_tags] of a "
        "--config-file\n"
    )


@pytest.mark.parametrize("words", COMMANDS)
def test_unreachable_broker_is_reported(rejected: Callable[..., str], words: list[str]) -> None:
    assert "the broker 'amqp://u:**@127.0.0.1:1/tags' failed: " in rejected(*words)


@pytest.mark.parametrize("limit", ["0", "-1"])
def test_limit_below_one_is_rejected(rejected: Callable[..., str], limit: str) -> None:
    assert f"invalid --limit {limit}: expected a whole number" in rejected("list", "--limit", limit)


@pytest.mark.parametrize("command", ["replay", "drop"])
@pytest.mark.parametrize("words", [[], ["5f0c61d2a9be", "--all"]])
def test_either_ids_or_all_are_needed(
    rejected: Callable[..., str], command: str, words: list[str]
) -> None:
    assert rejected(command, *words) == "steelyard: expected either IDs of dead letters or --all\n"
