"""What a person has set: defaults, then the user's file, then the project's file, then the environment (B22).

A wrong value never keeps the application from starting: it is reported with its key, file and line, and what stood
before it is used.
"""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Literal
from urllib.parse import urlsplit

import tomli_w

from marextui.context.sections import SECTIONS
from marextui.context.strategy_names import StrategyName
from marextui.context.trigger_names import KEEP_TURNS, SLIDE_BY, ChosenTrigger, CompactBase
from marextui.private_files import ensure_private, write_private
from marextui.settings_schema import BY_NAME, SCHEMA, SWITCHES, Refused, Setting, from_env, from_toml
from marextui.settings_toml import Layout, layout


@dataclass(frozen=True, slots=True)
class Settings:
    """Values in use. Units: `window`, `max_output`, `local_window` tokens; timeouts seconds; others: the schema."""

    model: str = ""
    base_url: str = ""
    api_key: str = field(default="", repr=False)
    window: int | None = None
    max_output: int | None = None
    compact_at: float = 0.65
    auto_compress: bool = True
    compact_base: CompactBase = "budget"
    compact_trigger: ChosenTrigger = "threshold"
    keep_turns: int = KEEP_TURNS
    slide_by: int = SLIDE_BY
    compact_strategy: StrategyName = "anchored"
    summary_sections: tuple[str, ...] = SECTIONS
    beside_tokens: int | None = None
    omit_after_turns: int = 1
    memory_retention_days: int = 30
    omissions_quota_mb: int = 512
    local_window: int = 8192
    max_tool_rounds: int = 25
    keep_images: int = 4
    max_request_mb: int = 20
    bash_timeout: int = 120
    request_timeout: int = 300
    retries: int = 2
    temperature: float | None = None
    theme: str = "marex-dark"
    ascii: bool = False
    editor: str = ""
    pager: str = ""
    keys: dict[str, str] = field(default_factory=dict)
    mouse: bool = True
    persist_usage: bool = True
    compact_continuation: bool = False
    prewarm: Literal["off", "on", "full"] = "off"
    proj_snapshot: bool = False
    warm_resume: Literal["off", "on", "all"] = "on"
    warm_resume_mb: int = 1000


@dataclass(frozen=True, slots=True)
class SettingsProblem:
    """Something wrong in the settings. `key` is "" when a whole file is concerned; `where` is "…/config.toml:12" or
    "environment MAREX_X"; `message` is a sentence.
    """

    key: str
    where: str
    message: str


def load_settings(
    config_file: Path, project_file: Path | None, env: Mapping[str, str]
) -> tuple[Settings, tuple[SettingsProblem, ...]]:
    """The settings in use and everything wrong with them. Never raises; reads at most the two files."""
    loading = _Loading()
    loading.fallbacks(env)
    loading.file(config_file, _short(config_file), project=False)
    if project_file is not None:
        loading.file(project_file, f"{project_file.parent.name}/{project_file.name}", project=True)
    loading.environment(env)
    loading.keep_key_at_home(env)
    return Settings(**loading.values), tuple(loading.problems)


def chosen_keys(config_file: Path, project_file: Path | None, env: Mapping[str, str]) -> frozenset[str]:
    """The settings that a person has set somewhere, whatever to. Never raises; reads at most the two files."""
    loading = _Loading()
    loading.file(config_file, "", project=False)
    if project_file is not None:
        loading.file(project_file, "", project=True)
    loading.environment(env)
    return frozenset(loading.chosen)


def write_setting(config_file: Path, key: str, value: str | int | float | bool | None) -> None:
    """Set `key` in the user's file (None: take it out), leaving all other text and comments as they are.

    Makes the folder (0700) and the file (0600). Raises ValueError for an unknown key, a wrong value or a file that is
    not valid TOML (it is left alone), OSError when the disk refuses.
    """
    setting = BY_NAME.get(key)
    if setting is None or setting.type in ("table of texts", "list of texts"):
        raise ValueError(f"{key} is not a setting that can be written")
    if value is not None:
        try:
            value = from_toml(setting, value)
        except Refused as reason:
            raise ValueError(f"{key} {reason}") from None
    try:
        text = config_file.read_bytes().decode("utf-8-sig")
        tomllib.loads(text)
    except FileNotFoundError:
        text = ""
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ValueError(f"{_short(config_file)} is not valid TOML ({error}); correct it first") from None
    edited = _edited(text, setting, value)
    try:
        tomllib.loads(edited)
    except tomllib.TOMLDecodeError:  # the key stands there as a table
        raise ValueError(
            f"{key} cannot be set in {_short(config_file)}: it is a table there; correct it first"
        ) from None
    ensure_private(config_file.parent)
    write_private(config_file, edited.encode())


