"""Colour themes from TOML files: the shipped ones and the user's.

A file has `name`, `dark` (default true), `ansi` (default false; the terminal's own colours), a table `colors` with at
least `primary`, and a table `variables` with any Textual variable ("border", "text-muted", ...).
"""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator
from pathlib import Path

from textual.color import Color, ColorParseError
from textual.theme import Theme

COLORS = (
    "primary",
    "secondary",
    "warning",
    "error",
    "success",
    "accent",
    "foreground",
    "background",
    "surface",
    "panel",
    "boost",
)
DEFAULT_THEME = "marex-dark"

_HERE = Path(__file__).resolve().parent
SHIPPED = (_HERE.parent / "themes", _HERE.parent.parent / "themes")
"""Where the shipped themes are: in the installed package, or at the top of a checkout."""


class ThemeProblem(ValueError):
    """A theme file cannot be used; the message says why."""


def load_themes(user_dir: Path | None) -> tuple[list[Theme], list[str]]:
    """(themes, problems): the shipped themes, then those of `user_dir` (same name replaces).

    A broken file never stops the app: it is left out and a sentence naming the file and the cause is returned.
    """
    themes: dict[str, Theme] = {}
    problems: list[str] = []
    for path in _files(user_dir, problems):
        try:
            theme = parse_theme(path.read_text(encoding="utf-8"))
        except ThemeProblem as error:
            problems.append(f"The theme file {path} is left out: {error}.")
        except UnicodeDecodeError:
            problems.append(f"The theme file {path} is left out: it is not UTF-8 text.")
        except OSError as error:
            problems.append(f"The theme file {path} cannot be read: {error.strerror or error}.")
        else:
            themes[theme.name] = theme
    return list(themes.values()), problems


def _files(user_dir: Path | None, problems: list[str]) -> Iterator[Path]:
    shipped = next((folder for folder in SHIPPED if folder.is_dir()), None)
    if shipped is None:
        problems.append("The shipped themes are missing: Textual's own are used. Installing marextui again helps.")
    for folder in (shipped, user_dir):
        if folder is None:
            continue
        try:
            yield from sorted(folder.glob("*.toml"))
        except OSError as error:
            problems.append(f"The theme folder {folder} cannot be read: {error.strerror or error}.")


def parse_theme(source: str) -> Theme:
    """The theme in a TOML text. Raises `ThemeProblem`."""
    try:
        data = tomllib.loads(source)
    except tomllib.TOMLDecodeError as error:
        raise ThemeProblem(f"it is not valid TOML ({error})") from None
    unknown = sorted(data.keys() - {"name", "dark", "ansi", "colors", "variables"})
    if unknown:
        raise ThemeProblem(f"{unknown[0]!r} is not a key of a theme")
    name = data.get("name")
    if not isinstance(name, str) or not name.strip():
        raise ThemeProblem("it has no name")
    flags = {}
    for key, default in (("dark", True), ("ansi", False)):
        flags[key] = data.get(key, default)
        if not isinstance(flags[key], bool):
            raise ThemeProblem(f"{key!r} must be true or false")
    colors = _strings(data, "colors")
    for key, value in colors.items():
        if key not in COLORS:
            raise ThemeProblem(f"{key!r} is not one of the colours ({', '.join(COLORS)})")
        _check_color(key, value)
    if "primary" not in colors:
        raise ThemeProblem("its colours have no 'primary'")
    variables = _strings(data, "variables")
    for key, value in variables.items():
        _check_variable(key, value)
    return Theme(
        name=name.strip(),
        primary=colors["primary"],
        secondary=colors.get("secondary"),
        warning=colors.get("warning"),
        error=colors.get("error"),
        success=colors.get("success"),
        accent=colors.get("accent"),
        foreground=colors.get("foreground"),
        background=colors.get("background"),
        surface=colors.get("surface"),
        panel=colors.get("panel"),
        boost=colors.get("boost"),
        dark=flags["dark"],
        ansi=flags["ansi"],
        variables=variables,
    )


def _strings(data: dict[str, object], key: str) -> dict[str, str]:
    table = data.get(key, {})
    if not isinstance(table, dict) or not all(isinstance(v, str) for v in table.values()):
        raise ThemeProblem(f"{key!r} must be a table of texts")
    return table


def _check_color(key: str, value: str) -> None:
    try:
        Color.parse(value)
    except ColorParseError:
        raise ThemeProblem(f"{value!r} ({key}) is not a colour") from None


_STYLE_WORDS = frozenset({"none", "bold", "dim", "italic", "underline", "reverse", "strike", "not"})


def _check_variable(key: str, value: str) -> None:
    """A wrong variable would only crash later, when a style uses it."""
    if re.fullmatch(r"[a-z][a-z0-9-]*", key) is None:
        raise ThemeProblem(f"{key!r} is not the name of a variable")
    if key.endswith("-style"):
        if not value or not _STYLE_WORDS.issuperset(value.split()):
            raise ThemeProblem(f"{value!r} ({key}) is not a text style")
        return
    color, _, share = value.partition(" ")
    if share and re.fullmatch(r"\d{1,3}%", share) is None:
        raise ThemeProblem(f"{value!r} ({key}) is not a colour")
    _check_color(key, color)
