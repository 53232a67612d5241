"""Cells that are text in tables, and structures in JSON and YAML."""

import dataclasses
import json
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from cliff import columns

from steelyard import errors
from steelyard.analysis import suggestions
from steelyard.findings import Finding
from steelyard.resources import described
from steelyard.scheduler.decision import Cause, HostExplanation, Weight
from steelyard.tags.states.values import Status
from steelyard.text import escapes, spelling
from steelyard.text.wording import duration, plain
from steelyard.traits import Candidate

# Generic for type checkers. At run time, the oldest supported cliff is not generic.
if TYPE_CHECKING:
    _Column = columns.FormattableColumn[Any]
else:
    _Column = columns.FormattableColumn


def shown(cell: Any) -> Any:
    """Return the cell as tables print it, with untrusted text escaped.

    Only the column itself adds line breaks.
    """
    if isinstance(cell, columns.FormattableColumn):
        return escapes.escaped_lines(cell.human_readable())
    worded = _worded(cell)
    return escapes.escaped(worded) if isinstance(worded, str) else worded


def flat(cell: Any) -> Any:
    """Return the cell for formats without structure, with lists and mappings as JSON."""
    if type(cell) is str or type(cell) is int:
        return cell  # as below, but faster
    value = _worded(machine_readable(cell))
    return json.dumps(value, ensure_ascii=False) if isinstance(value, list | dict) else value


def flat_and_shown(cell: Any) -> Any:
    """Return the cell for formats without structure on a terminal, with untrusted text escaped."""
    return shown(flat(cell))


def machine_readable(cell: Any) -> Any:
    """Return the cell for JSON and YAML."""
    return cell.machine_readable() if isinstance(cell, columns.FormattableColumn) else cell


def order(cell: Any) -> tuple[bool, Any]:
    """Return the sort key of the cell. Missing values come last."""
    value = cell.order if isinstance(cell, _Cell) else cell
    return value is None, str(value) if isinstance(value, dict) else value


def _worded(value: Any) -> Any:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "yes" if value else "no"
    return value


class _Cell(_Column):
    """A cell that sorts by its text."""

    @property
    def order(self) -> Any:
        return self.human_readable()


class _Sorted(_Cell):
    """A cell that sorts by its value."""

    @property
    def order(self) -> Any:
        return self._value


# Keys that differ from the heading in tables. Programs read them, so they do not change with it.
_KEYS = {
    "Age": "age_seconds",
    "Applied": "there",
    "Description": "what_it_does",
    "Observed": "what",
    "Possible typo of": "perhaps_meant",
    "Source of rules": "novas_rules",
}


def key(name: str) -> str:
    """Return the key of a column in JSON and YAML: usually its name in snake case."""
    return _KEYS.get(name) or _snake_case(name)


def _snake_case(name: str) -> str:
    return name.lower().replace("'", "").replace(" ", "_")


def named(given: str, names: Sequence[str]) -> str:
    """Return the column with this name or key, ignoring case. Raises BadRequest."""
    for name in names:
        if _snake_case(given) in (_snake_case(name), key(name)):
            return name
    raise errors.BadRequest(f"no column {given!r}{spelling.near(given, names)}")


class Number(_Sorted):
    """A weight, rounded in tables and exact for programs."""

    def human_readable(self) -> str:
        return "" if self._value is None else plain(self._value, 4)


class Age(_Sorted):
    """A time in seconds, in tables with its two greatest units; None if it is unknown."""

    def human_readable(self) -> str:
        return "" if self._value is None else duration(self._value)


class AtLeast(_Sorted):
    """A number that is possibly greater."""

    def human_readable(self) -> str:
        return f"at least {self._value}"


class NoName(_Sorted):
    """A missing name, in a row about the hosts that have none."""

    def human_readable(self) -> str:
        return "(none)"


class Position(_Sorted):
    """The position of a plugin among the enabled ones; None if it is not enabled."""

    def human_readable(self) -> str:
        return "no" if self._value is None else str(self._value)


class Names(_Sorted):
    def human_readable(self) -> str:
        return escapes.escaped(", ".join(self._value))


class Many(_Sorted):
    """A possibly long list of names, shortened in tables to their number and the first three."""

    _SHOWN = 3

    def human_readable(self) -> str:
        more = ", …" if len(self._value) > self._SHOWN else ""
        return escapes.escaped(f"{len(self._value)}: {', '.join(self._value[: self._SHOWN])}{more}")


class ReasonsByHost(_Cell):
    """The reasons why hosts were rejected, by host."""

    def human_readable(self) -> str:
        return _lines(f"{host}: {'; '.join(why)}" for host, why in self._value.items())

    def machine_readable(self) -> Any:
        return dict(self._value)


class CandidateList(_Cell):
    """Allocation candidates, a line each, with the names of the providers."""

    def __init__(self, candidates: Iterable[Candidate], names: Mapping[str, str]) -> None:
        super().__init__([candidate.as_json() for candidate in candidates])
        self._names = names

    def human_readable(self) -> str:
        return _lines("; ".join(self._providers(each)) for each in self._value)

    def _providers(self, candidate: Mapping[str, Any]) -> Iterator[str]:
        """Yield a text for each provider: its name, its groups with a suffix, and the amounts."""
        groups: dict[str, list[str]] = {}
        for suffix, uuids in candidate["mappings"].items():
            for uuid in uuids:
                groups.setdefault(uuid, []).extend([suffix] if suffix else [])
        for uuid, suffixes in groups.items():
            amounts = candidate["allocations"].get(uuid, {"resources": {}})["resources"]
            of = f" ({', '.join(suffixes)})" if suffixes else ""
            what = ",".join(f"{name}:{amount}" for name, amount in sorted(amounts.items()))
            yield f"{self._names[uuid]}{of}{': ' if what else ''}{what}"


