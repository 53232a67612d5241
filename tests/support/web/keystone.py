"""Applications behind keystonemiddleware, and a Keystone that knows some tokens."""

import contextlib
import warnings
from collections.abc import Iterator, Mapping
from typing import Any

with warnings.catch_warnings():
    # A module that WebOb imports warns of its removal.
    warnings.simplefilter("ignore")
    from keystonemiddleware import auth_token, fixture

UNTRUSTED = "192.0.2.1"


def behind_keystone(application: Any) -> Any:
    """Return the application as deployed behind the middleware, for clients at UNTRUSTED."""
    protected = auth_token.AuthProtocol(
        application,
        {"delay_auth_decision": True, "www_authenticate_uri": "http://keystone.invalid"},
    )

    def answer(environ: dict[str, Any], start_response: Any) -> Any:
        return protected({**environ, "REMOTE_ADDR": UNTRUSTED}, start_response)

    return answer


@contextlib.contextmanager
def knowing(roles: Mapping[str, str]) -> Iterator[None]:
    """Provide a Keystone that knows these tokens of the project p, each with one role."""
    with fixture.AuthTokenFixture() as tokens:
        for token, role in roles.items():
            tokens.add_token_data(token_id=token, project_id="p", user_id="u", role_list=[role])
        yield
