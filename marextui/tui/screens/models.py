"""The model picker."""

from __future__ import annotations

from collections.abc import Sequence

from textual.screen import ModalScreen

from marextui.engine.api import ModelOption
from marextui.tui.action_types import bindings_for
from marextui.tui.pane_actions import PANE_ACTIONS


class ModelPicker(ModalScreen[str | None]):
    """Dismisses with the chosen `ModelOption.id`, None when cancelled."""

    BINDINGS = [*bindings_for(PANE_ACTIONS, "picker")]

    def __init__(self, options: Sequence[ModelOption]) -> None:
        super().__init__()
        self.options = tuple(options)