class GroupRules(_Cell):
    """The rules of a server group."""

    def human_readable(self) -> str:
        return escapes.escaped(", ".join(f"{name}={value}" for name, value in self._value.items()))

    def machine_readable(self) -> Any:
        return dict(self._value)


class TagStatuses(_Cell):
    """The tags of a server with their statuses, of which tables omit ACTIVE."""

    def human_readable(self) -> str:
        return escapes.escaped(", ".join(map(self._worded, self._value)))

    def machine_readable(self) -> Any:
        return {tag: str(status) for tag, status in self._value.items()}

    def _worded(self, tag: str) -> str:
        status = self._value[tag]
        return tag if status == Status.ACTIVE else f"{tag} ({status})"


class Examples(_Cell):
    """Reasons, a line each, with the number of servers and an example."""

    def human_readable(self) -> str:
        return _lines(
            f"{each['servers']}: {each['reason']}, such as {each['example']!r}"
            for each in self._value
        )


class Amounts(_Cell):
    """Amounts by resource class."""

    def human_readable(self) -> str:
        return escapes.escaped(
            ", ".join(described(name, amount) for name, amount in self._value.items())
        )

    def machine_readable(self) -> Any:
        return dict(self._value)


class Weights(_Cell):
    def human_readable(self) -> str:
        return _weights(self._value)

    def machine_readable(self) -> Any:
        return [_weight_fields(weight) for weight in self._value]


class Causes(_Cell):
    """Causes of rejections, with the possible typos that explain them, by filter and cause."""

    def __init__(
        self, causes: Sequence[Cause], typos: Mapping[tuple[str, str], Sequence[Finding]]
    ) -> None:
        super().__init__(causes)
        self._typos = typos

    def human_readable(self) -> str:
        return "\n".join(
            _lines(
                [
                    f"{cause.count} by {cause.filter}{', on trial' * cause.on_trial}: "
                    f"{cause.cause}",
                    *suggestions.told(self._of(cause)),
                ]
            )
            for cause in self._value
        )

    def machine_readable(self) -> Any:
        return [
            {**dataclasses.asdict(cause), "suggestions": suggestion_fields(self._of(cause))}
            for cause in self._value
        ]

    def _of(self, cause: Cause) -> Sequence[Finding]:
        return self._typos.get((cause.filter, cause.cause), ())


NO_CAUSES = Causes((), {})
"""The causes if no host was rejected, or if they do not matter."""


class Why(_Cell):
    """The reason for a host's rejection, or its weights, and the rejections by filters on trial.

    The possible typos that explain the rejections follow.
    """

    def __init__(self, explanation: HostExplanation, typos: Sequence[Finding] = ()) -> None:
        super().__init__(explanation)
        self.explanation = explanation
        self._typos = typos

    def human_readable(self) -> str:
        found = self.explanation
        why = (
            _weights(found.weights)
            if found.fits
            else escapes.escaped(f"{found.rejected_by}: {found.reason}")
        )
        trials = _lines(
            f"{each.filter}, on trial, would reject it: {each.reason}"
            for each in found.trial_rejections
        )
        return "\n".join(filter(None, [why, trials, _lines(suggestions.told(self._typos))]))

    def machine_readable(self) -> Any:
        return {
            "passed": list(self.explanation.passed),
            "rejected_by": self.explanation.rejected_by or None,
            "reason": self.explanation.reason or None,
            "weights": [_weight_fields(weight) for weight in self.explanation.weights],
            "trial_rejections": [
                dataclasses.asdict(each) for each in self.explanation.trial_rejections
            ],
            "suggestions": suggestion_fields(self._typos),
        }


def suggestion_fields(typos: Iterable[Finding]) -> list[dict[str, Any]]:
    """Return possible typos for programs: what is there, and the similar words."""
    return [
        {
            "subject": each.as_dict()["subject"],
            "message": each.message,
            "found": each.details["found"],
            "did_you_mean": each.details["suggestions"],
        }
        for each in typos
    ]


def _weights(weights: Sequence[Weight]) -> str:
    """Return one line per weigher whose raw or multiplied weight is not 0."""
    return _lines(_weight(weight) for weight in weights if weight.raw or weight.multiplied)


def _lines(texts: Iterable[str]) -> str:
    return "\n".join(map(escapes.escaped, texts))


def _weight(weight: Weight) -> str:
    return (
        f"{weight.weigher}: {plain(weight.raw, 6)}, normalised {plain(weight.normalised, 4)}, "
        f"times {plain(weight.multiplier, 4)} is {plain(weight.multiplied, 4)}"
    )


def _weight_fields(weight: Weight) -> dict[str, Any]:
    return {**dataclasses.asdict(weight), "multiplied": weight.multiplied}
