"""First-run facts and the endpoint form: what was found on this machine, and saving what a person typed."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from marextui.engine.api import ModelOption, SetupReport
from marextui.models.hub import Hub, check_endpoint
from marextui.models.types import ModelChoice
from marextui.settings import write_setting
from marextui.tools.listing import list_files

INSTALL_COMMAND = "pip install 'marextui[local]'"
MAX_FILES = 5_000


@dataclass(slots=True)
class Setup:
    """Asks the hub and the disk; writes the user's settings file. `root` is the project folder."""

    hub: Hub | None
    root: Path
    config_file: Path

    async def report(self, options: Sequence[ModelOption]) -> SetupReport:
        """What the first-run screen shows."""
        if self.hub is None:
            return SetupReport(tuple(options), False, False, INSTALL_COMMAND, ())
        facts = await self.hub.setup_report()
        return SetupReport(
            options=tuple(options),
            engine_installed=facts.engine_installed,
            weights_installed=facts.weights_installed,
            install_command=INSTALL_COMMAND,
            probed=tuple((f.kind, f.url, f.answered) for f in facts.probed),
        )

    async def configure(self, base_url: str, api_key: str, model: str) -> tuple[str, ModelChoice | None]:
        """Check an endpoint, save it as the user's setting; ("", choice) or (what is wrong, None)."""
        problem, models = await check_endpoint(base_url, api_key, model)
        if problem:
            return problem, None
        name = model or (models[0] if models else "")
        if not name:
            return "The server lists no models: type the name of one.", None
        try:
            for key, value in (("base_url", base_url), ("api_key", api_key), ("model", name)):
                await asyncio.to_thread(write_setting, self.config_file, key, value)
        except OSError as error:
            return f"It works, but {self.config_file} could not be written: {error.strerror or error}", None
        if self.hub is not None:
            self.hub.configure(base_url=base_url, api_key=api_key, model=name)
            for choice in await self.hub.choices():
                if choice.kind == "endpoint" and choice.name == name:
                    return "", choice
        return "", ModelChoice("endpoint", name, name, base_url=base_url, api_key=api_key, local=False)

    async def save(self, values: Mapping[str, bool | str]) -> str:
        """Write those settings into the user's file; "" or why it could not be done."""
        try:
            for key, value in values.items():
                await asyncio.to_thread(write_setting, self.config_file, key, value)
        except ValueError as problem:
            return f"{problem}."
        except OSError as error:
            return f"{self.config_file} could not be written: {error.strerror or error}."
        return ""

    async def project_files(self) -> tuple[str, ...]:
        """Paths relative to the project for `@` completion, ignored ones left out; none when it cannot be read."""
        try:
            listing = await list_files(self.root, limit=MAX_FILES)
        except OSError:
            return ()  # completion only: the tools will say what is wrong with the folder
        return tuple(sorted(listing.files))
