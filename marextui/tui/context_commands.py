"""The actions that look at the context and change what of it is sent: `/compact …`, `/context …`; `/doctor`."""

from __future__ import annotations

from textual import work
from textual.app import App

from marextui.engine.api import EngineApi
from marextui.engine.events import ProbesAnswered
from marextui.tui.glyphs import drawn


class ContextCommands(App[None], inherit_bindings=False):
    """Actions of scope "app" about the context; `tui.commands.CommandApp` adds the rest."""

    engine: EngineApi

    def action_compact(self) -> None:
        self.engine.compact()

    def action_compact_offline(self) -> None:
        self.engine.compact(offline=True)

    def action_phase(self, argument: str = "") -> None:
        name = argument.strip()
        if not name:
            self.notify("No phase was begun: say which one, as in /phase implement.", severity="warning")
            return
        self.engine.begin_phase(name)

    def action_compact_undo(self, argument: str = "") -> None:
        word = argument.strip().lower()
        if word not in ("", "force"):
            self.notify(f"Nothing was undone: /compact undo takes no word but force, not {word!r}.", severity="warning")
            return
        self.engine.undo_compaction(force=word == "force")

    @work(group="dialog")
    async def action_compact_preview(self) -> None:
        from marextui.tui.compaction_text import preview_text
        from marextui.tui.screens.viewer import TextViewer

        text = preview_text(await self.engine.preview_compaction())
        await self.push_screen(TextViewer("Preview of a compaction", drawn(self, text)))

    @work(group="dialog")
    async def action_context(self) -> None:
        from marextui.tui.screens.context import ContextScreen

        await self.push_screen(ContextScreen(await self.engine.context()))

    @work(group="dialog")
    async def action_context_check(self) -> None:
        from marextui.tui.compaction_text import check_text
        from marextui.tui.screens.viewer import TextViewer

        await self.push_screen(TextViewer("Context check", drawn(self, check_text(await self.engine.context_check()))))

    def action_probe(self) -> None:
        self.engine.probe()

    def action_doctor(self, argument: str = "") -> None:
        word = argument.strip().lower()
        if word not in ("", "yes"):
            self.notify(f"Nothing was sent: /doctor takes no word but yes, not {word!r}.", severity="warning")
            return
        self.engine.examine(agreed=word == "yes")

    def show_examination(self, text: str) -> None:
        """What `/doctor` found about the model's server."""
        from marextui.tui.screens.viewer import TextViewer

        self.push_screen(TextViewer("The model's server", drawn(self, text)))

    def show_probes(self, answers: ProbesAnswered) -> None:
        """The graded answers; "-" is one that does not contain what was expected."""
        from marextui.tui.compaction_text import probe_text
        from marextui.tui.screens.viewer import TextViewer

        self.push_screen(TextViewer("What the model remembers", drawn(self, probe_text(answers)), language="diff"))
