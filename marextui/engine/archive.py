"""Opens, lists, pages, names and exports conversations; holds the one that is open."""

from __future__ import annotations

import asyncio
import errno
import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from marextui.context.entries import Entry, MessageAdded, Record, TurnClosed, TurnOpened
from marextui.context.fold import Conversation, fold
from marextui.context.messages import Message, file_json, to_wire
from marextui.context.redacted import redacted_message
from marextui.context.redaction import redact
from marextui.context.refills import RefillWatch
from marextui.context.sanitise import sanitise
from marextui.context.tokens import TokenLedger
from marextui.engine.api import LATEST, NEW, ConversationInfo, HistoryPage
from marextui.engine.bus import Bus
from marextui.engine.events import ConversationOpened, Notice
from marextui.engine.ports import Clock, Ids
from marextui.engine.session import Session
from marextui.store.database import StoreError
from marextui.store.log import ConversationRow, LogStore
from marextui.store.open_elsewhere import OpenConversations


@dataclass(slots=True)
class Archive:
    """Conversations of one log store, `project` being the slug of the current project.

    `wanted` is what to open first: `NEW`, `LATEST` of this project, or an id (a unique beginning of one will do).
    """

    store: LogStore
    project: str
    root: Path
    bus: Bus
    clock: Clock
    ids: Ids
    new_ledger: Callable[[], TokenLedger]
    location: str = ""
    wanted: str = NEW
    opened: OpenConversations | None = None
    _session: Session | None = None
    _created: bool = field(default=False)

    @property
    def session(self) -> Session:
        """The open conversation. Raises RuntimeError before `open_first`: a defect, not a user's doing."""
        if self._session is None:
            raise RuntimeError("no conversation is open")
        return self._session

    @property
    def is_open(self) -> bool:
        """Whether there is a conversation yet: a program may be left before its first one is open."""
        return self._session is not None

    async def open_first(self) -> None:
        """Open what was asked for; what cannot be found becomes a new conversation and a notice."""
        row: ConversationRow | None = None
        missed: Notice | None = None
        if self.wanted == LATEST:
            row = await self.store.latest(self.project)
            missed = Notice("info", "There is no earlier conversation in this project; this is a new one.")
        elif self.wanted:
            row = await self.store.find(self.wanted)
            hint = "/resume lists the conversations there are."
            missed = Notice("warning", f"No conversation {self.wanted!r}; this is a new one.", hint)
        if row is not None and not self._take(row.id):
            text = f"The conversation {row.title or row.id!r} is open in another window; this is a new one."
            missed = Notice("warning", text, "Go on there, or close it there and open it here with /resume.")
            row = None
        await self.open(row)
        if row is None and missed is not None:
            self.bus.emit(missed)  # after the opening, which clears the screen

    async def find(self, conversation_id: str) -> ConversationRow:
        """The conversation of that id or unique beginning of one. Raises `StoreError` when there is none."""
        row = await self.store.find(conversation_id)
        if row is None:
            raise StoreError(f"there is no conversation {conversation_id!r}")
        return row

    def claim(self, row: ConversationRow) -> None:
        """Keep other windows out of the conversation that is to be opened. Raises `StoreError` when one is in it."""
        if not self._take(row.id):
            raise StoreError("it is open in another window; go on there, or close it there first")

    def _take(self, conversation_id: str) -> bool:
        """Whether the conversation is ours alone: two programs that write one conversation spoil it for each other."""
        return self.opened is None or self.opened.take(conversation_id)

    async def open(self, row: ConversationRow | None) -> None:
        """Open a conversation that was claimed, None: a new one. Raises `StoreError`."""
        records: tuple[Record, ...] = ()
        if row is None:
            conversation_id, title = self.ids.new("c"), ""
            self._take(conversation_id)
            conversation, refills = Conversation(), RefillWatch()
        else:
            conversation_id, title = row.id, row.title
            records = await self._with_unfinished(row.id, await self.store.records(row.id))
            conversation, refills = await asyncio.to_thread(_read, [r.entry for r in records])
        self._created = row is not None
        self._session = Session(
            conversation_id,
            self.store,
            self.bus,
            self.clock,
            self.new_ledger(),
            conversation,
            title,
            records[-1].seq if records else 0,
            records[-1].seq if records else 0,
            refills,
        )
        self.bus.emit(ConversationOpened(conversation_id, title, row is not None, len(records)))
        if self.store.unreadable_entries:
            text = f"{self.store.unreadable_entries} log entries were written by a newer version and are not shown."
            self.bus.emit(Notice("warning", text, "Update marextui to see them."))

    async def _with_unfinished(self, conversation_id: str, records: tuple[Record, ...]) -> tuple[Record, ...]:
        """`records`, and what had arrived of an answer when the process that received it was killed (case 45).

        It becomes an entry as a broken answer does; the notice on the crash says how to go on.
        """
        message = await self.store.unfinished(conversation_id)
        if message is None:
            return records
        turn = next((r.entry for r in reversed(records) if isinstance(r.entry, TurnOpened | TurnClosed)), None)
        known = any(isinstance(r.entry, MessageAdded) and r.entry.message.id == message.id for r in records)
        if not known and isinstance(turn, TurnOpened) and turn.turn == message.turn:
            records += await self.store.append(conversation_id, [MessageAdded(message)], at=self.clock.now())
        await self.store.drop_unfinished(conversation_id)
        return records

    async def ensure_created(self, at: float) -> None:
        """Write the conversation's row before its first entry: an empty conversation leaves no trace."""
        if not self._created:
            session = self.session
            await self.store.create(session.id, project=self.project, title=session.title, at=at)
            self._created = True

    async def rename(self, title: str) -> None:
        await self.store.rename(self.session.id, title)
        self.session.title = title

    async def page(self, before_seq: int | None, limit: int) -> HistoryPage:
        """Records of the open conversation before `before_seq`, newest page first (issue: tail first)."""
        if not self._created:
            return HistoryPage((), 0, False)
        records, more = await self.store.page(self.session.id, before_seq=before_seq, limit=limit)
        return HistoryPage(records, records[0].seq if records else 0, more)

    async def conversations(self, query: str) -> list[ConversationInfo]:
        """This project's first, newest first; then those of other projects."""
        rows = await self.store.conversations(project=None, query=query)
        rows.sort(key=lambda r: (r.project != self.project, -r.updated_at))
        return [
            ConversationInfo(r.id, r.title, r.project, r.created_at, r.updated_at, r.messages, r.turns) for r in rows
        ]

    async def export(self, path: str, fmt: Literal["markdown", "json"], *, replace: bool = False) -> str:
        """Write the whole log of the open conversation without secrets (I10); returns the full path.

        Raises OSError; IsADirectoryError for a folder, FileExistsError when something stands there already and
        `replace` was not asked for.
        """
        target = Path(os.path.expanduser(path))
        if not target.is_absolute():
            target = self.root / target
        if path.endswith(("/", os.sep)) or await asyncio.to_thread(target.is_dir):
            raise IsADirectoryError(errno.EISDIR, "it is a folder; give the name of a file", str(target))
        title, messages = self.session.title, tuple(self.session.conversation.messages)

        def write() -> None:
            clean = [redacted_message(m) for m in messages]
            _write(target, to_json(clean) if fmt == "json" else to_markdown(redact(title), clean), replace=replace)

        await asyncio.to_thread(write)
        return str(target)

    async def close(self) -> None:
        if self.opened is not None:
            self.opened.release()
        await self.store.close()


