"""Keeps bulky tool outputs: stores them when they are produced, replaces them by markers when they have grown old."""

from __future__ import annotations

from collections.abc import Collection, Container, MutableSequence, Sequence
from dataclasses import dataclass, replace
from typing import Protocol

from marextui.context.entries import (
    Entry,
    InputRef,
    InputsOmitted,
    OmissionRef,
    OutputsOmitted,
    OutputStored,
    ShortenedRef,
    TextsShortened,
    WholeOutput,
    Why,
)
from marextui.context.ladder import Piece
from marextui.context.messages import Message, Part, TextPart
from marextui.context.omission import (
    OMIT_OVER,
    TOOL_OUTPUT,
    Eligible,
    cap_output,
    eligible,
    expired,
    fits,
    marker,
    output_cap_chars,
)
from marextui.engine.bus import Bus
from marextui.engine.event_values import OmissionInfo
from marextui.engine.events import Event, Notice, OmissionRead, OmissionStored, OutputsReplaced, ViewReduced
from marextui.engine.ports import Clock
from marextui.engine.session import Session

DAY = 86_400.0

FILE_READERS = frozenset({"Read"})
"""Tools whose output is what a file held: reading it back later says whether the file still does."""


class StoredOutput(Protocol):
    """What the store tells of an entry (`store.omissions.OmissionMeta`)."""

    @property
    def id(self) -> str: ...
    @property
    def tool(self) -> str: ...
    @property
    def what(self) -> str: ...
    @property
    def chars(self) -> int: ...
    @property
    def stored_chars(self) -> int: ...
    @property
    def created_at(self) -> float: ...
    @property
    def reads(self) -> int: ...
    @property
    def preview(self) -> str: ...
    @property
    def conversation_id(self) -> str: ...
    @property
    def message_id(self) -> str: ...


class RemovedForRoom(Protocol):
    """Ids that went for the quota (`store.omissions.Evicted`); `referenced` ones stood in a view."""

    @property
    def unreferenced(self) -> tuple[str, ...]: ...
    @property
    def referenced(self) -> tuple[str, ...]: ...


class Omissions(Protocol):
    """The omission store (`store.omissions.OmissionStore`)."""

    async def put(
        self, text: str, *, tool: str, what: str, conversation_id: str, message_id: str, file: str = ""
    ) -> StoredOutput: ...
    async def get(self, omission_id: str) -> str | None: ...
    async def meta(self, omission_id: str) -> StoredOutput | None: ...
    async def all(self) -> Sequence[StoredOutput]: ...
    async def mark_read(self, omission_id: str) -> int: ...
    async def purge(self, days: int) -> list[str]: ...
    async def why_missing(self, omission_id: str, days: int) -> str: ...
    async def about(self, omission_id: str, *, whole: bool = False) -> str: ...
    async def total_bytes(self) -> int: ...
    async def over_quota(self) -> bool: ...
    async def evict(self, referenced: Collection[str], *, keep: Collection[str] = ()) -> RemovedForRoom: ...


