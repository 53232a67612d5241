"""The microversion of a request, in the header ``OpenStack-API-Version``."""

import falcon

from steelyard import errors, microversions

HEADER = "OpenStack-API-Version"


def check(header: str | None, service: str, supported: str) -> None:
    """Refuse a request for another microversion than the supported one.

    Without a microversion for the service, a request accepts any. Raises BadRequest for malformed
    text, and UnsupportedMicroversion for another microversion.
    """
    only = microversions.number(supported)
    found = microversions.of_service(header or "", service, only)
    if found not in (None, only):
        raise errors.UnsupportedMicroversion(
            f"unsupported microversion {'.'.join(map(str, found))!r:.100}: expected {supported!r} "
            f"or 'latest'",
            header,
            oldest=supported,
            newest=supported,
        )


class Microversions:
    """The middleware that rejects requests for microversions other than the supported one."""

    def __init__(self, service: str, supported: str) -> None:
        self._service = service
        self._supported = supported

    def process_request(self, req: falcon.Request, resp: falcon.Response) -> None:
        resp.set_header(HEADER, f"{self._service} {self._supported}")
        resp.append_header("Vary", HEADER)
        check(req.get_header(HEADER), self._service, self._supported)
