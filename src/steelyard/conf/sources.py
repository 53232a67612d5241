"""The sources of option values: lines of configuration files and environment variables."""

import contextlib
import glob
import os
from collections.abc import Iterable, Iterator
from typing import NamedTuple, Self

from oslo_config import cfg, iniparser, types
from oslo_log import log as logging

from steelyard import errors
from steelyard._once import Once
from steelyard.conf.scheduling import GROUP
from steelyard.conf.types import BrokerName, FiniteFloat
from steelyard.text import spelling

LOG = logging.getLogger(__name__)

# The last three occur for a "$" in the value, which oslo.config reads as a reference to an option.
BAD_VALUE = (
    cfg.ConfigSourceValueError,
    cfg.NoSuchOptError,
    cfg.NoSuchGroupError,
    cfg.TemplateSubstitutionError,
)


class InvalidOption(errors.SteelyardError, cfg.ConfigFileValueError):
    """An invalid value of an option.

    ``where`` names the place of the value, ``reason`` says why it is invalid, and ``what`` is the
    message without the place. ``text`` is None if the value is secret or its source is unknown.
    """

    def __init__(self, where: str, text: str | None, reason: str) -> None:
        self.where = where
        self.reason = reason
        self.what = reason if text is None else f"{text!r:.200}: {reason}"
        super().__init__(f"{where}{':' if text is None else ' ='} {self.what}", text)

    def __reduce__(self) -> tuple[type[Self], tuple[str, str | None, str]]:
        # By default, an exception is copied from its message alone.
        return type(self), (self.where, self.text, self.reason)


class Setting(NamedTuple):
    """A line of a configuration file that sets an option."""

    file: str
    line: int
    group: str
    option: str
    value: str

    @property
    def place(self) -> tuple[str, str]:
        """The group, in lower case because its case does not matter, and the name."""
        return self.group.lower(), self.option

    def __str__(self) -> str:
        return f"{self.file}:{self.line}: [{self.group}] {self.option}"


class _SettingsParser(iniparser.BaseParser):
    """A parser that collects the settings of a file."""

    def __init__(self, file: str) -> None:
        super().__init__()
        self.settings: list[Setting] = []
        self._file = file
        self._group = ""

    def new_section(self, section: str) -> None:
        self._group = section

    def assignment(self, key: str, value: list[str]) -> None:
        # oslo.config calls this at the line after the value.
        line = self.lineno - len(value)
        self.settings.append(Setting(self._file, line, self._group, key, "\n".join(value)))


def files(conf: cfg.ConfigOpts) -> Iterator[str]:
    """Yield the paths of the configuration files, in the order in which they are read."""
    yield from map(os.path.expanduser, getattr(conf, "config_file", None) or ())
    directories = [*conf.config_dirs, *(getattr(conf, "config_dir", None) or ())]
    for directory in dict.fromkeys(map(os.path.expanduser, directories)):
        yield from sorted(glob.glob(os.path.join(directory, "*.conf")))


def settings(paths: Iterable[str]) -> Iterator[Setting]:
    """Yield each setting in the files, of all groups. Unreadable files are skipped."""
    for path in paths:
        parser = _SettingsParser(path)
        # oslo.config has already reported an unreadable file, unless the file changed since.
        with (
            contextlib.suppress(OSError, UnicodeDecodeError, iniparser.ParseError),
            open(path, encoding="utf-8") as file,
        ):
            parser.parse([*file, ""])
        yield from parser.settings


def registered(conf: cfg.ConfigOpts) -> Iterator[tuple[str, cfg.Opt]]:
    """Yield all registered options, including those of plugins, with their groups."""
    # oslo.config has no public way to list options rather than values.
    for info, group in conf._all_opt_infos():
        yield group.name if group else "DEFAULT", info["opt"]


def _places(group: str, opt: cfg.Opt) -> list[tuple[str, str]]:
    """Return the groups and names under which files may set an option, the current first.

    In files, oslo.config accepts no dashes in place of underscores.
    """
    former = [(old.group or group, old.name or opt.dest) for old in opt.deprecated_opts]
    return [(group.lower(), name) for group, name in [(group, opt.dest), *former]]


def unknown(conf: cfg.ConfigOpts, group: str, paths: Iterable[str]) -> Iterator[Setting]:
    """Yield each setting of the group in the files whose option is not registered."""
    known = {place for named, opt in registered(conf) for place in _places(named, opt)}
    for setting in settings(paths):
        if setting.group.lower() == group and setting.place not in known:
            yield setting