def settings_table() -> list[tuple[str, str, str, str, str]]:
    """(key, type, default, unit, help) of each setting, in order, for the README."""
    return [(s.key, s.type, _default_text(s), s.unit, s.help) for s in SCHEMA]


def _default_text(setting: Setting) -> str:
    return "" if setting.default in (None, "", {}) else _said(setting.default)


def _said(value: object) -> str:
    """A value as messages and tables write it."""
    if isinstance(value, tuple):
        return ", ".join(map(str, value))
    return str(value).lower() if isinstance(value, bool) else str(value)


def _short(path: Path) -> str:
    """`path` with the home folder as `~`."""
    try:
        return f"~/{path.relative_to(Path.home()).as_posix()}"
    except (ValueError, RuntimeError):
        return str(path)


def _edited(text: str, setting: Setting, value: object) -> str:
    found = layout(text)
    place = next((found.places[(name,)] for name in (setting.key, *setting.aliases) if (name,) in found.places), None)
    ending = "\r\n" if "\r\n" in text else "\n"
    if value is None:
        if place is None:
            return text
        start = text.rfind("\n", 0, place.start) + 1
        end = text.find("\n", place.end)
        return text[:start] + ("" if end == -1 else text[end + 1 :])
    line = tomli_w.dumps({setting.key: value}).rstrip("\n")
    if place is not None:
        return text[: place.start] + line.partition("=")[2].strip() + text[place.end :]
    head, tail = text[: found.top_end], text[found.top_end :]
    body = head.rstrip()
    gap = head[len(body) :].lstrip("\r\n") if not tail else ""
    before = body + ending if body else ""
    return f"{before}{line}{ending}{gap}" + (ending + tail if tail else "")


