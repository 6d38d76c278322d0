"""Re-fetches after a compaction, and reads of what was still in view (P20; Part 2, 16; cases 9, 72, 73).

A re-fetch says that a compaction took something that was needed; regret says that a read was not needed at all, or that
what stood in the view was not recognised. Both are counted from the log alone.
"""

from __future__ import annotations

import posixpath
import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, field
from typing import Literal

from marextui.context.calls import arguments, call_command, call_files, fenced_commands
from marextui.context.entries import CompactionCommitted, CompactionUndone, Entry, MessageAdded
from marextui.context.file_contents import asked_range, shown_range
from marextui.context.fold import Conversation
from marextui.context.messages import Message, ToolCall, canonical_json
from marextui.context.omission import ID_PATTERN
from marextui.context.outcomes import status_of
from marextui.context.repeats import is_unchanged
from marextui.context.speech import is_echo, tame

REFETCH_LIMIT = 0.20
"""Share of re-fetches above which a compaction lost something (P20)."""

FetchKind = Literal["file", "omission", "url"]

_WEB_TOOL = re.compile(r"fetch|brows|url|http|web|goto|navigat|download", re.IGNORECASE)
_WEB_COMMAND = re.compile(r"\b(?:curl|wget)\b")
_URL = re.compile(r"https?://[^\s<>\"'`)\]}\\]{1,500}")
_READ_BACK = "ReadOmittedContent"
_WHOLE = (1, 1 << 40)
_SAME_PART = 80
"""Characters from which a text found inside an earlier one counts as that text again."""


@dataclass(frozen=True, slots=True)
class Refetch:
    """Something fetched again: `what` is a path, an omission id or a URL.

    `message_id` and `call_id` are of the call, `first_id` is the message that held it already.
    """

    what: str
    message_id: str
    call_id: str
    first_id: str


@dataclass(frozen=True, slots=True)
class FetchReport:
    """Successful fetches made while the compaction of `cycle` was in force (0: none).

    `refetched` had been fetched before and was compacted away; `regretted` stood in the view, unchanged.
    """

    cycle: int
    fetches: int
    refetched: tuple[Refetch, ...] = ()
    regretted: tuple[Refetch, ...] = ()

    @property
    def rate(self) -> float:
        """Share of the fetches that were re-fetches, 0 without any."""
        return len(self.refetched) / self.fetches if self.fetches else 0.0

    @property
    def loss_sign(self) -> bool:
        """Whether the compaction seems to have lost something (P20: above 20 %)."""
        return self.rate > REFETCH_LIMIT


@dataclass(frozen=True, slots=True)
class Target:
    """Something a call fetches: a file (`lines` of it), a kept output or a URL."""

    kind: FetchKind
    what: str
    lines: tuple[int, int] = _WHOLE

    @property
    def key(self) -> str:
        """What the same thing has in common, however its path is written: the last part of it."""
        return f"{self.kind} {self.what.rsplit('/', 1)[-1]}"

    def same(self, other: Target) -> bool:
        """Whether it is (partly) the same content: a relative path is the absolute one that ends so."""
        mine, its = self.what, other.what
        named = mine == its or (self.kind == "file" and (mine.endswith(f"/{its}") or its.endswith(f"/{mine}")))
        return named and self.lines[0] <= other.lines[1] and other.lines[0] <= self.lines[1]


@dataclass(frozen=True, slots=True)
class _Fetched:
    target: Target
    place: int  # of its result in the log
    text: str


def _path(path: str) -> str:
    return posixpath.normpath(path)


def targets(call: ToolCall) -> Iterator[Target]:
    """What a call fetches."""
    args, command = arguments(call), call_command(call)
    if call.name == _READ_BACK:
        wanted = args.get("content_id")
        if isinstance(wanted, str) and ID_PATTERN.fullmatch(wanted.strip()):
            yield Target("omission", wanted.strip())
        return
    if _WEB_COMMAND.search(command) or (not command and _WEB_TOOL.search(call.name)):
        text = tame(command or canonical_json(dict(args)))
        yield from (Target("url", url.rstrip(".,;:")) for url in dict.fromkeys(_URL.findall(text)))
        return
    asked = asked_range(args) if not command else (0, 0)
    for path, kind in dict.fromkeys(call_files(call)):
        if kind == "read":
            yield Target("file", _path(path), asked if asked[0] else _WHOLE)


@dataclass(slots=True)
class _Tally:
    fetches: int = 0
    refetched: list[Refetch] = field(default_factory=list)
    regretted: list[Refetch] = field(default_factory=list)