_first_warning = Once()


def warn_of_unknown(conf: cfg.ConfigOpts | None, group: str = GROUP) -> None:
    """Log a warning, once, for each option in the files that is not registered.

    Call it after all plugins are constructed: they may register options in the group. None stands
    for the global configuration.
    """
    conf = cfg.CONF if conf is None else conf
    for setting in unknown(conf, group, files(conf)):
        _warn(setting, spelling.suggestion(setting.option, conf[group]))


def warn_of_typos(conf: cfg.ConfigOpts, group: str = GROUP) -> None:
    """Log a warning, once, for each unknown option that resembles a registered one.

    For use when plugins cannot be constructed. Other unknown options may belong to them.
    """
    for setting in unknown(conf, group, files(conf)):
        meant = spelling.suggestion(setting.option, conf[group])
        if meant:
            _warn(setting, meant)


def _warn(setting: Setting, meant: str) -> None:
    if _first_warning(setting):
        LOG.warning("Unknown option ignored: %s%s", setting, meant)


def explained(conf: cfg.ConfigOpts, error: cfg.Error) -> cfg.Error:
    """Return the error with the name and place of the option that caused it.

    Returns the error itself if no registered option causes an equal one.
    """
    for group, opt in registered(conf):
        try:
            _ = conf[opt.dest] if group == "DEFAULT" else conf[group][opt.dest]
        except BAD_VALUE as found:
            # Other options may be invalid too. The one that caused the error raises an equal error.
            if (type(found), found.args) == (type(error), error.args):
                return invalid(conf, group, opt, found)
    return error


def invalid(conf: cfg.ConfigOpts, group: str, opt: cfg.Opt, error: cfg.Error) -> InvalidOption:
    """Return the error for a value that oslo.config rejects. Secret values are left out."""
    where, value = _origin(conf, group, opt)
    allowed = _allowed(opt.type)
    if not isinstance(error, cfg.ConfigSourceValueError):
        name = getattr(error, "opt_name", None)
        unknown_name = "" if opt.secret or name is None else f" {name!r}"
        reason = f"unknown option{unknown_name} after '$'; write $$ for a literal $"
    elif allowed:
        reason = f"expected {allowed}"
    elif opt.secret:
        reason = "the value is not allowed"
    else:
        # oslo.config keeps the type's message as the context of its own error.
        reason = str(error.__context__ or error)
    return InvalidOption(where, None if opt.secret else value, reason)


def refused(conf: cfg.ConfigOpts, group: str, opt: cfg.Opt, reason: str) -> InvalidOption:
    """Return the error for a value that has the right type but is not allowed."""
    where, value = _origin(conf, group, opt)
    return InvalidOption(where, None if opt.secret else value, reason)


def _origin(conf: cfg.ConfigOpts, group: str, opt: cfg.Opt) -> tuple[str, str | None]:
    """Return the place that sets an option, and the value's text, or None if it is unknown."""
    variable = f"OS_{group.upper()}__{opt.dest.upper()}"
    if variable in os.environ:  # takes precedence over files
        return f"environment variable {variable}", os.environ[variable]
    places = _places(group, opt)
    found = [each for each in settings(files(conf)) if each.place in places]
    if not found:
        return f"[{group}] {opt.dest}", None
    # The last file takes precedence. In a file, the current name does, then the last line.
    last = [each for each in reversed(found) if each.file == found[-1].file]
    setting = min(last, key=lambda each: places.index(each.place))
    return str(setting), setting.value


def _allowed(type_: types.ConfigType) -> str:
    """Return the allowed values of a type, with the limits that oslo.config's own errors omit.

    The text is empty for types whose own errors say what is allowed.
    """
    if isinstance(type_, types.Boolean):
        return "true or false"
    if isinstance(type_, BrokerName):
        return type_.allowed
    if not isinstance(type_, types.Number) or type_.choices:
        return ""
    finite = "a finite number" if isinstance(type_, FiniteFloat) else "a number"
    number = "a whole number" if isinstance(type_, types.Integer) else finite
    least = [] if type_.min is None else [f"at least {type_.min}"]
    most = [] if type_.max is None else [f"at most {type_.max}"]
    return " of ".join(filter(None, [number, " and ".join(least + most)]))
