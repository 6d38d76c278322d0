"""Delivers engine events to whoever listens, in order, in the event loop."""

from __future__ import annotations

from collections.abc import Callable

from marextui.engine.events import Event, Phase, PhaseChanged

Listener = Callable[[Event], None]


class Bus:
    """A list of listeners. Emitting is synchronous: a listener only notes the event; coalescing is the screen's."""

    def __init__(self) -> None:
        self._listeners: list[Listener] = []
        self.phase: Phase = "idle"

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        self._listeners.append(listener)

        def stop() -> None:
            if listener in self._listeners:
                self._listeners.remove(listener)

        return stop

    def emit(self, event: Event) -> None:
        for listener in tuple(self._listeners):
            listener(event)

    def enter(self, phase: Phase, detail: str = "") -> None:
        """Say what the engine is doing now."""
        self.phase = phase
        self.emit(PhaseChanged(phase, detail))
