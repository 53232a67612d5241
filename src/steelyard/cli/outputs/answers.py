"""The text of an answer to the question why a server was not placed."""

from collections.abc import Iterable, Iterator, Sequence

from steelyard.analysis.why.answer import Answer
from steelyard.analysis.why.conclusion import Evidence
from steelyard.analysis.why.facts import ServerEvent
from steelyard.analysis.why.filtering import FilterCause
from steelyard.analysis.why.repair import RepairMember
from steelyard.cloud.wanted import Source
from steelyard.text import escapes, spelling
from steelyard.text.wording import counted, listed

_MOST = 20
"""The most entries of a section; JSON and YAML have all."""


def lines(answer: Answer) -> Iterator[str]:
    """Yield the lines: the answer in one sentence, then a section for each kind of evidence."""
    yield escapes.escaped(answer.text)
    for title, entries in _sections(answer):
        if not entries:
            continue
        yield ""
        yield title
        for entry in entries[:_MOST]:
            yield from (f"    {escapes.escaped(line)}" for line in entry)
        if len(entries) > _MOST:
            yield f"    and {len(entries) - _MOST} more, which -f json lists"


def _sections(answer: Answer) -> Iterator[tuple[str, Sequence[Sequence[str]]]]:
    """Yield the title of each section, and its entries; an entry has one or more lines."""
    now, record = answer.observed.value, Source.RECORD.value
    evidence = answer.evidence
    yield f"the request ({record}):", list(_failure(evidence))
    yield (
        f"to mend for Placement ({now}):",
        [_member(each, evidence.possible_typos(each)) for each in evidence.repair],
    )
    yield (
        "not judged, because Placement answers no request without resources:",
        [
            [each.text, f"    from {each.origin} ({each.source.value})"]
            for each in evidence.not_judged
        ],
    )
    if evidence.filtering is not None and evidence.filtering.fitting:
        without = ", without the demands to mend" if evidence.repair else ""
        fitting = listed(list(evidence.filtering.fitting), _MOST)
        yield f"hosts that fit{without} ({now}):", [[fitting]]
    yield f"causes of rejections by filters ({now}):", list(map(_cause, evidence.causes))
    yield (
        f"rejected hosts with the fewest reasons ({now}):",
        [
            [each.host, *(f"    {name}: {reason}" for name, reason in each.reasons)]
            for each in evidence.nearest
        ],
    )
    yield f"events ({record}):", list(map(_event, evidence.events))
    yield "ignored by Nova:", _alone(answer.ignored)
    yield "differences from the installed Nova:", _alone(answer.differences)
    yield "not known:", _alone(answer.not_known)
    yield "assumed:", _alone(answer.assumptions)
    yield "filters of Nova that were not applied:", _alone(evidence.not_applied)


def _alone(texts: Iterable[str]) -> list[list[str]]:
    return [[text] for text in texts]


def _failure(evidence: Evidence) -> Iterator[list[str]]:
    record, stage = evidence.facts.record, evidence.recorded
    if record is None or not record.status:
        return  # a server of a cloud file has neither a status nor a failure
    yield [f"server {record.name!r}, {record.uuid}, status {record.status}"]
    if stage is not None:
        at = f" at {record.failed_at}" if record.failed_at else ""
        yield [f"failed{at}, at the stage {stage.value!r}: {record.fault}"]


def _member(member: RepairMember, typo_of: Sequence[str]) -> list[str]:
    demand = member.demand
    found = [demand.text, f"    from {demand.origin} ({demand.source.value})"]
    if member.refusal:
        found.append(f"    Placement rejects it: {member.refusal}")
    if typo_of:
        found.append(f"    {spelling.did_you_mean(typo_of).removeprefix('; ')}")
    counts = []
    if member.providers_alone is not None:
        alone = member.providers_alone
        counts.append(f"{counted(alone, 'provider')} meet{'s' if alone == 1 else ''} this demand")
    if member.providers_without is not None:
        without = member.providers_without
        counts.append(
            f"without it and with all others, {counted(without, 'provider')} "
            f"remain{'s' if without == 1 else ''}"
            if without
            else "none remains without it, because other demands must be mended, too"
        )
    return [*found, *([f"    {'; '.join(counts)}"] if counts else [])]


def _cause(cause: FilterCause) -> list[str]:
    first = f"{counted(cause.hosts, 'host')}: {cause.filter}: {cause.cause}"
    return [first, *(f"    {text}" for text in cause.possible_typos)]


def _event(event: ServerEvent) -> list[str]:
    name = event.action if not event.event else f"{event.action}, {event.event}"
    parts = [f"{event.at} {name}"]
    # The host of other events is that of the service that reports them.
    on = "on host" if event.event.startswith("compute_") else "reported by"
    parts += [f"{on} {event.host!r}"] if event.host else []
    parts += [event.result] if event.result else []
    parts += [event.detail] if event.detail else []
    return [": ".join(parts)]