@dataclass(slots=True)
class Omitter:
    """Applies M23–M30 to a session with a store. `days` is the retention (0: for ever)."""

    store: Omissions
    bus: Bus
    clock: Clock
    days: int
    omit_after_turns: int

    def info(self, meta: StoredOutput, *, in_view: bool) -> OmissionInfo:
        """The row the omissions browser shows; `days_left` counts down to the purge (M29)."""
        left = None
        if self.days > 0:
            left = max(0.0, self.days - (self.clock.now() - meta.created_at) / DAY)
        return OmissionInfo(
            id=meta.id,
            tool=meta.tool,
            what=meta.what,
            chars=meta.chars,
            stored_chars=meta.stored_chars,
            created_at=meta.created_at,
            days_left=left,
            reads=meta.reads,
            preview=meta.preview,
            conversation_id=meta.conversation_id,
            message_id=meta.message_id,
            in_view=in_view,
        )

    async def list(self, session: Session) -> list[OmissionInfo]:
        """All live entries, newest first."""
        omitted = session.conversation.replaced_ids()
        return [
            self.info(m, in_view=m.conversation_id == session.id and m.id not in omitted)
            for m in await self.store.all()
            if not expired(m.created_at, self.clock.now(), self.days)
        ]

    async def count_read(self, omission_id: str) -> None:
        """One read-back more; a count that cannot be kept must not cost what was read."""
        try:
            reads = await self.store.mark_read(omission_id)
        except OSError as problem:
            text = f"That {omission_id} was read back could not be noted: {problem.strerror or problem}"
            self.bus.emit(Notice("warning", text))
            return
        if reads:
            self.bus.emit(OmissionRead(omission_id, reads))

    async def keep(
        self, session: Session, message: Message, *, what: str, window: int | None, exempt: bool
    ) -> tuple[Message, Sequence[Entry]]:
        """Store the output of `message` if it may later be omitted, and cap what the model sees of it (M30).

        Returns the message to log (each text over the cap as head and tail, ending in the marker) and the entries to
        log beside it, the whole of what was capped among them. `exempt` results (read-backs) are never stored again:
        their text is in the store already (M26). On a disk that cannot take it the log keeps all of it, the model sees
        it capped, and people are told.
        """
        entries: MutableSequence[Entry] = []
        if exempt:
            return message, entries
        if isinstance(message.content, str):
            content = await self._kept_text(session, message, -1, message.content, what, window, entries)
            return (message if content is message.content else replace(message, content=content)), entries
        parts: list[Part] = []
        for n, part in enumerate(message.content):
            if isinstance(part, TextPart):
                text = await self._kept_text(session, message, n, part.text, what, window, entries)
                part = part if text is part.text else TextPart(text)
            parts.append(part)
        return replace(message, content=tuple(parts)), entries

    async def _kept_text(
        self,
        session: Session,
        message: Message,
        part: int,
        text: str,
        what: str,
        window: int | None,
        entries: MutableSequence[Entry],
    ) -> str:
        """Store one text of `message`; returns what of it the message is to hold and adds to `entries`."""
        if len(text) <= OMIT_OVER:
            return text
        try:
            meta = await self.store.put(
                text,
                tool=message.name,
                what=what,
                conversation_id=session.id,
                message_id=message.id,
                file=what if message.name in FILE_READERS and part == -1 else "",
            )
        except OSError as problem:
            self.bus.emit(_not_stored(message.name, problem))
            if not fits(text, window):
                kept = ShortenedRef(message.id, part, "", len(text), output_cap_chars(window), TOOL_OUTPUT)
                entries.append(TextsShortened(message.turn, (kept,)))
            return text
        self.bus.emit(OmissionStored(self.info(meta, in_view=True)))
        capped = not fits(text, window)
        if capped:
            entries.append(WholeOutput(message.id, part, text))
        entries.append(OutputStored(OmissionRef(message.id, part, meta.id, meta.chars)))
        return cap_output(text, window=window, omission_id=meta.id) if capped else text

    async def _refs(self, session: Session, found: Sequence[Eligible]) -> tuple[OmissionRef, ...]:
        refs: list[OmissionRef] = []
        for e in found:
            ref = session.stored_ref(e.message_id, e.part)
            if ref is None:
                meta = await self.store.put(
                    e.text, tool=e.tool_name, what="", conversation_id=session.id, message_id=e.message_id
                )
                self.bus.emit(OmissionStored(self.info(meta, in_view=False)))
                ref = OmissionRef(e.message_id, e.part, meta.id, meta.chars)
            refs.append(ref)
        return tuple(refs)

    async def omit(self, session: Session, found: Sequence[Eligible], turn: int) -> int:
        """Replace `found` by markers in the view, as one logged decision; returns the tokens freed."""
        refs = await self._refs(session, found)
        if not refs:
            return 0
        freed = sum(
            session.ledger.text(e.text) - session.ledger.text(marker(r.omission_id, r.chars))
            for e, r in zip(found, refs, strict=True)
        )
        await session.append(OutputsOmitted(turn, refs, freed=freed))
        self.bus.emit(OutputsReplaced(turn, refs, freed))
        return freed

    async def put_aside(self, session: Session, text: str, *, what: str, message_id: str) -> str:
        """Keep a text of the engine's own that leaves the view; returns the id it can be read by. Raises OSError."""
        meta = await self.store.put(text, tool="summary", what=what, conversation_id=session.id, message_id=message_id)
        self.bus.emit(OmissionStored(self.info(meta, in_view=False)))
        return meta.id

    async def at_turn_start(self, session: Session, turn: int, exempt: Container[str] = ()) -> int:
        """The one rewrite of a turn start (B7, M23): outputs grown old become markers. Returns the tokens freed."""
        found = eligible(
            session.conversation.kept(),
            current_turn=turn,
            omit_after_turns=self.omit_after_turns,
            omitted=session.conversation.omitted,
            exempt=exempt,
        )
        return await self.omit(session, found, turn)

    async def replace(
        self,
        session: Session,
        pieces: Sequence[Piece],
        turn: int,
        why: Why = "room",
    ) -> tuple[str, ...]:
        """Store what is not stored yet of `pieces`, then let them leave the view: one transaction, one rewrite (I6).

        Returns the ids under which they can be read, in order. Raises OSError before anything is rewritten.
        """
        outputs: list[tuple[Piece, OmissionRef]] = []
        inputs: list[tuple[Piece, InputRef]] = []
        texts: list[tuple[Piece, ShortenedRef]] = []
        ids: list[str] = []
        for p in pieces:
            omission_id, chars = await self._stored(session, p)
            ids.append(omission_id)
            if p.call >= 0:
                inputs.append((p, InputRef(p.message_id, p.call, p.path, omission_id, chars)))
            elif p.keep:
                texts.append((p, ShortenedRef(p.message_id, p.part, omission_id, chars, p.keep, p.label)))
            else:
                outputs.append((p, OmissionRef(p.message_id, p.part, omission_id, chars, p.label)))
        entries: list[Entry] = []
        changes: list[Event] = []
        if outputs:
            gone, freed = tuple(r for _, r in outputs), sum(p.saves for p, _ in outputs)
            entries.append(OutputsOmitted(turn, gone, why, freed))
            changes.append(OutputsReplaced(turn, gone, freed, why))
        if inputs:
            marked, freed = tuple(r for _, r in inputs), sum(p.saves for p, _ in inputs)
            entries.append(InputsOmitted(turn, marked, freed))
            changes.append(ViewReduced(turn, "inputs", marked, freed))
        if texts:
            cut, freed = tuple(r for _, r in texts), sum(p.saves for p, _ in texts)
            entries.append(TextsShortened(turn, cut, freed))
            changes.append(ViewReduced(turn, "texts", cut, freed))
        if entries:
            await session.append(*entries)
        for change in changes:
            self.bus.emit(change)
        return tuple(ids)

    async def _stored(self, session: Session, piece: Piece) -> tuple[str, int]:
        """(id, characters) under which `piece` is kept; stored now unless it was when it was produced."""
        if piece.call < 0:
            known = session.stored_ref(piece.message_id, piece.part)
            cut = session.conversation.shortened.get((piece.message_id, piece.part))
            if known is not None:
                return known.omission_id, known.chars
            if cut is not None and cut.omission_id:
                return cut.omission_id, cut.chars
        what = "" if piece.label == TOOL_OUTPUT else piece.label
        meta = await self.store.put(
            piece.text, tool=piece.tool, what=what, conversation_id=session.id, message_id=piece.message_id
        )
        self.bus.emit(OmissionStored(self.info(meta, in_view=False)))
        return meta.id, meta.chars


def _not_stored(tool: str, problem: OSError) -> Notice:
    text = f"The output of {tool} could not be stored: {problem.strerror or problem}. It stands in the conversation."
    return Notice("warning", text, "Free disk space; until then long outputs cannot be read back or put aside.")