def _write(target: Path, text: str, *, replace: bool) -> None:
    target.parent.mkdir(parents=True, exist_ok=True)
    with target.open("w" if replace else "x", encoding="utf-8") as file:
        file.write(text)


def to_json(messages: Sequence[Message]) -> str:
    """One message per line in OpenAI chat form: what `marextui replay` reads."""
    return "".join(file_json(to_wire(m, echo_reasoning=True)) + "\n" for m in messages)


def to_markdown(title: str, messages: Sequence[Message]) -> str:
    """The conversation for people: every message in full, tool outputs in fences that their content cannot close."""
    lines = [f"# {sanitise(title) or 'Conversation'}", ""]
    for message in messages:
        lines += [f"## {_heading(message)}", ""]
        if message.role == "tool":
            lines += _fenced(_readable(message.text))
        elif message.text:
            lines += [_readable(message.text), ""]
        for call in message.tool_calls:
            lines += [
                f"Calls **{sanitise(call.name)}**:",
                "",
                *_fenced(_readable(call.arguments)),
            ]
    return "\n".join(lines)


def _readable(text: str) -> str:
    """Without control bytes, lines as long as they are, progress lines in full: an export leaves nothing out."""
    return sanitise(text, max_line=1_000_000, collapse_progress=False)


def _heading(message: Message) -> str:
    if message.role == "tool":
        return f"Result of {sanitise(message.name) or 'a tool'}"
    return {"user": "You", "assistant": "Assistant"}.get(message.role, "System")


def _fenced(text: str) -> list[str]:
    fence = "```"
    while fence in text:
        fence += "`"
    return [fence, text, fence, ""]


def _read(entries: Sequence[Entry]) -> tuple[Conversation, RefillWatch]:
    refills = RefillWatch()
    for entry in entries:
        refills.take(entry)
    return fold(entries), refills
