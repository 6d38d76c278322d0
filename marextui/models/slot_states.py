"""The state of a llama.cpp slot on disk: `POST /slots/0?action=save` and `restore` of a server with a folder for it.

The server was started with `--slot-save-path`; there is no other way to ask whether it was than to try (501 if not).
"""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from marextui.context.messages import canonical_json
from marextui.models.discovery import fetch_json
from marextui.models.endpoint import http_client, join, server_root
from marextui.models.lenient import as_int, at, items

SECONDS = 5.0
"""A server busy with something else answers only when it is done: then there is no state."""


@dataclass(frozen=True, slots=True)
class LlamaSlotStates:
    """States of slot 0 of the llama.cpp server at `base_url`. `folder` is where the files lie, None when the disk is
    the server's; `weights` is the model's file, when it is ours."""

    base_url: str
    model: str
    api_key: str = ""
    folder: Path | None = None
    weights: Path | None = None

    async def engine(self) -> str:
        """A digest of what a state depends on: build, model, its size, window; "" when the server does not tell."""
        root = server_root(self.base_url)
        async with http_client(self.base_url, silence_timeout=SECONDS) as http:
            props = await fetch_json(http, f"{root}/props", api_key=self.api_key)
            listing = await fetch_json(http, join(self.base_url, "models"), api_key=self.api_key)
        build, path = at(props, "build_info"), at(props, "model_path")
        if not build or not path:
            return ""
        metas = [at(m, "meta") for m in items(at(listing, "data")) if at(m, "id") == self.model]
        told: list[Any] = [build, path, at(props, "default_generation_settings", "n_ctx"), metas]
        if self.weights is not None:
            try:
                stat = self.weights.stat()
            except OSError:
                return ""
            told += [stat.st_size, stat.st_mtime_ns]
        return hashlib.sha256(canonical_json(told).encode()).hexdigest()

    async def save(self, file: str) -> tuple[int, int] | None:
        """Write the slot's state as `file`: (tokens, bytes); None when the server cannot or did not in time."""
        told = await self._ask("save", file)
        tokens, size = as_int(at(told, "n_saved")), as_int(at(told, "n_written"))
        return None if tokens is None or size is None else (tokens, size)

    async def restore(self, file: str) -> int | None:
        """Bring `file` back into the slot: its tokens; None when the server has no such file or does not want it."""
        return as_int(at(await self._ask("restore", file), "n_restored"))

    async def _ask(self, action: str, file: str) -> Any:
        url = f"{server_root(self.base_url)}/slots/0?action={action}"
        async with http_client(self.base_url, silence_timeout=SECONDS) as http:
            return await fetch_json(http, url, api_key=self.api_key, body={"filename": file}, timeout=SECONDS)
