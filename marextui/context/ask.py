"""Questions whose answers must have survived (`replay --ask`)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from marextui.context.messages import Message
from marextui.context.search import Doc


@dataclass(frozen=True, slots=True)
class Question:
    """A question and the regular expressions of its accepted answers."""

    question: str
    accept: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class AnswerCheck:
    """Whether an accepted answer stands in the view, and whether search alone finds it; `where` says in which text."""

    question: str
    in_view: bool
    reachable: bool
    where: str


def read_questions(raw: object) -> tuple[Question, ...]:
    """Questions of a loaded JSON document; ValueError with a sentence for people when it has another shape."""
    raise NotImplementedError


def check(questions: Sequence[Question], view: Sequence[Message], docs: Sequence[Doc]) -> tuple[AnswerCheck, ...]:
    """One check per question, in order."""
    raise NotImplementedError
