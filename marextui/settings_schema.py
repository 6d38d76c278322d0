"""The settings: each declared once with its type, default, help, unit and check. README and messages come from here."""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Literal

from marextui.context.bulk import KEEP_IMAGES, MAX_REQUEST_MB
from marextui.context.omission import DEFAULT_RETENTION_DAYS, retention_days
from marextui.context.sections import SECTIONS, check_sections
from marextui.context.strategy_names import STRATEGY_NAMES
from marextui.context.trigger_names import CHOSEN_TRIGGERS, COMPACT_BASES, KEEP_TURNS, SLIDE_BY

Kind = Literal[
    "text", "whole number", "number", "yes/no", "list of texts", "on/off", "on/full/off", "on/all/off", "table of texts"
]

SWITCHES = frozenset({"on/off", "on/full/off", "on/all/off"})
"""Kinds that any value but their own words switches off (L1, L30)."""


class Refused(ValueError):
    """A value that cannot be used; the text says why and what to write instead."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One setting. `check` gets a value of the right type and raises `Refused`; it may be None."""

    key: str
    type: Kind
    default: Any
    help: str
    unit: str = ""
    check: Callable[[Any], None] | None = None
    aliases: tuple[str, ...] = ()
    """Other spellings, accepted in files and in the environment (B22)."""
    fallback_env: str = ""
    """Environment variable of other programs, used when nothing else sets the key."""
    secret: bool = False
    """The value is never repeated in a message."""
    user_only: bool = False
    """Refused in a project's file: a cloned repository must not redirect a key, run a program or rebind one."""


def _above_zero(value: float) -> None:
    if value <= 0:
        raise Refused("must be above 0")


def _not_negative(value: float) -> None:
    if value < 0:
        raise Refused("must be 0 or more")


def _fraction(value: float) -> None:
    if value >= 1:
        hint = f": write {value / 100:g} for {value:g} %" if 1 < value < 100 else ""
        raise Refused(f"is a fraction of the budget, above 0 and below 1{hint}")
    if value <= 0:
        raise Refused("is a fraction of the budget, above 0 and below 1")


def _temperature(value: float) -> None:
    if not 0 <= value <= 2:
        raise Refused("must be between 0 and 2")


def _not_blank(value: str) -> None:
    if not value.strip():
        raise Refused("must not be blank")


def _one_of(*names: str) -> Callable[[str], None]:
    def check(value: str) -> None:
        if value not in names:
            raise Refused(f"must be {', '.join(names[:-1])} or {names[-1]}")

    return check


def _sections(value: tuple[str, ...]) -> None:
    try:
        check_sections(value)
    except ValueError as problem:
        raise Refused(str(problem)) from None


def _http_url(value: str) -> None:
    if value and not re.match(r"https?://[^\s/]", value, re.IGNORECASE):
        raise Refused("must be an address that starts with http:// or https://")


