"""Small pure extractors of what code can know for certain: paths, errors, commands, counts, touched files."""

from __future__ import annotations

from typing import Literal

from marextui.context.messages import Message

TouchKind = Literal["read", "created", "modified", "deleted"]


def paths(text: str) -> tuple[str, ...]:
    """File paths in `text`, first occurrence order, without duplicates."""
    raise NotImplementedError


def error_lines(text: str) -> tuple[str, ...]:
    """Lines that state an error."""
    raise NotImplementedError


def commands(message: Message) -> tuple[str, ...]:
    """Shell commands the calls of `message` run."""
    raise NotImplementedError


def test_counts(text: str) -> str:
    """The last test result in `text`, as `3 passed, 1 failed`; "" when there is none."""
    raise NotImplementedError


def user_constraints(message: Message) -> tuple[str, ...]:
    """Sentences of a user's message that constrain the work, verbatim."""
    raise NotImplementedError


def touched_files(message: Message) -> list[tuple[str, TouchKind]]:
    """(path, how) for each file the calls of `message` touch."""
    raise NotImplementedError
