"""Prompts typed while the engine was busy: shown, editable, never merged or lost (cases 35, 36, 117)."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass

from marextui.context.messages import Content, Message
from marextui.engine.bus import Bus
from marextui.engine.event_values import QueuedPrompt
from marextui.engine.events import QueueChanged
from marextui.engine.ports import Ids


@dataclass(slots=True)
class Prompt:
    """A prompt waiting its turn."""

    id: str
    content: Content

    @property
    def text(self) -> str:
        return Message("", "user", self.content).text


class PromptQueue:
    """First in, first out. `paused` after an interrupt: people stop a turn to think, not to start the next one."""

    def __init__(self, bus: Bus, ids: Ids) -> None:
        self._bus = bus
        self._ids = ids
        self._items: deque[Prompt] = deque()
        self.paused = False

    def __len__(self) -> int:
        return len(self._items)

    def add(self, content: Content, *, announce: bool) -> bool:
        """Append; False when there is nothing in `content`."""
        if isinstance(content, str) and not content.strip():
            return False
        self._items.append(Prompt(self._ids.new("q"), content))
        self.paused = False
        if announce:
            self.announce()
        return True

    def put_back(self, content: Content) -> None:
        """A prompt could not be started: it goes to the head again and the queue waits."""
        self._items.appendleft(Prompt(self._ids.new("q"), content))
        self.paused = True
        self.announce()

    def take(self) -> Prompt | None:
        """The next prompt to send, None when there is none or the queue is paused."""
        if self.paused or not self._items:
            return None
        prompt = self._items.popleft()
        self.announce()
        return prompt

    def edit(self, prompt_id: str, text: str) -> bool:
        for prompt in self._items:
            if prompt.id == prompt_id:
                prompt.content = text
                self.announce()
                return True
        return False

    def drop(self, prompt_id: str) -> QueuedPrompt | None:
        for prompt in self._items:
            if prompt.id == prompt_id:
                self._items.remove(prompt)
                self.announce()
                return QueuedPrompt(prompt.id, prompt.text)
        return None

    def announce(self) -> None:
        self._bus.emit(QueueChanged(tuple(QueuedPrompt(p.id, p.text) for p in self._items)))