SCHEMA: tuple[Setting, ...] = (
    Setting("model", "text", "", "Model to start with: a name the endpoint knows, or the path of a GGUF file"),
    Setting(
        "base_url",
        "text",
        "",
        "OpenAI-compatible endpoint, for example http://127.0.0.1:8080/v1",
        check=_http_url,
        fallback_env="OPENAI_BASE_URL",
        user_only=True,
    ),
    Setting(
        "api_key",
        "text",
        "",
        "Key for that endpoint; blank when it needs none",
        fallback_env="OPENAI_API_KEY",
        secret=True,
        user_only=True,
    ),
    Setting(
        "window", "whole number", None, "Window of the model, when what it reports is wrong", "tokens", _above_zero
    ),
    Setting("max_output", "whole number", None, "Longest answer of one model call", "tokens", _above_zero),
    Setting(
        "compact_at",
        "number",
        0.65,
        "Compact when the history reaches this share of the budget (see compact_base)",
        "fraction",
        _fraction,
        aliases=("compactAt",),
    ),
    Setting("auto_compress", "yes/no", True, "Compact without being asked", aliases=("autoCompress",)),
    Setting(
        "compact_base",
        "text",
        "budget",
        "What compact_at is a share of: the budget, or the whole window",
        check=_one_of(*COMPACT_BASES),
        aliases=("compactBase",),
    ),
    Setting(
        "compact_trigger",
        "text",
        "threshold",
        "What begins a compaction beside the threshold: threshold (nothing), sliding (the newest turns stay), task "
        "(a finished to-do list)",
        check=_one_of(*CHOSEN_TRIGGERS),
        aliases=("compactTrigger",),
    ),
    Setting("keep_turns", "whole number", KEEP_TURNS, "Turns a sliding window keeps", "turns", _above_zero),
    Setting(
        "slide_by",
        "whole number",
        SLIDE_BY,
        "Turns that leave a sliding window at once; 1 slides at every turn, and reads the prompt anew each time",
        "turns",
        _above_zero,
    ),
    Setting(
        "compact_strategy",
        "text",
        "anchored",
        "anchored: merge each new part into the summary, in code; regenerative: have the model write all of it anew",
        check=_one_of(*STRATEGY_NAMES),
        aliases=("compactStrategy",),
    ),
    Setting(
        "summary_sections",
        "list of texts",
        SECTIONS,
        'Headings of the summary in order; one of your own is written "Title: what belongs there"',
        check=_sections,
        aliases=("summarySections",),
    ),
    Setting(
        "beside_tokens",
        "whole number",
        None,
        "Most room beside the summary for what code knows for certain; 5 % of the window when not set, 0 for none",
        "tokens",
        _not_negative,
    ),
    Setting(
        "omit_after_turns",
        "whole number",
        1,
        "Replace long tool outputs by markers once this many further turns have ended",
        "turns",
        _not_negative,
        aliases=("omitAfterTurns",),
    ),
    Setting(
        "memory_retention_days",
        "whole number",
        DEFAULT_RETENTION_DAYS,
        "Keep omitted tool outputs this long; 0 keeps them for ever",
        "days",
    ),
    Setting(
        "omissions_quota_mb",
        "whole number",
        512,
        "Most room stored tool outputs of a project take; over it the oldest go, with a notice; 0 for no limit",
        "MB",
        _not_negative,
    ),
    Setting("local_window", "whole number", 8192, "Window given to the embedded engine", "tokens", _above_zero),
    Setting("max_tool_rounds", "whole number", 25, "Most rounds of tool calls in one turn", "rounds", _above_zero),
    Setting(
        "keep_images",
        "whole number",
        KEEP_IMAGES,
        "Newest images that stay in the conversation; older ones become a description",
        "images",
        _not_negative,
    ),
    Setting(
        "max_request_mb",
        "whole number",
        MAX_REQUEST_MB,
        "Most bytes of one request, whatever its tokens; older images and outputs make room",
        "MB",
        _above_zero,
    ),
    Setting("bash_timeout", "whole number", 120, "Longest run of one command", "seconds", _above_zero),
    Setting(
        "request_timeout", "whole number", 300, "Longest silence of a model that is answering", "seconds", _above_zero
    ),
    Setting(
        "retries",
        "whole number",
        2,
        "How often a request is sent again when the server is too busy or hangs up before it answers",
        "times",
        _not_negative,
    ),
    Setting("temperature", "number", None, "Sampling temperature; the model's own when not set", "", _temperature),
    Setting("theme", "text", "marex-dark", "Colour theme", check=_not_blank),
    Setting("ascii", "yes/no", False, "Draw with ASCII characters only; by itself so with LANG=C or TERM=linux"),
    Setting("editor", "text", "", "Command that opens a file to edit; $VISUAL or $EDITOR when blank", user_only=True),
    Setting("pager", "text", "", "Command that opens a file to read; $PAGER when blank", user_only=True),
    Setting(
        "keys", "table of texts", {}, "Table of action id = keys, comma-separated, to rebind actions", user_only=True
    ),
    Setting("mouse", "yes/no", True, "Use the mouse"),
    Setting("persist_usage", "yes/no", True, "Write one line a turn to .marex/usage.jsonl"),
    Setting(
        "compact_continuation",
        "on/off",
        False,
        "Local engines: ask for a summary by going on with the conversation, so that the cached prompt is used",
        aliases=("COMPACT_CONTINUATION",),
    ),
    Setting(
        "prewarm",
        "on/full/off",
        "off",
        "Local engines: compute the next turn's prompt while you read; full: also after changing the conversation",
        aliases=("PREWARM",),
    ),
    Setting(
        "proj_snapshot",
        "on/off",
        False,
        "Local engines: keep a dated copy of the project block in each conversation and send only what changes",
        aliases=("PROJ_SNAPSHOT",),
    ),
    Setting(
        "warm_resume",
        "on/all/off",
        "on",
        "Keep what the embedded engine has computed when a conversation is left; all: other llama.cpp servers' too",
    ),
    Setting("warm_resume_mb", "whole number", 1000, "Most room that takes; the oldest go first", "MB", _not_negative),
)

