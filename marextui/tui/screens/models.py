"""The model picker."""

from __future__ import annotations

from collections.abc import Sequence

from textual.content import Content

from marextui.engine.api import ModelOption
from marextui.tui.screens.picker import Picker, Row
from marextui.tui.text import line

NO_MODELS = (
    "No model was found: nothing installed, nothing on disk, no server running. "
    "Start marextui without a model to see the first-run screen, which says what to do."
)


def option_row(option: ModelOption) -> Content:
    """Two lines for a model: name, where it runs, whether it is the one in use; then the detail."""
    parts: list[Content | str | tuple[str, str]] = [(line(option.label, 80).plain, "bold")]
    parts.append("  local" if option.local else "  remote")
    if option.current:
        parts.append("  in use")
    return Content.assemble(*parts, "\n  ", line(option.detail, 200))


class ModelPicker(Picker):
    """Dismisses with the chosen `ModelOption.id`, None when cancelled."""

    def __init__(self, options: Sequence[ModelOption]) -> None:
        super().__init__("Models", "Type to filter models", NO_MODELS)
        self.options = tuple(options)

    def rows_for(self, query: str) -> Sequence[Row]:
        words = query.casefold().split()
        return [
            (option.id, option_row(option))
            for option in self.options
            if all(word in f"{option.label}\n{option.detail}\n{option.kind}".casefold() for word in words)
        ]

    def current_id(self) -> str:
        return next((option.id for option in self.options if option.current), "")
