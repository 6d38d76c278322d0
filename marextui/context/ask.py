"""Questions whose answers must have survived (`replay --ask`): in the view, or within reach of one search (P17)."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from marextui.context.calls import arguments
from marextui.context.messages import Message
from marextui.context.search import Doc, Index

RESULTS = 3
RESULT_CHARS = 2000


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the regular expressions of its accepted answers."""

    question: str
    accept: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """Whether an accepted answer stands in the view, and whether search with the question's words alone returns it.

    Both are found independently. `where` names the message or the documents: `view m12; search m3`, "" for neither.
    """

    question: str
    in_view: bool
    reachable: bool
    where: str


def read_questions(raw: object) -> tuple[Question, ...]:
    """Questions of a loaded JSON document: a list of {"question": text, "accept": [regex, …]}.

    A single regex may stand without its list. Raises ValueError with a sentence for people for any other shape, an
    empty question, no accepted answer, or an expression that does not compile.
    """
    if isinstance(raw, Mapping) and isinstance(raw.get("questions"), list):
        raw = raw["questions"]
    if not isinstance(raw, list):
        raise ValueError('The questions must be a JSON list of {"question": "…", "accept": ["regex", …]}.')
    return tuple(_question(n, item) for n, item in enumerate(raw, 1))


def _question(n: int, item: object) -> Question:
    if not isinstance(item, Mapping):
        raise ValueError(f'Question {n} is not an object with "question" and "accept".')
    question, accept = item.get("question"), item.get("accept")
    if not isinstance(question, str) or not question.strip():
        raise ValueError(f'Question {n} has no text under "question".')
    if isinstance(accept, str):
        accept = [accept]
    if not isinstance(accept, list) or not accept or not all(isinstance(a, str) and a for a in accept):
        raise ValueError(f'Question {n} needs at least one regular expression, as text, in its list "accept".')
    for pattern in accept:
        try:
            re.compile(pattern)
        except (re.error, RecursionError, OverflowError) as error:
            raise ValueError(f"Question {n}: “{pattern}” is not a regular expression ({error}).") from error
    return Question(question, tuple(accept))


def _strings(value: object) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, Mapping):
        for inner in value.values():
            yield from _strings(inner)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner)
    elif isinstance(value, int | float) and not isinstance(value, bool):
        yield json.dumps(value)


def searchable(message: Message) -> str:
    """All that a reader of `message` sees: its text, and for each call the name, the arguments and their strings."""
    parts = [message.text]
    for call in message.tool_calls:
        parts.append(f"{call.name} {call.arguments}")
        if "\\" in call.arguments:
            parts.extend(_strings(arguments(call)))
    return "\n".join(p for p in parts if p)


def check(questions: Sequence[Question], view: Sequence[Message], docs: Sequence[Doc]) -> tuple[AnswerCheck, ...]:
    """One check per question, in order. `view` is the final view, `docs` all that recall and read-back can reach."""
    index = Index(docs)
    found = [
        [(h.id, h.text) for h in index.search(q.question, limit=RESULTS, max_chars=RESULT_CHARS)] for q in questions
    ]
    return grade(questions, view, found)


def grade(
    questions: Sequence[Question], view: Sequence[Message], found: Sequence[Sequence[tuple[str, str]]]
) -> tuple[AnswerCheck, ...]:
    """As `check`, for results (id, text) that a search gave already: one list per question, in the same order."""
    texts = [(m.id, searchable(m)) for m in view]
    checks = []
    for question, hits in zip(questions, found, strict=True):
        patterns = [re.compile(a) for a in question.accept]

        def accepted(text: str, patterns: Sequence[re.Pattern[str]] = patterns) -> bool:
            return any(p.search(text) for p in patterns)

        seen = next((i for i, text in texts if accepted(text)), None)
        hit = next((i for i, text in hits if accepted(text)), None)
        where = "; ".join(f"{how} {i}" for how, i in (("view", seen), ("search", hit)) if i is not None)
        checks.append(AnswerCheck(question.question, seen is not None, hit is not None, where))
    return tuple(checks)
