"""Showing things in full: blocks, stored outputs, the draft and memory in the viewer, the editor or the pager.

A dialog is imported when it is opened, as in `tui.commands`.
"""

from __future__ import annotations

from pathlib import Path

from textual import work
from textual.app import App

from marextui.engine.api import EngineApi
from marextui.tui import formats
from marextui.tui.glyphs import drawn
from marextui.tui.items import CompactionItem, Item, ReductionItem, ToolItem
from marextui.tui.main_screen import MainScreen
from marextui.tui.ports import Ports


class OpenCommands(App[None], inherit_bindings=False):
    """What `tui.commands.CommandApp` does to show something; the attributes are set by `tui.app.MarexApp`."""

    engine: EngineApi
    main: MainScreen
    ports: Ports

    @work(group="open", exclusive=True)
    async def open_item(self, item: Item, how: str) -> None:
        """A block of the conversation in the viewer, the editor or the pager, in full."""
        from marextui.tui.compaction_text import diff_text
        from marextui.tui.screens.viewer import TextViewer

        text, title, language = item.source, _title(item), ""
        if isinstance(item, ReductionItem) and how == "viewer":
            await self._open_aside(item)
            return
        if isinstance(item, ToolItem):
            if item.diff:
                text, language = item.diff, "diff"
            elif item.omission_id:
                stored = await self._stored(item.omission_id, "This is what is left of it.")
                text = text if stored is None else stored
        elif isinstance(item, CompactionItem) and item.entry is not None:
            diff = await self.engine.compaction_diff(item.entry.cycle)
            if diff is not None:
                text, language = drawn(self, diff_text(diff)), "diff"
        if how == "editor":
            outcome = await self.ports.editor.edit(text)
            problem = outcome.problem
        elif how == "pager":
            problem = await self.ports.pager.show(text, title=title)
        else:
            problem = ""
            await self.push_screen(TextViewer(title, text, language=language))
        if problem:
            self.notify(problem, severity="error")

    async def _open_aside(self, item: ReductionItem) -> None:
        """One of the texts that were put aside; with several, the one that is picked."""
        from marextui.tui.screens.palette import Palette

        chosen: str | None = item.rows[0].omission_id
        if len(item.rows) > 1:
            rows = [(r.omission_id, f"{r.omission_id} {r.title}".strip(), formats.chars(r.chars)) for r in item.rows]
            chosen = await self.push_screen_wait(Palette("Put aside", rows))
        if chosen:
            await self._show_omission(chosen)

    @work(group="open", exclusive=True)
    async def action_open_omission(self, omission_id: str) -> None:
        await self._show_omission(omission_id)

    async def _show_omission(self, omission_id: str) -> None:
        from marextui.tui.screens.viewer import TextViewer

        text = await self._stored(omission_id)
        if text is not None:
            await self.push_screen(TextViewer(f"Omission {omission_id}", text))

    async def _stored(self, omission_id: str, instead: str = "") -> str | None:
        """A stored output; None after the person was told why there is none, and what they see `instead`."""
        try:
            text = await self.engine.read_omission(omission_id)
        except OSError as error:
            self.notify(f"{omission_id} cannot be read: {error.strerror or error}. {instead}", severity="error")
            return None
        if text is None:
            why = "its days are over, or it made room for newer ones"
            self.notify(f"{omission_id} is no longer stored: {why}. {instead}", severity="warning")
        return text

    @work(group="editor", exclusive=True)
    async def edit_draft(self, text: str) -> None:
        outcome = await self.ports.editor.edit(text)
        if outcome.text is not None:
            self.main.composer.set_text(outcome.text.rstrip("\n"))
        if outcome.problem:
            kept = f" Your text is kept in {outcome.path}." if outcome.path else ""
            self.notify(outcome.problem + kept, severity="error")

    @work(group="editor", exclusive=True)
    async def edit_memory(self, path: str) -> None:
        problem = await self.ports.editor.open(Path(path))
        if problem:
            self.notify(problem, severity="error")
        await self.engine.reload_memory()

    @work(group="dialog")
    async def open_link(self, href: str) -> None:
        """Only web addresses, only after the person has seen where they lead."""
        from marextui.tui.screens.confirm import Confirm

        if not href.startswith(("http://", "https://")):
            self.notify(f"Not opened, not a web address: {href}", severity="warning")
        elif await self.push_screen_wait(Confirm("Open this address in your browser?", href)):
            self.open_url(href)


def _title(item: Item) -> str:
    if isinstance(item, ToolItem):
        return item.title or item.name
    if isinstance(item, CompactionItem):
        return f"Compaction {item.entry.cycle}" if item.entry else "Compaction"
    return "Message"
