"""A log formatter that escapes untrusted text."""

import copy
import logging

from steelyard.text.escapes import escaped, escaped_lines


class EscapingFormatter(logging.Formatter):
    """A formatter that escapes the output of another formatter.

    A message becomes one line. A traceback after it keeps its lines, but the text of each exception
    in it becomes one line.
    """

    def __init__(self, formatter: logging.Formatter | None) -> None:
        super().__init__()
        self._formatter = formatter or logging.Formatter()

    def format(self, record: logging.LogRecord) -> str:
        shown = copy.copy(record)
        shown.msg, shown.args = escaped(record.getMessage()), None
        if record.exc_info and record.exc_info[1] is not None:
            error = _stand_in(record.exc_info[1], {})
            shown.exc_info, shown.exc_text = (type(error), error, error.__traceback__), None
        return escaped_lines(self._formatter.format(shown))


def _stand_in(error: BaseException, known: dict[int, BaseException]) -> BaseException:
    """Return an exception that a traceback shows like this one, with its text escaped.

    ``known`` has the stand-ins made so far, because exceptions may refer to each other in a cycle.
    """
    if id(error) in known:
        return known[id(error)]
    kind, text = type(error), escaped(_text(error))
    namespace = {
        "__module__": kind.__module__,
        "__qualname__": kind.__qualname__,
        "__str__": lambda _: text,
    }
    made: BaseException
    if isinstance(error, BaseExceptionGroup):
        # A group needs its parts when it is made, but these may refer to the group.
        parts: list[BaseException] = []
        namespace["exceptions"] = property(lambda _: tuple(parts))
        made = type(kind.__name__, (ExceptionGroup,), namespace)("", [Exception()])
        known[id(error)] = made
        parts += [_stand_in(part, known) for part in error.exceptions]
    else:
        made = type(kind.__name__, (Exception,), namespace)()
        known[id(error)] = made
    made.__traceback__ = error.__traceback__
    made.__cause__ = error.__cause__ and _stand_in(error.__cause__, known)
    made.__context__ = error.__context__ and _stand_in(error.__context__, known)
    made.__suppress_context__ = error.__suppress_context__
    for note in getattr(error, "__notes__", ()):
        made.add_note(escaped(str(note)))
    return made


def _text(error: BaseException) -> str:
    try:
        return str(error)
    except Exception:  # noqa: BLE001  (logging must not fail)
        return "<exception str() failed>"
