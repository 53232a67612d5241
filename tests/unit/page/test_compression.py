"""Clients that accept compressed responses."""

import falcon
import falcon.testing
import pytest

from steelyard.page.compression import LEAST, Compression, accepts_gzip


@pytest.mark.parametrize(
    ("header", "accepted"),
    [
        ("", False),
        ("gzip", True),
        ("GZIP", True),
        ("deflate, gzip;q=0.5, br", True),
        ("deflate, br", False),
        ("gzip;q=0", False),
        ("gzip; q=0.000", False),
        ("gzip;q=x", False),
        ("gzip;level=1;q=0.1", True),
        ("*", True),
        ("*;q=0", False),
        ("*, gzip;q=0", False),
        ("identity", False),
    ],
)
def test_accepts_gzip_reads_weights(header: str, accepted: bool) -> None:
    assert accepts_gzip(header) is accepted


class Answer:
    def __init__(self, body: bytes) -> None:
        self._body = body

    def on_get(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.data = self._body


@pytest.mark.parametrize(("size", "packed"), [(LEAST - 1, False), (LEAST, True)])
def test_only_large_bodies_are_compressed(size: int, packed: bool) -> None:
    app = falcon.App(middleware=Compression())
    app.add_route("/", Answer(b"x" * size))
    answer = falcon.testing.TestClient(app).simulate_get("/", headers={"Accept-Encoding": "gzip"})
    assert ("content-encoding" in answer.headers) is packed
    assert answer.headers["vary"] == "Accept-Encoding"