class _Loading:
    """Values as the layers are laid over one another, lowest first."""

    def __init__(self) -> None:
        self.values: dict[str, Any] = {s.key: dict(s.default) if s.key == "keys" else s.default for s in SCHEMA}
        self.problems: list[SettingsProblem] = []
        self.chosen: set[str] = set()

    def problem(self, key: str, where: str, message: str) -> None:
        self.problems.append(SettingsProblem(key, where, message))

    def refused(self, setting: Setting, name: str, where: str, reason: str) -> None:
        value = self.values[setting.key]
        if setting.secret or value in ("", {}, None):
            used = "it is ignored"
        else:
            used = f"{_said(value)} {'are' if isinstance(value, tuple) else 'is'} used"
        self.problem(setting.key, where, f"{name} {reason}; {used}.")

    def off(self, setting: Setting) -> None:
        """A switch that was set to something it does not know is off, whatever stood before (L1, L30)."""
        if setting.type in SWITCHES:
            self.values[setting.key] = setting.default

    def fallbacks(self, env: Mapping[str, str]) -> None:
        """Variables of other programs count less than anything a person set here."""
        for setting in SCHEMA:
            value = env.get(setting.fallback_env, "").strip() if setting.fallback_env else ""
            if value:
                self.from_environment(setting, setting.fallback_env, value)
        locale = next((v for n in ("LC_ALL", "LC_CTYPE", "LANG") if (v := env.get(n, ""))), "")
        if env.get("TERM") in ("dumb", "linux") or locale in ("C", "POSIX"):
            self.values["ascii"] = True

    def keep_key_at_home(self, env: Mapping[str, str]) -> None:
        """OPENAI_API_KEY belongs to the service it was made for: never send it to another server set here."""
        borrowed = env.get("OPENAI_API_KEY", "").strip()
        host = urlsplit(self.values["base_url"]).hostname or ""
        at_home = not host or host.endswith("openai.com") or self.values["base_url"] == env.get("OPENAI_BASE_URL")
        if borrowed and self.values["api_key"] == borrowed and not at_home and not env.get("MAREX_API_KEY"):
            self.values["api_key"] = ""

    def environment(self, env: Mapping[str, str]) -> None:
        for setting in SCHEMA:
            for name in (*setting.aliases, f"MAREX_{setting.key.upper()}"):
                if name in env:
                    self.from_environment(setting, name, env[name])
        known = {f"MAREX_{s.key.upper()}" for s in SCHEMA}
        for name in sorted(env):
            if name.startswith("MAREX_") and name not in known and name != "MAREX_HOME":
                close = difflib.get_close_matches(name, sorted(known), n=1, cutoff=0.8)
                if close:
                    self.problem(name, f"environment {name}", f"{name} is not a setting; did you mean {close[0]}?")

    def from_environment(self, setting: Setting, name: str, value: str) -> None:
        self.chosen.add(setting.key)
        try:
            self.values[setting.key] = from_env(setting, value)
        except Refused as reason:
            self.off(setting)
            self.refused(setting, name, f"environment {name}", str(reason))

    def file(self, path: Path, label: str, *, project: bool) -> None:
        try:
            text = path.read_bytes().decode("utf-8-sig")
            raw = tomllib.loads(text)
        except (FileNotFoundError, NotADirectoryError):
            return
        except tomllib.TOMLDecodeError as error:
            said = str(error)
            at = re.search(r"at line (\d+)", said)
            line = int(at[1]) if at else text.count("\n") + (not text.endswith("\n"))
            self.problem("", f"{label}:{line}", f"This is not valid TOML: {said}. The file is ignored until corrected.")
            return
        except UnicodeDecodeError as error:
            line = error.object[: error.start].count(b"\n") + 1
            self.problem("", f"{label}:{line}", "The file is not UTF-8 text. It is ignored until corrected.")
            return
        except OSError as error:
            self.problem("", label, f"The file cannot be read ({error.strerror}). It is ignored.")
            return
        self.layer(raw, layout(text), label, project=project)

    def layer(self, raw: Mapping[str, Any], found: Layout, label: str, *, project: bool) -> None:
        for name, value in raw.items():
            where = f"{label}:{found.line_of((name,)) or 1}"
            setting = BY_NAME.get(name)
            if setting is None:
                close = difflib.get_close_matches(name, list(BY_NAME), n=1, cutoff=0.6)
                hint = f"; did you mean {BY_NAME[close[0]].key}?" if close else "."
                self.problem(name, where, f"{name} is not a setting{hint}")
            elif setting.key != name and setting.key in raw:
                self.problem(
                    setting.key, where, f"{name} is another name of {setting.key}, which is set too and counts."
                )
            elif project and (setting.user_only or self.runs_file(setting, value)):
                self.problem(
                    setting.key,
                    where,
                    f"{name} cannot be set by a project's file; set it in your own settings file if you want it.",
                )
            elif setting.type == "table of texts":
                self.table(setting, value, found, label)
            else:
                self.chosen.add(setting.key)
                try:
                    self.values[setting.key] = from_toml(setting, value)
                except Refused as reason:
                    self.off(setting)
                    self.refused(setting, name, where, str(reason))

    @staticmethod
    def runs_file(setting: Setting, value: object) -> bool:
        """A project may name a model, but not make the engine load a weights file it brought along."""
        return setting.key == "model" and isinstance(value, str) and value.strip().lower().endswith(".gguf")

    def table(self, setting: Setting, value: Any, found: Layout, label: str) -> None:
        if not isinstance(value, dict):
            where = f"{label}:{found.line_of((setting.key,)) or 1}"
            self.refused(setting, setting.key, where, f"must be a table: write [{setting.key}] and one line per entry")
            return
        for name, entry in _flat(value):
            if isinstance(entry, str):
                self.values[setting.key][name] = entry
            else:
                path = (setting.key, *name.split("."))
                line = found.line_of((setting.key, name)) if (setting.key, name) in found.places else None
                where = f"{label}:{line or found.line_of(path) or 1}"
                self.problem(f"{setting.key}.{name}", where, f"{setting.key}.{name} must be a text in quotes; ignored.")


def _flat(table: Mapping[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """Entries of `table` with dotted names: `app.quit = "ctrl+q"` is a nested table to TOML, one id to people."""
    entries: list[tuple[str, Any]] = []
    for name, value in table.items():
        if isinstance(value, dict):
            entries.extend(_flat(value, f"{prefix}{name}."))
        else:
            entries.append((prefix + name, value))
    return entries
