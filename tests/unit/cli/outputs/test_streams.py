"""The streams that commands write to."""

import errno
import io
import os

import pytest

from steelyard.cli.outputs import streams


class Full(io.StringIO):
    """A stream that has no space left."""

    def write(self, text: str) -> int:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))


def test_output_reports_lines_that_cannot_be_written() -> None:
    with pytest.raises(streams.Unwritable):
        streams.Output(Full()).writelines(["a\n"])


def test_output_writes_lines() -> None:
    stream = io.StringIO()
    streams.Output(stream).writelines(["a\n", "b\n"])
    assert stream.getvalue() == "a\nb\n"
