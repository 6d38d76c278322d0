"""What a view must look like, and how it is made so (I1, cases 17–26). Repairs touch the view, never the log."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, replace
from functools import lru_cache
from typing import NoReturn

from marextui.context.messages import Content, Message, Part, TextPart, ToolCall, canonical_json

INTERRUPTED_RESULT = "interrupted: no result was recorded"
"""Stands in the view for the result of a call that never got one (case 17)."""
EMPTY_MESSAGE = "(empty message)"
CONVERSATION_START = "(conversation starts here)"
NO_REPLY = "(no reply)"
"""Assistant text between a tool result and the next user message when the turn ended there (case 23)."""
UNNAMED_TOOL = "unknown"


@dataclass(frozen=True, slots=True)
class Violation:
    """A rule broken at `index`; `rule` is a short stable name, `detail` a sentence."""

    index: int
    rule: str
    detail: str


def _blank(content: Content) -> bool:
    """No text but white space and no other part: providers refuse such messages."""
    if isinstance(content, str):
        return not content.strip()
    return all(isinstance(p, TextPart) and not p.text.strip() for p in content)


def _not_json(constant: str) -> NoReturn:
    raise ValueError(constant)


@lru_cache(maxsize=4096)
def _is_object(arguments: str) -> bool:
    """Whether `arguments` is a JSON object: chat templates parse it, and fail the whole request otherwise."""
    try:
        return isinstance(json.loads(arguments, parse_constant=_not_json), dict)
    except (ValueError, RecursionError):
        return False


def violations(messages: Sequence[Message], *, with_system: bool = True, closed: bool = True) -> tuple[Violation, ...]:
    """Rules broken by a view, in order; empty for a valid one.

    `with_system` False: `messages` is what follows the system message, which may then not appear at all. `closed`
    False: an unanswered tool group at the very end is still being answered.

    Rules: unknown_role, system_not_first, opens_without_user, empty_user, empty_assistant, misplaced_calls,
    empty_call_id, duplicate_call_id, bad_arguments, orphan_result, duplicate_result, result_order, unanswered_call.
    """
    check = Check(with_system=with_system)
    for message in messages:
        check.feed(message)
    return (*check.found, *(check.unanswered() if closed else ()))


class Check:
    """Looks for `violations` from left to right; `found` are those so far. It can be fed more at any time."""

    def __init__(self, *, with_system: bool = True) -> None:
        self.found: list[Violation] = []
        self._with_system = with_system
        self._at = 0
        self._opened = False
        self._calls: list[str] = []
        self._answered: list[str] = []

    def unanswered(self) -> tuple[Violation, ...]:
        """The calls that have no result, if none comes any more."""
        missing = (c for c in self._calls if c not in self._answered)
        return tuple(Violation(self._at, "unanswered_call", f"call {c} has no result") for c in missing)

    def feed(self, message: Message) -> None:
        """Look at one message more."""
        i = self._at
        role: str = message.role
        if role == "tool":
            _check_result(i, message.tool_call_id, self._calls, self._answered, self.found)
        else:
            self.found.extend(self.unanswered())
            self._calls, self._answered = [], []
        self._at += 1
        if role == "system":
            if i > 0 or not self._with_system:
                self.found.append(Violation(i, "system_not_first", "a system message stands inside the conversation"))
            return
        if role not in {"user", "assistant", "tool"}:
            self.found.append(Violation(i, "unknown_role", f"the role {role} is not known"))
        if not self._opened and role != "user":
            self.found.append(Violation(i, "opens_without_user", f"the conversation opens with {role}"))
        self._opened = True
        if role == "user" and _blank(message.content):
            self.found.append(Violation(i, "empty_user", "a user message without content"))
        if role == "assistant" and not message.tool_calls and _blank(message.content):
            self.found.append(Violation(i, "empty_assistant", "an assistant message without text or calls"))
        if role != "assistant" and message.tool_calls:
            self.found.append(Violation(i, "misplaced_calls", f"tool calls in a {role} message"))
        if role == "assistant":
            _check_calls(i, message.tool_calls, self.found)
            self._calls.extend(c.id for c in message.tool_calls)


def _check_calls(index: int, calls: Sequence[ToolCall], found: list[Violation]) -> None:
    ids: set[str] = set()
    for call in calls:
        if not call.id:
            found.append(Violation(index, "empty_call_id", f"a call of {call.name} has no id"))
        elif call.id in ids:
            found.append(Violation(index, "duplicate_call_id", f"two calls have the id {call.id}"))
        ids.add(call.id)
        if not _is_object(call.arguments):
            found.append(Violation(index, "bad_arguments", f"the arguments of {call.name} are not a JSON object"))


def _check_result(index: int, call_id: str, calls: list[str], answered: list[str], found: list[Violation]) -> None:
    if call_id not in calls:
        found.append(Violation(index, "orphan_result", f"no call {call_id} in the assistant message before it"))
    elif call_id in answered:
        found.append(Violation(index, "duplicate_result", f"call {call_id} is answered twice"))
    else:
        if len(answered) != calls.index(call_id):
            found.append(Violation(index, "result_order", f"the result of {call_id} is not in call order"))
        answered.append(call_id)


def strict_violations(messages: Sequence[Message], *, with_system: bool = True) -> tuple[Violation, ...]:
    """`violations`, plus the alternation strict chat templates check (rule `alternation`; cases 22, 23).

    Such templates look at user messages and at assistant messages without calls only: these must alternate, so a
    user message after a tool result counts as two users in a row.
    """
    found = list(violations(messages, with_system=with_system))
    last = "assistant"
    for i, message in enumerate(messages):
        if message.role == "user" or (message.role == "assistant" and not message.tool_calls):
            if message.role == last:
                found.append(Violation(i, "alternation", f"two {last} messages without the other role between them"))
            last = message.role
    return tuple(found)


def repair(messages: Sequence[Message], *, closed: bool = True) -> tuple[tuple[Message, ...], tuple[str, ...]]:
    """(a view without strict violations, one note per change); the very messages, unchanged, where nothing is wrong.

    Results without a call, second results and empty assistant messages go; missing results, a missing opening and a
    missing reply are made up (origin "repair"); results are put in call order; neighbouring messages of one role are
    joined under the id of the first; call ids and arguments are made valid. `closed` False: a tool group at the very
    end is still being answered, so nothing is made up for it.

    Idempotent, and prefix-stable (I7): repairing a longer history extends the repaired shorter one. One exception: a
    user or assistant *text* message at the very end may still grow by what is joined to it; its old text then stays
    the beginning of the new one. A request ends with a user message or a complete tool group, so no sent byte but the
    end of that text is ever rewritten.
    """
    repairing = Repair()
    for message in messages:
        repairing.feed(message)
    if closed:
        repairing.close()
    return repairing.view(), tuple(repairing.notes)


@dataclass(slots=True)
class _Group:
    """The tool group being answered: `asked` are the ids as the log has them, `calls` as the view has them."""

    owner: Message
    asked: tuple[str, ...]
    calls: tuple[ToolCall, ...]
    results: dict[int, Message] = field(default_factory=dict)

    def slot(self, call_id: str) -> int | None:
        """Position of the first unanswered call with that id."""
        return next((i for i, a in enumerate(self.asked) if a == call_id and i not in self.results), None)

    def ready(self) -> Iterator[Message]:
        """The results that are there and before which none is missing."""
        for i in range(len(self.calls)):
            if i not in self.results:
                return
            yield self.results[i]

    def answers(self) -> Iterator[Message]:
        """A result for each call, in order; missing ones are made up."""
        for i, call in enumerate(self.calls):
            yield self.results.get(i) or Message(
                f"repair:{self.owner.id}:{i}",
                "tool",
                INTERRUPTED_RESULT,
                tool_call_id=call.id,
                name=call.name,
                is_error=True,
                origin="repair",
                turn=self.owner.turn,
            )


class Repair:
    """One pass over a history, in order; decisions depend on what came before only, hence the stable prefix.

    It can be fed more after its `view` was looked at, so that a history that grows is not gone over again.
    """

    def __init__(self) -> None:
        self.out: list[Message] = []
        self.notes: list[str] = []
        self._group: _Group | None = None

    def feed(self, message: Message) -> None:
        role: str = message.role
        if role == "tool":
            self._result(message)
            return
        self.close()
        if role == "system" and all(m.role == "system" for m in self.out):
            self._system(message)
        elif role == "assistant":
            self._assistant(message)
        else:
            if role != "user":
                self._note(message, f"role {role} inside the conversation was read as user")
                message = replace(message, role="user", origin="repair")
            self._user(message)

    def view(self, *, closed: bool = False) -> tuple[Message, ...]:
        """What was fed so far, repaired; `closed` as for `repair`."""
        group = self._group
        if group is None:
            return tuple(self.out)
        return (*self.out, *(group.answers() if closed else group.ready()))

    def close(self) -> None:
        """End the tool group that is being answered, if there is one."""
        group, self._group = self._group, None
        if group is None:
            return
        for i in range(len(group.calls)):
            if i not in group.results:
                self._note(group.owner, f"the missing result of call {i + 1} was made up")
        self.out.extend(group.answers())

    def _note(self, message: Message, what: str) -> None:
        self.notes.append(f"{message.id}: {what}")

    def _system(self, message: Message) -> None:
        if _blank(message.content):
            self._note(message, "an empty system message was left out")
        elif self.out:
            self._join(message)
        else:
            self.out.append(message)

    def _user(self, message: Message) -> None:
        if message.tool_calls:
            self._note(message, "tool calls of a user message were left out")
            message = replace(message, tool_calls=())
        if _blank(message.content):
            self._note(message, "an empty user message was given a text")
            message = replace(message, content=EMPTY_MESSAGE)
        elif not isinstance(message.content, str):
            solid = tuple(p for p in message.content if not isinstance(p, TextPart) or p.text.strip())
            if solid != message.content:
                self._note(message, "empty text parts were left out")
                message = replace(message, content=solid)
        last = self.out[-1].role if self.out else None
        if last == "user":
            self._join(message)
            return
        if last == "tool":
            self._note(message, "a reply was put between the tool result and this message")
            self.out.append(
                Message(f"repair:{message.id}:reply", "assistant", NO_REPLY, origin="repair", turn=message.turn)
            )
        self.out.append(message)

    def _assistant(self, message: Message) -> None:
        if not message.tool_calls and _blank(message.content):
            self._note(message, "an empty assistant message was left out")
            return
        asked = tuple(c.id for c in message.tool_calls)
        calls = tuple(self._call(message, i, c) for i, c in enumerate(message.tool_calls))
        if calls != message.tool_calls:
            message = replace(message, tool_calls=calls)
        if not self.out or self.out[-1].role == "system":
            self._note(message, "an opening user message was put before it")
            self.out.append(Message(f"repair:{message.id}:opening", "user", CONVERSATION_START, origin="repair"))
        if self.out[-1].role == "assistant":
            self._join(message)
        else:
            self.out.append(message)
        if calls:
            self._group = _Group(self.out[-1], asked, calls)

    def _call(self, message: Message, index: int, call: ToolCall) -> ToolCall:
        earlier = [c.id for c in message.tool_calls[:index]]
        if not call.id or call.id in earlier:
            self._note(message, f"call {index + 1} was given an id of its own")
            call = replace(call, id=f"{call.id or 'call'}:{message.id}:{index}")
        if not call.name:
            self._note(message, f"call {index + 1} was given a tool name")
            call = replace(call, name=UNNAMED_TOOL)
        if not _is_object(call.arguments):
            self._note(message, f"the arguments of call {index + 1} were not a JSON object")
            malformed = canonical_json({"malformed": call.arguments}) if call.arguments.strip() else "{}"
            call = replace(call, arguments=malformed)
        return call

    def _result(self, message: Message) -> None:
        group = self._group
        if group is None or message.tool_call_id not in group.asked:
            self._note(message, "a tool result without its call was left out")
            return
        slot = group.slot(message.tool_call_id)
        if slot is None:
            self._note(message, "a second result of one call was left out")
            return
        if group.results and slot < max(group.results):
            self._note(message, "a tool result was put in call order")
        if message.tool_call_id != group.calls[slot].id:
            message = replace(message, tool_call_id=group.calls[slot].id)
        if message.tool_calls:
            self._note(message, "tool calls of a tool result were left out")
            message = replace(message, tool_calls=())
        group.results[slot] = message

    def _join(self, message: Message) -> None:
        """Make `message` one with the last one, which has the same role and no calls."""
        self._note(message, f"joined to the {message.role} message before it")
        last = self.out[-1]
        self.out[-1] = replace(
            last,
            content=_joined(last.content, message.content),
            tool_calls=message.tool_calls,
            reasoning=_joined_text(last.reasoning, message.reasoning),
            origin=last.origin if last.origin == message.origin or message.synthetic else message.origin,
            turn=message.turn,
        )


def _joined_text(first: str, second: str) -> str:
    return f"{first}\n\n{second}" if first and second else first or second


def _joined(first: Content, second: Content) -> Content:
    """Both contents, a blank line between texts; a list of parts when either is one."""
    if isinstance(first, str) and isinstance(second, str):
        return _joined_text(first, second) if second.strip() else first
    parts: list[Part] = []
    for content in (first, second):
        if not isinstance(content, str):
            parts.extend(content)
        elif content.strip():
            parts.append(TextPart(content))
    return tuple(parts)
