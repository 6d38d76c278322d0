"""Runs the calls of one assistant message, one after the other, each result logged as soon as it is there."""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace
from typing import Protocol

from marextui.context.bulk import images
from marextui.context.entries import Entry, FileSeen, FilesSeen, InputRef, MessageAdded, OmissionRef, OutputStored
from marextui.context.messages import Message, ToolCall
from marextui.context.omission import TOOL_OUTPUT, output_cap_chars, parse_marker
from marextui.context.redacted import redacted_arguments
from marextui.context.redaction import redact
from marextui.context.repeats import shown_already, unchanged
from marextui.engine.bus import Bus
from marextui.engine.events import ToolFinished, ToolOutputStreamed, ToolStarted
from marextui.engine.omitter import FILE_READERS, Omitter
from marextui.engine.permissions import Permissions
from marextui.engine.ports import Clock, Ids
from marextui.engine.session import Session
from marextui.tools.types import OmittedReader, Recaller, ToolBox, ToolContext, ToolResult

INTERRUPTED = "Interrupted by the user before it finished; it may have taken effect in part."
CUT_OFF = (
    "Not run: your answer was cut off by the limit on its length, so this call is incomplete. Do less in one call, for "
    "example write a file in parts."
)
NOT_RUN = "Not run: the user interrupted the turn first."


class Titles(Protocol):
    """One-line descriptions of calls (`tools.titles`)."""

    def title(self, name: str, arguments: str) -> str: ...

    def subject(self, name: str, arguments: str) -> str: ...


class SeenFiles(Protocol):
    """Which files the model has seen, and in what state (`tools.read_state.ReadState`)."""

    def take_noted(self) -> tuple[FileSeen, ...]: ...

    def load(self, files: Iterable[FileSeen]) -> None: ...


@dataclass(slots=True)
class ToolTally:
    """Calls and failures of a turn, for the usage journal (M44)."""

    calls: int = 0
    errors: int = 0


