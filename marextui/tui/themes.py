"""Colour themes from TOML files: the shipped ones and the user's."""

from __future__ import annotations

from pathlib import Path

from textual.theme import Theme


def load_themes(user_dir: Path | None) -> tuple[list[Theme], list[str]]:
    """(themes, problems): the shipped themes, then those of `user_dir` (same name replaces).

    A broken file never stops the app: it is left out and a sentence naming the file and the cause is returned.
    """
    raise NotImplementedError
