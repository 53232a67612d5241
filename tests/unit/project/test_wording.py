"""The rules of wording in docstrings, comments, messages and names of tests."""

import ast
import io
import pathlib
import re
import tokenize
from collections.abc import Callable, Iterator
from typing import NamedTuple

import pytest

from support.project.parsed_sources import FOUND, errors_of
from support.repository import ROOT

FILES = [path for folder in ("src", "tests") for path in sorted((ROOT / folder).rglob("*.py"))]

# The first words of docstrings of functions: verbs in the imperative. Add a missing one.
VERBS = """
    Abort Accept Acknowledge Acquire Add Allocate Allow Answer Append Apply Archive Ask Assert
    Assign Attach Authenticate Backfill Begin Bind Block Boot Break Build Bypass Cache Call
    Cancel Change Check Choose Clean Clear Close Collect Combine Commit Compare Complete Compute
    Configure Connect Construct Consume Convert Copy Corrupt Count Create Cut Declare Decode
    Define Delay Delete Deliver Derive Describe Detach Detect Disable Disconnect Dispatch Do
    Downgrade Draw Drive Drop Dump Enable Encode End Enforce Ensure Enter Escape Evacuate
    Evaluate Examine Exclude Execute Exit Expand Expect Explain Export Extract Fail Fake Feed
    Fetch Fill Filter Find Finish Forget Fork Format Forward Freeze Generate Get Give Group
    Guard Handle Hide Hold Ignore Import Include Increment Initialise Inject Insert Inspect
    Install Interrupt Invoke Iterate Join Judge Keep Kill Launch Leave Let Limit Link List
    Listen Load Lock Log Look Lose Make Map Mark Measure Merge Migrate Mock Modify Monitor Move
    Name Normalise Notify Obtain Offer Open Order Override Pair Parse Pass Patch Pause Perform
    Pick Place Play Poll Post Prefix Prepare Press Pretend Prevent Print Process Produce Prove
    Provide Prune Publish Put Query Quote Raise Reach Read Rebuild Receive Reconcile Record
    Redirect Reduce Refresh Refuse Register Reject Release Reload Remove Rename Render Repeat
    Replace Replay Reply Report Request Requeue Require Reset Resolve Respond Restart Restore
    Resume Retrieve Retry Return Reverse Revert Rewrite Roll Round Run Sample Save Schedule
    Search Select Send Serialise Serve Set Share Shorten Show Shuffle Shut Simulate Skip Sleep
    Sort Spawn Split Stamp Start State Step Stop Store Strip Submit Substitute Sum Suppress Swap
    Switch Take Tear Tell Terminate Test Throw Time Trace Track Translate Trigger Trim Truncate
    Trust Try Turn Undo Unlock Unpack Unregister Update Upgrade Use Validate Verify Visit Wait
    Walk Warn Watch Weigh Withdraw Wrap Write Yield
"""
# A docstring that says "Return what ..." does not say what the caller gets.
RIDDLE_AFTER_VERB = re.compile(
    r"(?:Return|Yield|Raise|Give|Get|Build|Create|Make|Write|Read|Delete|Run),? "
    r"(?:what|whatever|who|whoever|whom|nothing but)\b"
)
PROPERTIES = ("property", "cached_property", "setter")

VAGUE_NAME = re.compile(
    r"(?:test|check)_"
    r"(?:it|what|who|whom|whoever|how|why|where|which|that|nobody|somebody)_"
)

# Words and phrases that have plainer synonyms in every use.
RIDDLES = re.compile(
    r"""\b(?:
    whoever | whomever | whom | somebody | nobody
    | in\ vain | turn(?:s|ed|ing)?\ (?:\w+\ )?away | (?<!-)anew | again\ and\ again
    | (?:what|that|which|who)\ is\ no(?!\ longer|\ more|\ less) | what\ is\ not
    | (?:is|are|was|were)\ said(?!\ to) | (?:is|are)\ not\ there
    | (?:is|are|was|be|been)\ looked\ at
    | (?:is|are)\ (?-i:none\b)(?<!there\ are\ none)(?<!there\ is\ none)
    | bites? | slips? | (?:has|have)\ gone(?!\ wrong) | fell\ to | means?\ nothing | says?\ nothing
    | comes?\ upon | c[oa]mes?\ to\ be | (?:is|are)\ over(?!\ \d) | lets\ one
    )\b""",
    re.VERBOSE | re.IGNORECASE,
)
# Only a question begins so: "What was asked is recorded" names its subject too late.
RELATIVE_CLAUSE = re.compile(r"(?:What|Who|Whose|Whoever|Whatever|Whichever)\b[^?]*$")
SENTENCE_END = re.compile(r"(?<=[.!?:;])\s+")

