"""The actions on pages and trackers: `/page`, `/tracker`, and the keys of their screen."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import work
from textual.app import App

from marextui.engine.api import EngineApi
from marextui.tui.pane_actions import PANE_ACTIONS
from marextui.tui.ports import Ports

if TYPE_CHECKING:
    from marextui.tui.screens.notes import Choice

NEW_PAGE = "# {name}\n\nOne line that says what this page is about.\n"


class ProjectCommands(App[None], inherit_bindings=False):
    """Actions of scope "app" about pages and trackers; `tui.commands.CommandApp` adds the rest."""

    engine: EngineApi
    ports: Ports

    @work(group="dialog")
    async def action_page(self, argument: str = "") -> None:
        """`/page`: the list; with a name: that page in the editor, made if there is none."""
        if argument:
            await self._edit_page(argument)
        else:
            await self._notes("")

    @work(group="dialog")
    async def action_tracker(self, argument: str = "") -> None:
        """`/tracker`: the list; with a name and a value: set it; with a name alone: ask for the value."""
        name, _, rest = argument.partition(" ")
        value, _, unit = rest.strip().partition(" ")
        if value:
            await self._set_tracker(name, value, unit.strip())
        elif name:
            await self._ask_tracker(name)
        else:
            await self._notes("tracker")

    async def _notes(self, current: str) -> None:
        """The list, again after everything that was done from it, until it is closed."""
        from marextui.tui.screens.notes import NotesScreen

        while True:
            report = await self.engine.memory()
            if current == "tracker" and report.trackers:
                current = f"tracker {report.trackers[0].slug}"
            choice = await self.push_screen_wait(NotesScreen(report, keys=self._note_keys(), current=current))
            if choice is None:
                return
            current = choice.id
            await self._act(choice)

    def _note_keys(self) -> str:
        shown = [a for a in PANE_ACTIONS if a.scope == "notes" and a.footer]
        return " · ".join(f"{self.label(a.id)} {a.title.lower()}" for a in shown)

    def label(self, action_id: str) -> str:
        """The key that runs an action now."""
        raise NotImplementedError

    async def _act(self, choice: Choice) -> None:
        if choice.what == "delete":
            await self._delete(choice)
        elif choice.kind == "tracker":
            await self._ask_tracker(choice.name)
        elif choice.what == "edit":
            await self._edit_page(choice.name)
        else:
            await self._open_page(choice.name)

    async def _open_page(self, name: str) -> None:
        from marextui.tui.screens.viewer import TextViewer

        text = await self.engine.page_text(name)
        if text is None:
            self.notify(f"There is no page {name}.", severity="warning")
        else:
            await self.push_screen_wait(TextViewer(f"Page {name}", text, language="markdown"))

    async def _edit_page(self, name: str) -> None:
        if not name:
            name = await self._ask_name()
        if not name:
            return
        known = await self.engine.page_text(name)
        before = NEW_PAGE.format(name=name) if known is None else known
        outcome = await self.ports.editor.edit(before)
        if outcome.problem or outcome.text is None:
            kept = f" Your text is kept in {outcome.path}." if outcome.path else ""
            self.notify((outcome.problem or "The page was not changed.") + kept, severity="error")
        elif outcome.text == before:
            self.notify(f"The page {name} was not changed.")
        elif not outcome.text.strip():
            self.notify("An empty page is not saved; delete it from the list instead.", severity="warning")
        else:
            self._tell(await self.engine.save_page(name, outcome.text), f"The page {name}", "saved")

    async def _ask_name(self) -> str:
        from marextui.tui.screens.form import Form

        note = "Letters, digits and dashes. The editor opens next."
        filled = await self.push_screen_wait(Form("New page", [("Name", "")], note=note))
        return filled[0] if filled else ""

    async def _ask_tracker(self, name: str) -> None:
        from marextui.tui.screens.form import Form

        report = await self.engine.memory()
        known = next((t for t in report.trackers if t.slug == name), None)
        value, unit = (known.value, known.unit) if known else ("", "")
        fields = [("Name", name), ("Value", value), ("Unit, may be blank", unit)]
        filled = await self.push_screen_wait(
            Form("Tracker", fields, required=2, note="It is dated today. Enter goes on.")
        )
        if filled is not None:
            await self._set_tracker(*filled)

    async def _set_tracker(self, name: str, value: str, unit: str) -> None:
        self._tell(await self.engine.set_tracker(name, value, unit), f"The tracker {name}", "set")

    async def _delete(self, choice: Choice) -> None:
        from marextui.tui.screens.confirm import Confirm

        detail = "Its file is kept in the folder .deleted beside the pages." if choice.kind == "page" else ""
        if not await self.push_screen_wait(Confirm(f"Delete the {choice.kind} {choice.name}?", detail)):
            return
        delete = self.engine.delete_page if choice.kind == "page" else self.engine.delete_tracker
        self._tell(await delete(choice.name), f"The {choice.kind} {choice.name}", "deleted")

    def _tell(self, problem: str, subject: str, done: str) -> None:
        if problem:
            self.notify(f"{subject} was not {done}: {problem}.", severity="error")
        else:
            self.notify(f"{subject} was {done}.")