@dataclass(slots=True)
class ToolRunner:
    """Runs calls with permission, streams their output, stores what is bulky, logs one result for each call (I1)."""

    box: ToolBox
    titles: Titles
    permissions: Permissions
    omitter: Omitter
    bus: Bus
    clock: Clock
    ids: Ids
    tally: ToolTally = field(default_factory=ToolTally)
    omitted: OmittedReader | None = None
    recaller: Recaller | None = None
    seen: SeenFiles | None = None

    async def run_all(
        self, session: Session, calls: Sequence[ToolCall], *, turn: int, window: int | None, cut_off: bool = False
    ) -> None:
        """Run `calls` in order. Interrupted, every call still gets its result, so that the log stays valid.

        `cut_off`: the reply ended at its limit, so the last call is incomplete, however whole its arguments look (some
        servers close them); half a file must not be written over a whole one.
        """
        for position, call in enumerate(calls):
            try:
                incomplete = cut_off and position == len(calls) - 1
                await self._run(session, call, turn=turn, window=window, incomplete=incomplete)
            except asyncio.CancelledError:
                answered = {m.tool_call_id for m in session.conversation.messages if m.turn == turn}
                for later, open_call in enumerate(calls[position:]):
                    if open_call.id not in answered:
                        text = INTERRUPTED if later == 0 else NOT_RUN
                        await self._log(session, open_call, ToolResult(text, True, "interrupted"), turn, window, 0.0)
                raise

    async def _run(self, session: Session, call: ToolCall, *, turn: int, window: int | None, incomplete: bool) -> None:
        started = self.clock.monotonic()
        self.tally.calls += 1
        self.bus.emit(ToolStarted(call.id, call.name, call.arguments, self.titles.title(call.name, call.arguments)))
        result = ToolResult(CUT_OFF, True, "cut off") if incomplete else await self._permitted(call)
        if result is None:
            self.bus.enter("tools", self.titles.title(call.name, call.arguments))
            context = ToolContext(
                emit=lambda text: self.bus.emit(ToolOutputStreamed(call.id, text)),
                omitted=self.omitted,
                recaller=self.recaller,
                limit_chars=output_cap_chars(window),
            )
            result = await self.box.run(call.name, call.arguments, context)
            result = self._pointed(session, call, result, turn)
        if result.is_error:
            self.tally.errors += 1
        # From here on the outcome is a fact: an interrupt must not lose it.
        logging = asyncio.ensure_future(
            self._log(session, call, result, turn, window, self.clock.monotonic() - started)
        )
        try:
            await asyncio.shield(logging)
        except asyncio.CancelledError:
            await logging
            raise

    def _pointed(self, session: Session, call: ToolCall, result: ToolResult, turn: int) -> ToolResult:
        """`result`, or where it stands in the view already and will stay for as long (case 71)."""
        if call.name not in FILE_READERS or result.is_error or result.parts:
            return result
        since = turn + 1 - self.omitter.omit_after_turns
        before = shown_already(session.history(), call, result.text, since_turn=since)
        if before is None:
            return result
        what = self.titles.subject(call.name, call.arguments)
        return replace(result, text=unchanged(what, before), summary=f"{result.summary}, unchanged")

    async def _permitted(self, call: ToolCall) -> ToolResult | None:
        """None when the call may run, else the denial the model is told."""
        need = await self.box.permission(call.name, call.arguments)
        if need is None:
            return None
        decision = await self.permissions.ask(need, call_id=call.id, tool=call.name)
        if decision.answer != "deny":
            return None
        reason = f" Reason: {decision.reason}" if decision.reason else ""
        text = (
            f"The user did not allow this call.{reason} Do not repeat it; ask what to do instead or go on without it."
        )
        return ToolResult(text, True, "denied")

    async def _log(
        self, session: Session, call: ToolCall, result: ToolResult, turn: int, window: int | None, seconds: float
    ) -> None:
        message = Message(
            id=self.ids.new("m"),
            role="tool",
            content=result.parts or result.text or "(no output)",
            tool_call_id=call.id,
            name=call.name,
            is_error=result.is_error,
            origin="tool",
            turn=turn,
        )
        shown, beside = await self.omitter.keep(
            session,
            message,
            what=self.titles.subject(call.name, call.arguments),
            window=window,
            exempt=result.exempt_from_omission,
        )
        if result.exempt_from_omission and not result.is_error:
            beside = self._read_back_of(session, call, message)
        entries: list[Entry] = [MessageAdded(shown), *beside]
        entries += await self._newly_seen(call, result)
        await session.append(*entries)
        self.bus.emit(
            ToolFinished(
                call.id,
                result.is_error,
                result.summary,
                len(result.text),
                seconds,
                next((e.ref.omission_id for e in beside if isinstance(e, OutputStored)), ""),
                result.diff,
            )
        )

    async def _newly_seen(self, call: ToolCall, result: ToolResult) -> list[Entry]:
        """Files this call showed or wrote. With secrets in it, the log will not hold what the model saw of them."""
        noted = self.seen.take_noted() if self.seen is not None else ()
        if not noted:
            return []

        def redacted() -> bool:
            return redact(result.text) != result.text or redacted_arguments(call.arguments) != call.arguments

        return [FilesSeen(noted, await asyncio.to_thread(redacted))]

    def _read_back_of(self, session: Session, call: ToolCall, message: Message) -> list[Entry]:
        """A read-back grown old goes back to the id it came from instead of being stored a second time."""
        wanted = self.titles.subject(call.name, call.arguments)
        wanted = parse_marker(wanted) or wanted.strip()
        ref = session.conversation.ref_of(wanted)
        if ref is None:
            return []
        part = next(iter(images(message)), -1)
        label = TOOL_OUTPUT if part == -1 or isinstance(ref, InputRef) else ref.label
        return [OutputStored(OmissionRef(message.id, part, wanted, ref.chars, label))]