PROPER_NAMES = (
    "Alembic|Ganeti|HTTP|JSON|Keystone|MariaDB|MySQL|Nova|OpenStack|Placement|PostgreSQL|PyYAML|"
    "Python|RabbitMQ|SQL|SQLAlchemy|SQLite|TLS|URL|UUID|YAML"
)
MESSAGE_START = re.compile(r"[a-z'\"`{\[(\d/-]|(?:" + PROPER_NAMES + r")\b")


class Text(NamedTuple):
    """A docstring, a comment or a string literal, on one line."""

    line: int
    text: str
    is_prose: bool
    """Whether it is a docstring or a comment."""


def one_line(text: str) -> str:
    return " ".join(text.split())


def literal(node: ast.expr | None) -> str | None:
    """Return the text of a string literal, with ``{}`` for each interpolated value, or None."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return node.value
    if isinstance(node, ast.JoinedStr):
        return "".join(
            str(part.value) if isinstance(part, ast.Constant) else "{}" for part in node.values
        )
    return None


def strings(tree: ast.AST) -> Iterator[Text]:
    """Yield the docstrings and string literals; one without a space is a value and no text."""
    for node in ast.iter_child_nodes(tree):
        if isinstance(node, ast.Expr) and (text := literal(node.value)) is not None:
            yield Text(node.lineno, one_line(text), is_prose=True)
        elif isinstance(node, ast.expr) and (text := literal(node)) is not None:
            if " " in text.strip():
                yield Text(node.lineno, one_line(text), is_prose=False)
            if isinstance(node, ast.JoinedStr):
                for part in node.values:
                    if isinstance(part, ast.FormattedValue):
                        yield from strings(part)
        else:
            yield from strings(node)


def comments(code: str) -> Iterator[Text]:
    """Yield the comments; those on successive lines are one."""
    start, last, words = 0, 0, ""
    for token in tokenize.generate_tokens(io.StringIO(code).readline):
        if token.type == tokenize.COMMENT:
            alone = not token.line[: token.start[1]].strip()
            if words and not (alone and token.start[0] == last + 1):
                yield Text(start, words, is_prose=True)
                words = ""
            if not words:
                start = token.start[0]
            last = token.start[0]
            words = one_line(f"{words} {token.string.lstrip('#')}")
    if words:
        yield Text(start, words, is_prose=True)


def texts(code: str) -> Iterator[Text]:
    yield from strings(ast.parse(code))
    yield from comments(code)


def functions(tree: ast.AST) -> Iterator[ast.FunctionDef | ast.AsyncFunctionDef]:
    """Yield the functions and methods, without properties."""
    for node in ast.walk(tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            decorators = {ast.unparse(each).rpartition(".")[2] for each in node.decorator_list}
            if decorators.isdisjoint(PROPERTIES):
                yield node


def docstring_faults(code: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the fault of each function docstring that is not imperative."""
    for node in functions(ast.parse(code)):
        docstring = ast.get_docstring(node)
        if docstring is None:
            continue
        first = docstring.split()[0].rstrip(",;:")
        if first not in VERBS.split():
            yield (
                node.lineno,
                f"docstring of {node.name!r} begins with {first!r}: expected one of VERBS",
            )
        elif found := RIDDLE_AFTER_VERB.match(docstring):
            yield (
                node.lineno,
                f"docstring of {node.name!r} begins with {found[0]!r}: name the result",
            )


