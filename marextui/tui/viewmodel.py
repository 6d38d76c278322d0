"""What the screen shows, as plain data: a fold of engine events and log records, complete, and without Textual.

A recorded stream of events gives the same model again (that is how the screen is tested). Texts are raw here; they are
made harmless where they meet a widget (`tui.text`). The conversation is `items`, oldest first; an item is addressed by
its *position*, a number that stays the same for life: items loaded later from the past get smaller ones.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Literal

from marextui.context.phrases import sentence
from marextui.engine import events as ev
from marextui.engine.api import HistoryPage
from marextui.engine.event_values import QueuedPrompt, UsageLine
from marextui.tui.compaction_items import Later
from marextui.tui.items import (
    AssistantItem,
    CompactionItem,
    Item,
    NoticeItem,
    ReductionItem,
    ToolItem,
    TurnItem,
    UserItem,
    searched_text,
    tool_title,
)
from marextui.tui.project_items import logged_event, project_notice
from marextui.tui.status import Status

if TYPE_CHECKING:
    from marextui.context import entries as log
    from marextui.context.messages import Message

Aspect = Literal["items", "reset", "status", "queue", "title"]
"""What of the screen an event changed."""

_WHOLE_OUTPUTS = ("age", "repeat", "room")
"""Reductions after which the view shows nothing of a tool's output but its marker."""


