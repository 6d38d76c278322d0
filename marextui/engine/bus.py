"""Delivers engine events to whoever listens, in order, in the event loop."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal

from marextui.engine.event_values import Phase
from marextui.engine.events import Event, Notice, PhaseChanged

Listener = Callable[[Event], None]


class Bus:
    """A list of listeners. Emitting is synchronous: a listener only notes the event; coalescing is the screen's."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self.phase: Phase = "idle"
        self._warned: set[str] = set()

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def emit(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    def warn_once(self, text: str, hint: str = "", *, level: Literal["info", "warning"] = "warning") -> None:
        """Emit a warning that this run has not given yet; "" is none."""
        if text and text not in self._warned:
            self._warned.add(text)
            self.emit(Notice(level, text, hint))

    def enter(self, phase: Phase, detail: str = "") -> None:
        """Say what the engine is doing now."""
        self.phase = phase
        self.emit(PhaseChanged(phase, detail))
