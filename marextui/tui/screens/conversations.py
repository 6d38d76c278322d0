"""The conversation picker."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Sequence

from textual.content import Content

from marextui.engine.api import ConversationInfo
from marextui.tui import formats
from marextui.tui.ports import ports_of
from marextui.tui.screens.picker import Picker, Row
from marextui.tui.text import line

LIMIT = 200
"""Rows shown; a search narrows them down."""


def conversation_row(info: ConversationInfo, now: float) -> Content:
    """Two lines for a conversation; `now` in seconds since the epoch."""
    facts = [formats.day(info.updated_at, now)]
    facts.append(f"{formats.tokens(info.turns)} turn{'' if info.turns == 1 else 's'}")
    facts.append(f"{formats.tokens(info.messages)} message{'' if info.messages == 1 else 's'}")
    facts.append(line(info.project, 120).plain)
    facts.append(line(info.id, 40).plain)  # tells equal titles apart; `--resume` takes it
    title = line(info.title, 160) if info.title.strip() else Content("untitled")
    return Content.assemble(title.stylize("bold"), "\n  ", " · ".join(filter(None, facts)))


class ConversationPicker(Picker):
    """Dismisses with the chosen conversation id, None when cancelled. `search` is asked as the person types."""

    def __init__(
        self, rows: Sequence[ConversationInfo], search: Callable[[str], Awaitable[list[ConversationInfo]]]
    ) -> None:
        super().__init__(
            "Conversations",
            "Type to search titles and texts",
            "No conversation here yet: it is kept from the first message on.",
        )
        self.rows = tuple(rows)
        self.search = search

    def rows_for(self, query: str) -> Sequence[Row]:
        """The rows given at the start; what was typed is answered by `search`."""
        return self._rows(self.rows)

    def _rows(self, found: Sequence[ConversationInfo]) -> Sequence[Row]:
        now = ports_of(self.app).clock.now()
        return [(info.id, conversation_row(info, now)) for info in found[:LIMIT]]

    def typed(self, query: str) -> None:
        self.run_worker(self._find(query), exclusive=True, group="search", exit_on_error=False)

    async def _find(self, query: str) -> None:
        """Ask the engine; a newer query replaces this one."""
        found = await self.search(query) if query.strip() else list(self.rows)
        more = len(found) - LIMIT
        note = f"{formats.tokens(more)} more: type to narrow down" if more > 0 else ""
        self.set_rows(self._rows(found), note=note)