class _Watch:
    """Reads the log once, in order, with the fold at hand to know what is in view."""

    def __init__(self) -> None:
        self._state = Conversation()
        self._tallies: dict[int, _Tally] = {0: _Tally()}
        self._places: dict[str, int] = {}
        self._cut = 0  # place of the first message in view
        self._since = 0  # messages logged when the compaction in force was committed
        self._waiting: dict[str, tuple[Message, ToolCall]] = {}
        self._fetched: dict[str, list[_Fetched]] = {}
        self._changed: dict[str, int] = {}

    def take(self, entry: Entry) -> None:
        if isinstance(entry, MessageAdded) and self._state.message(entry.message.id) is None:
            self._message(entry.message)
        self._state.apply(entry)
        if isinstance(entry, MessageAdded):
            self._places.setdefault(entry.message.id, len(self._state.messages) - 1)
        elif isinstance(entry, CompactionCommitted | CompactionUndone):
            self._cut = len(self._state.dropped())
            self._since = len(self._state.messages)
            self._tallies.setdefault(self._cycle, _Tally())

    @property
    def _cycle(self) -> int:
        return self._state.compactions[-1].cycle if self._state.compactions else 0

    def reports(self) -> tuple[FetchReport, ...]:
        return tuple(
            FetchReport(cycle, t.fetches, tuple(t.refetched), tuple(t.regretted))
            for cycle, t in sorted(self._tallies.items())
        )

    def _message(self, message: Message) -> None:
        if message.role == "assistant":
            calls = message.tool_calls or tuple(
                ToolCall(f"fenced-{n}", "bash", canonical_json({"command": command}))
                for n, command in enumerate(fenced_commands(message.text))
            )
            self._waiting = {c.id: (message, c) for c in calls}
        elif message.role == "tool" and message.tool_call_id in self._waiting:
            self._result(*self._waiting.pop(message.tool_call_id), message)
        elif is_echo(message):
            for asker, call in self._waiting.values():
                self._result(asker, call, message)
            self._waiting = {}

    def _result(self, asker: Message, call: ToolCall, result: Message) -> None:
        if status_of(result) != "done":
            return
        place = len(self._state.messages)
        for target in targets(call):
            if target.kind == "file" and (shown := shown_range(result.text))[0]:
                target = Target("file", target.what, shown)
            self._fetch(asker, call, target, result.text.strip(), place)
        for path, kind in call_files(call):
            if kind != "read":
                self._changed[Target("file", _path(path)).key] = place

    def _fetch(self, asker: Message, call: ToolCall, target: Target, text: str, place: int) -> None:
        tally = self._tallies[self._cycle]
        tally.fetches += 1
        before = [f for f in self._fetched.get(target.key, ()) if f.target.same(target)]
        before += self._original(target)
        seen = next((f for f in reversed(before) if self._in_view(f.place) and _repeats(text, f, target)), None)
        if seen is not None:
            tally.regretted.append(self._again(asker, call, target, seen))
        elif before and all(f.place < self._cut for f in before) and self._changed.get(target.key, -1) < self._since:
            tally.refetched.append(self._again(asker, call, target, before[-1]))
        self._fetched.setdefault(target.key, []).append(_Fetched(target, place, text))

    def _original(self, target: Target) -> list[_Fetched]:
        """The output that an omission holds, where it first stood."""
        if target.kind != "omission":
            return []
        refs = [*self._state.stored.values(), *self._state.omitted.values()]
        owner = next((r.message_id for r in refs if r.omission_id == target.what), "")
        return [_Fetched(target, self._places[owner], "")] if owner in self._places else []

    def _in_view(self, place: int) -> bool:
        """Whether that message stands in the view whole."""
        message = self._state.messages[place]
        keys = [(message.id, n) for n in range(-1, 0 if isinstance(message.content, str) else len(message.content))]
        gone = (self._state.omitted, self._state.shortened)
        return place >= self._cut and not any(key in some for key in keys for some in gone)

    def _again(self, asker: Message, call: ToolCall, target: Target, first: _Fetched) -> Refetch:
        return Refetch(target.what, asker.id, call.id, self._state.messages[first.place].id)


def _repeats(text: str, earlier: _Fetched, target: Target) -> bool:
    """Whether `text` says nothing that the earlier result did not; an omission repeats its original always."""
    if (target.kind == "omission" and not earlier.text) or is_unchanged(text):
        return True
    return text == earlier.text or (len(text) >= _SAME_PART and text in earlier.text)


def fetch_reports(entries: Iterable[Entry]) -> tuple[FetchReport, ...]:
    """One report per compaction, in order of its cycle, after one with cycle 0 for what came before the first.

    A fetch is a call that read a file (Read, cat …), a kept output (ReadOmittedContent) or a URL, and succeeded. It is
    a re-fetch when an overlapping part of the same thing was fetched before, all of that is compacted away, and no call
    changed it since the compaction; for a kept output, when the output itself is compacted away. It is regretted when
    its text stood in the view, whole, at that moment.
    """
    watch = _Watch()
    for entry in entries:
        watch.take(entry)
    return watch.reports()


__all__ = ["REFETCH_LIMIT", "FetchReport", "Refetch", "Target", "fetch_reports", "targets"]
