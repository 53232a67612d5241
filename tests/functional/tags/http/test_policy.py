"""The policy of the HTTP API of instance tags, with and without a policy file."""

import os
import pathlib
from typing import Any

import pytest
import stevedore
from oslo_config import cfg
from oslo_policy import policy as oslo_policy

from steelyard.errors import BadRequest
from steelyard.tags import TagService
from steelyard.tags.http import api
from support.tags import in_process_api
from support.tags.in_process_api import ALL, MINE, PROXY, SYSTEM, SYSTEM_PROXY, THEIRS, Client, P
from support.web.keystone import behind_keystone, knowing

pytestmark = pytest.mark.usefixtures("closed_databases")

SERVER = {"server": {"name": "vm-new"}}
REQUESTS: dict[str, list[tuple[str, str, Any]]] = {
    "tags:read": [
        ("GET", "/servers", None),
        ("GET", ALL, None),
        ("HEAD", ALL, None),
        ("GET", ALL + "/a", None),
    ],
    "tags:write": [
        ("PUT", ALL, {"tags": ["a"]}),
        ("DELETE", ALL, None),
        ("PUT", ALL + "/a", None),
        ("DELETE", ALL + "/a", None),
    ],
    "tags:create_server": [("POST", "/servers", SERVER)],
    "tags:unregister_server": [("DELETE", f"/servers/{MINE}", None)],
}
"""The requests that need each rule."""


@pytest.fixture
def file(tmp_path: pathlib.Path) -> pathlib.Path:
    return tmp_path / "policy.yaml"


def configuration(file: pathlib.Path) -> cfg.ConfigOpts:
    conf = in_process_api.configuration()
    oslo_policy.Enforcer(conf)  # registers its options
    conf.set_override("policy_file", str(file), group="oslo_policy")
    return conf


def ruled(service: TagService, file: pathlib.Path, text: str) -> Any:
    """Return the application with this policy file."""
    file.write_text(text)
    return api.make_application(service, configuration(file))


def with_roles(application: Any, roles: str) -> Client:
    return Client(application, (*P, ("X-Roles", roles)), PROXY)


@pytest.mark.parametrize("roles", ["", "reader", "admin"])
def test_every_role_of_the_project_is_allowed_by_default(application: Any, roles: str) -> None:
    ask = with_roles(application, roles)
    for requests in REQUESTS.values():
        for method, target, body in requests:
            assert ask(method, target, body).status != 403


@pytest.mark.parametrize("rule", REQUESTS)
def test_each_request_needs_its_rule(service: TagService, file: pathlib.Path, rule: str) -> None:
    ask = Client(ruled(service, file, f'"{rule}": "!"'))
    for name, requests in REQUESTS.items():
        for method, target, body in requests:
            answer = ask(method, target, body)
            assert (answer.status == 403) is (name == rule), (method, target)
            if name == rule and method != "HEAD":
                expected = f"the policy does not allow {rule} to this caller's roles"
                assert answer.fault == ("forbidden", expected)


def test_rule_by_role_is_checked(service: TagService, file: pathlib.Path) -> None:
    application = ruled(service, file, '"tags:write": "role:Member and rule:tags:own_project"')
    for roles, status in (("reader", 403), ("", 403), ("reader,MEMBER", 201), ("xmember", 403)):
        assert with_roles(application, roles)("PUT", ALL + "/a").status == status
    assert with_roles(application, "reader")("GET", ALL).json["tags"] == ["a"]


def test_roles_of_a_token_are_checked(service: TagService, file: pathlib.Path) -> None:
    application = behind_keystone(ruled(service, file, '"tags:write": "role:member"'))
    with knowing({"t-reader": "reader", "t-member": "member"}):
        for token, status in (("t-reader", 403), ("t-member", 201)):
            headers = (("X-Auth-Token", token), ("X-Roles", "member"))
            ask = Client(application, headers, validated=False)
            assert ask("PUT", f"{ALL}/{token}").status == status


def test_policy_applies_to_the_system(service: TagService, file: pathlib.Path) -> None:
    application = ruled(service, file, '"tags:write": "role:service"')
    for roles, status in (("", 403), ("service", 201)):
        headers = (*P, SYSTEM, ("X-Roles", roles))
        assert Client(application, headers, SYSTEM_PROXY)("PUT", ALL + "/a").status == status


@pytest.mark.parametrize("check", ["!", "@", "role:admin"])
def test_server_of_another_project_is_missing_whatever_the_policy(
    service: TagService, file: pathlib.Path, check: str
) -> None:
    rules = ("tags:read", "tags:write", "tags:unregister_server")
    application = ruled(service, file, "\n".join(f'"{rule}": "{check}"' for rule in rules))
    ask = with_roles(application, "admin")
    for rule in rules:
        for method, target, body in REQUESTS[rule]:
            if MINE in target:
                assert ask(method, target.replace(MINE, THEIRS), body).status == 404
    assert service.store.instance(THEIRS).project == "q"


def test_refused_request_changes_nothing(service: TagService, file: pathlib.Path) -> None:
    ask = Client(ruled(service, file, '"tags:write": "!"\n"tags:create_server": "!"'))
    before = service.store.instances()
    for method, target in (("PUT", ALL), ("POST", "/servers")):
        assert ask(method, target, {"invalid": True}).status == 403
    assert (service.store.instances(), service.store.pending()) == (before, [])


def test_changed_file_is_read_again(service: TagService, file: pathlib.Path) -> None:
    ask = Client(ruled(service, file, '"tags:read": "!"'))
    assert ask("GET", ALL).status == 403
    for text, status, moment in (('"tags:read": "@"', 200, 2e9), ('"tags:read": [', 500, 2.1e9)):
        file.write_text(text)
        os.utime(file, (moment, moment))
        assert ask("GET", ALL).status == status


@pytest.mark.parametrize(
    "text",
    [
        '"tags:read": [',
        '"tags:read": "rule:nothing"',
        '"tags:read": "rule:tags:write"\n"tags:write": "rule:tags:read"',
    ],
    ids=["no YAML", "a missing rule", "a cycle of rules"],
)
def test_invalid_file_is_an_error_at_the_start(
    service: TagService, file: pathlib.Path, text: str
) -> None:
    with pytest.raises(BadRequest, match="cannot use the policy file") as caught:
        ruled(service, file, text)
    assert str(file) in str(caught.value)


def test_missing_file_that_is_named_is_an_error(service: TagService, file: pathlib.Path) -> None:
    with pytest.raises(BadRequest, match="no such file; correct it, or policy_file in"):
        api.make_application(service, configuration(file))


def test_embedded_application_needs_no_parsed_configuration(
    service: TagService, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cfg, "CONF", cfg.ConfigOpts())
    assert Client(api.make_application(service))("GET", ALL).status == 401


def test_tools_of_oslo_policy_find_the_rules_and_the_enforcer(
    monkeypatch: pytest.MonkeyPatch, tmp_path: pathlib.Path
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setattr(cfg, "CONF", cfg.ConfigOpts())
    found: dict[str, Any] = {
        group: stevedore.DriverManager(group, "steelyard", invoke_on_load=True).driver
        for group in ("oslo.policy.policies", "oslo.policy.enforcer")
    }
    names = [rule.name for rule in found["oslo.policy.policies"]]
    assert names == ["tags:own_project", *REQUESTS]
    assert list(found["oslo.policy.enforcer"].registered_rules) == names
