"""Compressed responses for clients that accept them."""

import gzip

import falcon

LEAST = 1024
"""The size in bytes from which bodies are compressed."""

# Higher levels take longer and save little.
_LEVEL = 4


class Compression:
    """Middleware that compresses the bodies of responses with gzip."""

    def process_response(
        self, req: falcon.Request, resp: falcon.Response, *_outcome: object
    ) -> None:
        resp.append_header("Vary", "Accept-Encoding")
        body = resp.data
        if body is None or len(body) < LEAST:
            return
        if accepts_gzip(req.get_header("Accept-Encoding") or ""):
            resp.data = gzip.compress(body, _LEVEL, mtime=0)
            resp.set_header("Content-Encoding", "gzip")


def accepts_gzip(header: str) -> bool:
    """Return whether this value of ``Accept-Encoding`` accepts gzip."""
    weights: dict[str, float] = {}
    for part in header.lower().split(","):
        name, *parameters = (each.strip() for each in part.split(";"))
        weights[name] = _weight(parameters)
    return weights.get("gzip", weights.get("*", 0.0)) > 0


def _weight(parameters: list[str]) -> float:
    """Return the weight in the parameters, 0 if it is malformed."""
    for parameter in parameters:
        name, _, value = parameter.partition("=")
        if name.strip() == "q":
            try:
                return float(value)
            except ValueError:
                return 0.0
    return 1.0
