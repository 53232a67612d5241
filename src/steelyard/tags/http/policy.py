"""The policy of the HTTP API of tags: the callers who may read and change tags.

Operators override the rules in a policy file of oslo.policy. Other projects' servers do not exist
for a caller, so no rule can give access to them.
"""

from typing import Any

from oslo_config import cfg
from oslo_policy import policy

from steelyard import errors
from steelyard.tags.http.callers import RequestCaller
from steelyard.web.error_answers import HttpFault, RefusedRequest

READ = "tags:read"
WRITE = "tags:write"
CREATE = "tags:create_server"
UNREGISTER = "tags:unregister_server"

_OWN = "tags:own_project"
_FILE = "policy_file"
_GROUP = "oslo_policy"


def _rule(name: str, about: str, *requests: tuple[str, str]) -> policy.DocumentedRuleDefault:
    operations: list[Any] = [{"method": method, "path": path} for method, path in requests]
    return policy.DocumentedRuleDefault(
        name, f"rule:{_OWN}", about, operations, scope_types=["project"]
    )


_ALL, _ONE = "/servers/{server}/tags", "/servers/{server}/tags/{tag}"
_RULES = [
    policy.RuleDefault(
        _OWN, "project_id:%(project_id)s", "Callers of the server's project, with any role."
    ),
    _rule(
        READ,
        "List servers, and read their tags.",
        ("GET", "/servers"),
        ("GET", _ALL),
        ("GET", _ONE),
    ),
    _rule(
        WRITE,
        "Add, replace and delete tags.",
        ("PUT", _ALL),
        ("DELETE", _ALL),
        ("PUT", _ONE),
        ("DELETE", _ONE),
    ),
    _rule(CREATE, "Create a server with tags.", ("POST", "/servers")),
    _rule(
        UNREGISTER,
        "Forget a server that the backend no longer has.",
        ("DELETE", "/servers/{server}"),
    ),
]


def list_rules() -> list[policy.RuleDefault]:
    """Return the rules with their defaults, for the generators and checkers of oslo.policy."""
    return list(_RULES)


def get_enforcer() -> policy.Enforcer:
    """Return the enforcer of the configuration that oslo.config finds, for tools of oslo.policy.

    The tools use the global configuration, too.
    """
    cfg.CONF([], project="steelyard")
    return _enforcer(cfg.CONF)


class TagPolicy:
    """The rules of the API, with the overrides in the policy file that the configuration names.

    Raises BadRequest for an invalid file. A file that changes later is read again; while it is
    invalid, all requests fail.
    """

    def __init__(self, conf: cfg.ConfigOpts | None) -> None:
        self._enforcer = _enforcer(_parsed(cfg.CONF if conf is None else conf))
        _check(self._enforcer)

    def require(self, rule: str, asking: RequestCaller, project: str) -> None:
        """Refuse the request, with the status 403, unless the rule allows it to the caller."""
        target = {"project_id": project}
        credentials = {
            "project_id": asking.project,
            "user_id": asking.user,
            "roles": sorted(asking.roles),
        }
        if not self._enforcer.enforce(rule, target, credentials):
            raise RefusedRequest(
                HttpFault(403, f"the policy does not allow {rule} to this caller's roles")
            )


def _parsed(conf: cfg.ConfigOpts) -> cfg.ConfigOpts:
    """Return the configuration, or an empty one if it was never parsed: that names no files."""
    if "config_file" in conf:
        return conf
    empty = cfg.ConfigOpts()
    empty([], project="steelyard", default_config_files=[], default_config_dirs=[])
    return empty


def _enforcer(conf: cfg.ConfigOpts) -> policy.Enforcer:
    enforcer = policy.Enforcer(conf)
    enforcer.register_defaults(_RULES)
    return enforcer


def _check(enforcer: policy.Enforcer) -> None:
    """Read the policy file; raise BadRequest if it is invalid, or missing although it is named."""
    conf = enforcer.conf
    name = conf[_GROUP][_FILE]
    try:
        if _is_set(conf) and conf.find_file(name) is None:
            raise ValueError("no such file")
        enforcer.load_rules()
        enforcer.check_rules(raise_on_violation=True)
    except (ValueError, OSError, cfg.Error, policy.InvalidDefinitionError) as error:
        raise errors.BadRequest(
            f"cannot use the policy file {name!r:.200}: {error}; correct it, or {_FILE} in "
            f"[{_GROUP}]"
        ) from error


def _is_set(conf: cfg.ConfigOpts) -> bool:
    """Return whether the configuration names a policy file, so that its default is not used."""
    found = conf.get_location(_FILE, _GROUP)
    defaults = (cfg.Locations.opt_default, cfg.Locations.set_default)
    return found is not None and found.location not in defaults