def name_faults(code: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the fault of each test and law that does not name its subject."""
    for node in functions(ast.parse(code)):
        if VAGUE_NAME.match(node.name):
            yield (
                node.lineno,
                f"invalid name {node.name!r}: expected test_<subject>_<condition>_<outcome>",
            )


def word_faults(code: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the fault of each text with a rejected word or a leading clause."""
    for line, text, is_prose in texts(code):
        for found in RIDDLES.finditer(text):
            around = text[max(found.start() - 30, 0) : found.end() + 30]
            yield line, f"rejected words {found[0]!r} in '{around}'"
        if is_prose:
            for sentence in SENTENCE_END.split(text):
                if RELATIVE_CLAUSE.match(sentence):
                    yield line, f"relative clause begins the sentence '{sentence[:60]}'"


ERRORS = errors_of(FOUND.values())


def messages(node: ast.expr) -> Iterator[str]:
    """Yield the literal texts that an expression may have as its value."""
    if isinstance(node, ast.IfExp):
        yield from messages(node.body)
        yield from messages(node.orelse)
    elif (text := literal(node)) is not None:
        yield text


def message_faults(code: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the fault of each malformed message of an error of steelyard."""
    for node in ast.walk(ast.parse(code)):
        if (
            isinstance(node, ast.Call)
            and ast.unparse(node.func).rpartition(".")[2] in ERRORS
            and node.args
        ):
            for message in filter(None, messages(node.args[0])):
                if not MESSAGE_START.match(message):
                    yield node.lineno, f"message {message[:50]!r} begins in upper case"
                if message.endswith("."):
                    yield node.lineno, f"message {message[-50:]!r} ends in a full stop"


def check_files(
    files: list[pathlib.Path], faults: Callable[[str], Iterator[tuple[int, str]]]
) -> None:
    """Apply the check to all files, and report its faults together."""
    found = []
    for path in files:
        name = path.relative_to(ROOT).as_posix()
        for line, fault in faults(path.read_text()):
            found.append(f"{name}:{line}: {fault}")
    assert not found, "\n".join([f"{len(found)} faults", *found])


def test_docstrings_of_functions_are_imperative() -> None:
    check_files(FILES, docstring_faults)


def test_names_of_tests_begin_with_their_subject() -> None:
    check_files([path for path in FILES if path.is_relative_to(ROOT / "tests")], name_faults)


def test_texts_have_no_rejected_words() -> None:
    # This file lists the rejected words, and its examples use them.
    check_files([path for path in FILES if path != pathlib.Path(__file__)], word_faults)


def test_messages_of_errors_are_well_formed() -> None:
    check_files([path for path in FILES if path.is_relative_to(ROOT / "src")], message_faults)


def test_verbs_are_sorted() -> None:
    assert sorted(set(VERBS.split())) == VERBS.split()


@pytest.mark.parametrize(
    ("faults", "code"),
    [
        (docstring_faults, 'def f():\n    """The sum."""'),
        (docstring_faults, 'def f():\n    """Returns the sum."""'),
        (docstring_faults, 'class A:\n    async def f(self):\n        """Return what is left."""'),
        (name_faults, "def test_it_works(): ..."),
        (name_faults, "def check_what_is_left(): ..."),
        (word_faults, "# Rejected by\n# whoever asks."),
        (word_faults, 'x = f"{a} is tried again and {b} again and again"'),
        (word_faults, "print(f\"{f('turned away')}\")"),
        (word_faults, '"""All hosts.\n\nWhat is left is sorted."""'),
        (message_faults, 'NotFound("No flavor")'),
        (message_faults, 'errors.NotFound("no flavor.")'),
        (message_faults, 'NotFound("no flavor" if a else "Bad flavor")'),
    ],
)
def test_fault_is_found(faults: Callable[[str], Iterator[tuple[int, str]]], code: str) -> None:
    assert len(list(faults(code))) == 1


@pytest.mark.parametrize(
    ("faults", "code"),
    [
        (docstring_faults, 'def f():\n    """Return, for each host, its reason."""'),
        (docstring_faults, 'class A:\n    """The sum."""'),
        (docstring_faults, '@property\ndef f(self):\n    """The sum."""'),
        (name_faults, "def test_item_is_kept(): ..."),
        (word_faults, "# What is left?"),
        (word_faults, "print('nobody', 'there are none', f'{a} is None')"),
        (message_faults, 'NotFound("Placement has no such name")'),
        (message_faults, "NotFound(f\"{name}: no flavor 'A.'\")"),
        (message_faults, 'ValueError("No flavor.")'),
    ],
)
def test_plain_text_has_no_fault(
    faults: Callable[[str], Iterator[tuple[int, str]]], code: str
) -> None:
    assert list(faults(code)) == []