BY_NAME: dict[str, Setting] = {name: s for s in SCHEMA for name in (s.key, *s.aliases)}

_YES = {"1", "true", "yes", "on", "oui"}
_NO = {"0", "false", "no", "off", "non"}


def _shown(setting: Setting, value: object) -> str:
    if setting.secret:
        return "this value"
    text = f'"{value}"' if isinstance(value, str) else str(value).lower() if isinstance(value, bool) else str(value)
    return text if len(text) <= 60 else text[:59] + "…"


def _of(setting: Setting) -> str:
    return f" of {setting.unit}" if setting.unit and setting.unit != "fraction" else ""


def from_toml(setting: Setting, value: Any) -> Any:
    """`value` as read from a file, checked. Raises `Refused`. Tables are read entry by entry, not here."""
    if setting.key == "memory_retention_days":
        return _retention("" if isinstance(value, bool | float) else str(value))
    if setting.type in SWITCHES:
        return _switched(setting, value)
    if setting.type == "text":
        if not isinstance(value, str):
            raise Refused(f"must be a text in quotes, not {_shown(setting, value)}")
    elif setting.type == "list of texts":
        if not isinstance(value, list) or not all(isinstance(v, str) for v in value):
            raise Refused(f"must be a list of texts in square brackets, not {_shown(setting, value)}")
        return _checked(setting, tuple(value))
    elif setting.type == "yes/no":
        if not isinstance(value, bool):
            raise Refused(f"must be true or false, not {_shown(setting, value)}")
    elif setting.type == "whole number":
        if not isinstance(value, int) or isinstance(value, bool):
            quotes = ", without quotes" if isinstance(value, str) else ""
            raise Refused(f"must be a whole number{_of(setting)}{quotes}, not {_shown(setting, value)}")
    elif setting.type == "number":
        if not isinstance(value, int | float) or isinstance(value, bool) or not math.isfinite(value):
            quotes = ", without quotes" if isinstance(value, str) else ""
            raise Refused(f"must be a number{quotes}, not {_shown(setting, value)}")
        value = float(value)
    return _checked(setting, value)


def from_env(setting: Setting, value: str) -> Any:
    """`value` of an environment variable, checked. Raises `Refused`."""
    if setting.key == "memory_retention_days":
        return _retention(value)
    text = value.strip()
    if setting.type in SWITCHES:
        return _switched(setting, value)
    if setting.type == "text":
        return _checked(setting, value)
    if setting.type == "list of texts":
        return _checked(setting, tuple(part.strip() for part in text.split(",")))
    if setting.type == "yes/no":
        if text.lower() not in _YES | _NO:
            raise Refused(f"must be on or off, not {_shown(setting, value)}")
        return text.lower() in _YES
    if setting.type == "whole number":
        if not re.fullmatch(r"[+-]?\d{1,18}", text, re.ASCII):
            raise Refused(f"must be a whole number{_of(setting)}, not {_shown(setting, value)}")
        return _checked(setting, int(text))
    if setting.type == "number":
        if not re.fullmatch(r"[+-]?(\d+\.?\d*|\.\d+)", text, re.ASCII):
            raise Refused(f"must be a number, not {_shown(setting, value)}")
        return _checked(setting, float(text))
    raise Refused("cannot be set in the environment, only in the settings file")


def _switched(setting: Setting, value: object) -> Any:
    """A switch in any spelling: True, 1, "on", "Oui", …; of three words, the middle one too (L1, L30)."""
    more = setting.type.split("/")[1:-1]
    word = str(value).strip().lower() if isinstance(value, str | int) else "?"
    if word in more:
        return word
    if word in _YES:
        return "on" if more else True
    if word in _NO:
        return "off" if more else False
    if word:
        words = "".join(f", {middle}" for middle in more)
        raise Refused(f"must be on{words} or off, not {_shown(setting, value)}")
    return setting.default


def _checked(setting: Setting, value: Any) -> Any:
    if setting.check is not None:
        try:
            setting.check(value)
        except Refused as reason:
            if setting.type == "list of texts":  # the reason names the wrong entry
                raise
            raise Refused(f"{reason}, not {_shown(setting, value)}") from None
    return value


def _retention(text: str) -> int:
    days, warning = retention_days(text)
    if warning:
        raise Refused(f'must be a whole number of days, 0 for ever, not "{text[:40]}"')
    return days