class ViewModel:
    """Everything the screen shows. `apply` and `prepend` return the aspects that changed."""

    def __init__(self) -> None:
        self.status = Status()
        self._clear()

    def _clear(self) -> None:
        self.items: list[Item] = []
        self.first = 0
        """Position of the oldest loaded item (0, then negative as older pages are loaded)."""
        self.queue: tuple[QueuedPrompt, ...] = ()
        self.conversation_id = ""
        self.title = ""
        self.first_seq: int | None = None
        """Cursor for the page before, None before any page was loaded."""
        self.more = False
        """True while the log holds records older than the loaded ones."""
        self._by_key: dict[str, Item] = {}
        self._tool_messages: dict[str, str] = {}
        self._calls: dict[str, list[str]] = {}
        self._notices = 0
        self._later = Later()

    # --- reading ---------------------------------------------------------------------------------------------------
    @property
    def end(self) -> int:
        """Position one past the newest item."""
        return self.first + len(self.items)

    def at(self, position: int) -> Item:
        return self.items[position - self.first]

    def get(self, key: str) -> Item | None:
        return self._by_key.get(key)

    def positions(self) -> Iterator[tuple[int, Item]]:
        return zip(range(self.first, self.end), self.items, strict=True)

    def last_answer(self) -> str:
        """Source of the newest answer with text, "" without one."""
        return next((str(i.text) for i in reversed(self.items) if isinstance(i, AssistantItem) and i.text), "")

    def find(self, query: str) -> list[int]:
        """Positions of the loaded items whose source, reasoning or title holds `query`, whatever the case."""
        needle = query.casefold()
        return [p for p, item in self.positions() if needle and needle in searched_text(item).casefold()]

    # --- changing --------------------------------------------------------------------------------------------------
    def _add(self, item: Item) -> None:
        self.items.append(item)
        self._by_key[item.key] = item

    def _fresh(self, kind: str) -> str:
        self._notices += 1
        return f"{kind}-live-{self._notices}"

    def _remove(self, key: str) -> None:
        item = self._by_key.pop(key, None)
        if item is not None:
            self.items.remove(item)

    def apply(self, event: ev.Event) -> set[Aspect]:
        """Fold one event. Events of panes with their own data (gauge, omissions, memory, permission) change nothing."""
        match event:
            case ev.ConversationOpened():
                status = self.status
                self._clear()
                self.status = Status(model=status.model, local=status.local)
                self.conversation_id, self.title = event.conversation_id, event.title
                self.more = event.records > 0
                return {"reset", "items", "status", "queue", "title"}
            case ev.ConversationRenamed():
                if event.conversation_id != self.conversation_id:
                    return set()
                self.title = event.title
                return {"title"}
            case ev.QueueChanged():
                self.queue = event.items
                return {"queue"}
            case ev.ModelLoading() | ev.ModelReady() | ev.PhaseChanged() | ev.PromptProcessed() | ev.StepStarted():
                self.status.apply(event)
                return {"status"}
            case ev.TextStreamed() | ev.ReasoningStreamed():
                return self._stream(event)
            case ev.StreamDropped():
                self._dropped(event.message_id)
                return {"items"}
            case ev.MessageAppended():
                self._message(event.message)
                return {"items"}
            case ev.ToolStarted() | ev.ToolOutputStreamed() | ev.ToolFinished():
                return self._tool(event)
            case ev.CompactionStarted() | ev.CompactionFinished() | ev.CompactionFailed():
                return self._compaction(event)
            case ev.CompactionReverted():
                self._later.undone(event.cycle, self.items)
                figures = f"{event.tokens_before:,} → {event.tokens_after:,} tokens, {event.messages} messages"
                text = f"Compaction {event.cycle} was undone; what was sent before it is sent again: {figures}."
                self._notice("info", text, "", "")
                return {"items"}
            case ev.CompactionProbed():
                self._later.checked(event.entry, self.items)
                return {"items"}
            case ev.OutputsReplaced() | ev.ViewReduced():
                self._reduced(event, self._fresh("reduction"))
                return {"items"}
            case ev.OmissionStored():
                if event.info.message_id in self._tool_messages:
                    self._link(event.info.message_id, event.info.id)
                    return {"items"}
                return set()
            case ev.ContextUpdatePlaced() | ev.ProjectCopied():
                self._told(event, self._fresh("project"))
                return {"items"}
            case ev.StepRefused():
                self._notice(
                    "error",
                    sentence(event.reason),
                    "Compact the conversation, or start a new one.",
                    "compact",
                )
                return {"items"}
            case ev.ModelFailed():
                self._notice("error", f"{event.label}: {event.message}", event.hint, "retry" if event.retry else "")
                return {"items"}
            case ev.Notice():
                self._notice(event.level, event.text, event.hint, event.action)
                return {"items"}
            case ev.TurnFinished():
                self._close_turn(event.end)
                self._add(TurnItem(key=f"turn-{event.turn}-{self._fresh('t')}", end=event.end, usage=event.usage))
                self.status.usage = event.usage
                return {"items", "status"}
            case _:
                return set()

    def _stream(self, event: ev.TextStreamed | ev.ReasoningStreamed) -> set[Aspect]:
        item = self._by_key.get(event.message_id)
        if not isinstance(item, AssistantItem):
            item = AssistantItem(key=event.message_id, streaming=True)
            self._add(item)
        (item.text if isinstance(event, ev.TextStreamed) else item.reasoning).add(event.text)
        item.version += 1
        return {"items"}

    def _dropped(self, key: str) -> None:
        """An answer that came to nothing goes; what was thought until then stays to be read."""
        item = self._by_key.get(key)
        if not isinstance(item, AssistantItem) or not str(item.reasoning).strip():
            self._remove(key)
            return
        item.text.set("")
        item.streaming = False
        item.version += 1

    def _message(self, message: Message) -> None:
        """A message of the log, live or read back; one that is known already is only completed."""
        if message.synthetic or message.role == "system":
            return
        if message.role == "tool":
            self._result(message)
        elif message.role == "user":
            if message.id not in self._by_key:
                self._add(UserItem(key=message.id, text=message.text))
        else:
            known = self._by_key.get(message.id)
            if isinstance(known, AssistantItem):
                known.text.set(message.text)
                known.reasoning.set(message.reasoning)
                known.streaming = False
                known.version += 1
            elif message.text or message.reasoning:
                item = AssistantItem(key=message.id)
                item.text.set(message.text)
                item.reasoning.set(message.reasoning)
                self._add(item)
            self._calls[message.id] = [c.id for c in message.tool_calls]
            for call in message.tool_calls:
                tool = self._call(call.id)
                tool.name = tool.name or call.name
                tool.arguments = tool.arguments or call.arguments
                tool.title = tool.title or tool_title(call.name, call.arguments)
                tool.version += 1

    def _call(self, call_id: str) -> ToolItem:
        item = self._by_key.get(call_id)
        if isinstance(item, ToolItem):
            return item
        item = ToolItem(key=call_id)
        self._add(item)
        return item

    def _result(self, message: Message) -> None:
        item = self._call(message.tool_call_id or message.id)
        self._tool_messages[message.id] = item.key
        item.name = item.name or message.name
        item.title = item.title or item.name
        item.output.set(message.text)
        item.chars = item.chars or len(message.text)
        if item.state in ("waiting", "running"):
            item.state = "error" if message.is_error else "done"
        item.version += 1

    def _tool(self, event: ev.ToolStarted | ev.ToolOutputStreamed | ev.ToolFinished) -> set[Aspect]:
        item = self._call(event.call_id)
        match event:
            case ev.ToolStarted():
                item.name, item.title, item.arguments = event.name, event.title, event.arguments
                item.state = "running"
            case ev.ToolOutputStreamed():
                item.output.add(event.text)
            case ev.ToolFinished():
                item.state = "error" if event.is_error else "done"
                item.summary, item.chars, item.seconds = event.summary, event.chars, event.seconds
                item.omission_id, item.diff = event.omission_id or item.omission_id, event.diff
        item.version += 1
        return {"items"}

    def _compaction(self, event: ev.CompactionStarted | ev.CompactionFinished | ev.CompactionFailed) -> set[Aspect]:
        running = next(
            (i for i in reversed(self.items[-50:]) if isinstance(i, CompactionItem) and i.state == "running"), None
        )
        match event:
            case ev.CompactionStarted():
                self._add(
                    CompactionItem(
                        key=f"compaction-{event.cycle}-{self._fresh('c')}",
                        trigger=event.trigger,
                        state="running",
                        messages=event.messages,
                        tokens=event.tokens,
                        cut=event.cut,
                    )
                )
            case ev.CompactionFinished():
                if running is None:
                    running = CompactionItem(key=self._fresh("compaction"), trigger=event.entry.trigger, state="done")
                    self._add(running)
                running.state, running.entry = "done", event.entry
                running.version += 1
            case ev.CompactionFailed():
                if running is None:
                    running = CompactionItem(key=self._fresh("compaction"), trigger=event.trigger, state="failed")
                    self._add(running)
                running.state, running.reason = "skipped" if event.skipped else "failed", event.reason
                running.version += 1
        return {"items"}

    def _link(self, message_id: str, omission_id: str) -> ToolItem | None:
        item = self._by_key.get(self._tool_messages.get(message_id, ""))
        if not isinstance(item, ToolItem):
            return None
        item.omission_id = omission_id
        item.version += 1
        return item

    def _reduced(self, change: ev.OutputsReplaced | ev.ViewReduced | log.Entry, key: str) -> None:
        from marextui.tui import reductions  # the first paint shows none

        item = reductions.item_of(change, key)
        if item is None:
            return
        for row in item.rows:
            card = self._link(row.message_id, row.omission_id) if item.why in _WHOLE_OUTPUTS else None
            if card is not None:
                card.omitted = True
        self._name_rows(item)
        self._add(item)

    def _name_rows(self, item: ReductionItem) -> None:
        """Give the rows the titles that are known by now."""
        for row in item.rows:
            if not row.title and (found := self._title_of(row.message_id, row.call)):
                row.title = found
                item.version += 1

    def _title_of(self, message_id: str, call: int) -> str:
        """What a text that was put aside is known as on the screen; "" when its message is not loaded."""
        calls = self._calls.get(message_id, ())
        key = self._tool_messages.get(message_id, message_id) if call < 0 else calls[call] if call < len(calls) else ""
        item = self._by_key.get(key)
        if isinstance(item, ToolItem):
            return item.title
        return {UserItem: "your message", AssistantItem: "an answer"}.get(type(item), "")

    def _told(self, event: ev.ContextUpdatePlaced | ev.ProjectCopied, key: str) -> None:
        notice = project_notice(event, key)
        if notice is not None:
            self._add(notice)

    def _notice(
        self,
        level: Literal["info", "warning", "error"],
        text: str,
        hint: str,
        action: Literal["", "retry", "compact"],
    ) -> None:
        self._add(NoticeItem(key=self._fresh("notice"), level=level, text=text, hint=hint, action=action))

    def _close_turn(self, end: log.TurnEnd) -> None:
        """Nothing streams or runs any more; what was cut short says so."""
        for item in reversed(self.items):
            if isinstance(item, TurnItem):
                break
            if isinstance(item, AssistantItem) and item.streaming:
                item.streaming = False
                item.stopped = end != "done"
                item.version += 1
            elif isinstance(item, ToolItem) and item.state in ("waiting", "running"):
                item.state = "stopped"
                item.version += 1
        if end == "interrupted":
            for item in reversed(self.items):
                if isinstance(item, AssistantItem | UserItem | TurnItem):
                    if isinstance(item, AssistantItem):
                        item.stopped = True
                        item.version += 1
                    break

    # --- the past --------------------------------------------------------------------------------------------------
    def prepend(self, page: HistoryPage) -> int:
        """Put an older page of the log before everything loaded; returns by how many items that grew the model."""
        past = ViewModel()
        past._by_key = {k: i for k, i in self._by_key.items() if isinstance(i, ToolItem)}
        past._tool_messages, past._calls = self._tool_messages, self._calls
        for record in page.records:
            past._record(record)
        self._later.before(past._later, past.items)
        fresh = [i for i in past.items if i.key not in self._by_key]
        self.items[:0] = fresh
        self.first -= len(fresh)
        self._by_key.update({i.key: i for i in fresh})
        for item in self.items:
            if isinstance(item, ReductionItem):
                self._name_rows(item)
        self.first_seq, self.more = page.first_seq, page.more
        return len(fresh)

    def _record(self, record: log.Record) -> None:
        from marextui.context import entries as log  # there is nothing to read at the first paint

        entry = record.entry
        match entry:
            case log.MessageAdded():
                self._message(entry.message)
            case log.OutputsOmitted() | log.InputsOmitted() | log.TextsShortened() | log.ReasoningDropped():
                self._reduced(entry, f"reduction-{record.seq}")
            case log.CompactionCommitted():
                self._add(
                    CompactionItem(key=f"compaction-{record.seq}", trigger=entry.trigger, state="done", entry=entry)
                )
            case log.CompactionUndone():
                self._later.undone(entry.cycle, self.items)
                text = f"Compaction {entry.cycle} was undone."
                self._add(NoticeItem(key=f"notice-{record.seq}", level="info", text=text))
            case log.CompactionChecked():
                self._later.checked(entry, self.items)
            case log.ContextUpdated() | log.ProjectSnapshotTaken():
                self._told(logged_event(entry), f"project-{record.seq}")
            case log.NoticeLogged():
                self._add(NoticeItem(key=f"notice-{record.seq}", level=entry.level, text=entry.text))
            case log.TurnClosed():
                self._close_turn(entry.end)
                usage = UsageLine(entry.turn, entry.inp, entry.out, entry.cache_read, "", 0, entry.seconds, entry.model)
                self._add(TurnItem(key=f"turn-{record.seq}", end=entry.end, usage=usage))
            case _:
                pass
