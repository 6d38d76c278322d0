"""The status line as plain data: a fold of the events that say what the engine does."""

from __future__ import annotations

from dataclasses import dataclass

from marextui.engine import events as ev
from marextui.engine.event_values import Phase, UsageLine

StatusEvent = ev.ModelLoading | ev.ModelReady | ev.PhaseChanged | ev.PromptProcessed | ev.StepStarted


@dataclass(slots=True)
class Status:
    """What the engine does, which model, what the last turn used."""

    phase: Phase = "idle"
    detail: str = ""
    model: str = ""
    local: bool = False
    usage: UsageLine | None = None
    progress: ev.PromptProcessed | None = None
    """How far the server is with the prompt; None as soon as it answers."""

    def apply(self, event: StatusEvent) -> None:
        match event:
            case ev.ModelLoading():
                share = f" {event.done * 100 // event.total} %" if event.total else ""
                self.phase, self.detail = "loading", f"{event.label}: {event.stage}{share}"
            case ev.ModelReady():
                self.model, self.local = event.label, event.local
                if self.phase == "loading":
                    self.phase, self.detail = "idle", ""
            case ev.PhaseChanged():
                self.phase, self.detail, self.progress = event.phase, event.detail, None
            case ev.PromptProcessed():
                self.progress = event
            case ev.StepStarted():
                self.detail = f"step {event.step}" if event.step > 1 else ""
