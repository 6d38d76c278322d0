"""What an examination means for the person: findings, measurements in words, settings to take (issue 4, section 6)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Literal

from marextui.context.doctor_chart import Chart, Measured, ToolUse
from marextui.context.omission import grouped

Verdict = Literal["yes", "no", "unknown"]
KEPT_SHARE = 0.5
"""Share of a prompt that must come from the cache for it to count as kept; of the time, where tokens are not told."""

LONGEST_NAME = 200
"""Characters of a model's name; a longer one is a server's mischief, and no line for a settings file. Nor is a name
that ends in .gguf, as llama.cpp gives them: it would mean a file for our own engine. Without one, the server's first
model is taken."""


@dataclass(frozen=True, slots=True)
class Finding:
    """One thing that was looked at. `words`: what was found; `meaning`: what follows for the user, "" for nothing."""

    id: str
    label: str
    verdict: Verdict
    words: str
    meaning: str = ""


@dataclass(frozen=True, slots=True)
class Advice:
    """A line for the settings file and why. `set_already`: it stands there now."""

    key: str
    value: str | int | bool
    why: str
    set_already: bool = False

    @property
    def line(self) -> str:
        """Exactly what to write into the settings file."""
        return f"{self.key} = {toml_value(self.value)}"


def toml_value(value: str | int | bool) -> str:
    """`value` as TOML writes it."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, int):
        return str(value)
    return '"' + "".join(c if c.isprintable() and c not in '"\\' else _escaped(c) for c in value) + '"'


def _escaped(char: str) -> str:
    """An escape that TOML knows, also for what a screen must not be sent; half of a pair is no character there."""
    code = 0xFFFD if "\ud800" <= char <= "\udfff" else ord(char)
    return f"\\u{code:04x}" if code < 0x10000 else f"\\U{code:08x}"


def tokens(n: int | None) -> str:
    """`n` tokens, thousands apart; "?" when it is not known."""
    return "?" if n is None else grouped(n)


def _verdict(known: bool | None) -> Verdict:
    return "unknown" if known is None else "yes" if known else "no"


def kept(chart: Chart, name: str) -> bool | None:
    """Whether the request `name` went on with what was cached: by tokens where told, else by time."""
    later, first = chart.measured.get(name), chart.measured.get("opening")
    if later is None:
        return None
    if later.cached is not None and later.computed is not None:
        return later.cached >= KEPT_SHARE * (later.cached + later.computed)
    if first is None or first.first_token < 1.0:  # shorter times say nothing about a cache
        return None
    return later.first_token <= KEPT_SHARE * first.first_token


def findings(chart: Chart) -> tuple[Finding, ...]:
    """All that was looked at, in the order it is shown; what was not reached is left out."""
    if not chart.answers:
        return ()
    makers = _LOCAL if chart.local else _HOSTED
    return tuple(make(chart) for make in makers)


def _kind(chart: Chart) -> Finding:
    version = chart.version if chart.version not in {"", "b0-unknown"} else "version not told"
    told = f"{chart.kind or 'OpenAI-compatible'}, {version}" if chart.local else chart.kind or "OpenAI-compatible"
    return Finding("server", "server", "yes", told)


def _model(chart: Chart) -> Finding:
    more = f", one of {chart.models}" if chart.models > 1 else ""
    return Finding("model", "model", "yes", f"{chart.label or chart.model}{more}")


def _window(chart: Chart) -> Finding:
    if chart.window is None:
        return Finding(
            "window",
            "window",
            "unknown",
            "not told",
            "Nothing is compacted until you say how much it holds: window = NUMBER in your settings.",
        )
    words = f"{grouped(chart.window)} tokens, from {chart.window_from}"
    if chart.trained and chart.local:
        return Finding(
            "window",
            "window",
            "unknown",
            f"at most {words}",
            "That is what the model was trained for; if the server loads less, say so: window = NUMBER.",
        )
    return Finding("window", "window", "yes", words)


def _usage(chart: Chart) -> Finding:
    told = [name for name, yes in (("streamed", chart.usage_stream), ("whole answers", chart.usage_plain)) if yes]
    missing = "Tokens are estimated, and marked ~, where the server does not count them."
    words = f"told with {' and '.join(told)}" if told else "not told"
    return Finding(
        "usage", "token counts", _verdict(bool(chart.usage_stream)), words, "" if len(told) == 2 else missing
    )


def _cached_told(chart: Chart) -> Finding:
    meaning = ""
    if not chart.cached_told:
        meaning = "What the cache saves cannot be shown, only timed."
        if chart.kind == "vLLM":
            meaning += " Start vLLM with --enable-prompt-tokens-details."
    words = "told" if chart.cached_told else "not told"
    return Finding("cached_tokens", "cached tokens", _verdict(chart.cached_told), words, meaning)


_TOOL_WORDS: Mapping[ToolUse, str] = {
    "called": "called when asked to",
    "as text": "the call came as text, not as a call",
    "not called": "offered, but the model answered in words",
    "refused": "the server refuses them",
    "thinking": "the model was still thinking when its answer was cut",
}


def _tools(chart: Chart) -> Finding:
    use = chart.tool_use
    verdict: Verdict = "yes" if use == "called" else "no" if use in {"refused", "as text"} else "unknown"
    words = "not asked" if use is None else _TOOL_WORDS[use]
    if use in {"not called", "thinking"} and chart.tools_told is not None:
        words += "; its template knows tools" if chart.tools_told else "; its template knows no tools"
        verdict = verdict if chart.tools_told else "no"
    if use == "refused" and chart.tools_said:
        words = chart.tools_said
    meaning = "Files cannot be read or changed by this model: it is for chatting." if verdict == "no" else ""
    if use == "as text":
        meaning = "Calls written as text are not carried out; a chat template that knows the model's calls helps."
    return Finding("tools", "tools", verdict, words, meaning)


def _tool_choice(chart: Chart) -> Finding:
    use, none = chart.tool_none, 'tool_choice "none"'
    if use in {None, "thinking"}:
        return Finding("tool_choice_none", none, "unknown", "not known")
    if use == "called" or use == "as text":
        leaks = "a tool was called all the same" if use == "called" else "a call came as text all the same"
        return Finding(
            "tool_choice_none",
            none,
            "no",
            leaks,
            "A summary that goes on with the conversation may fail; it is then asked for by a request of its own.",
        )
    if use == "refused":
        return Finding("tool_choice_none", none, "no", "refused", "Summaries are asked for by a request of their own.")
    if chart.tools_kept is False:
        return Finding(
            "tool_choice_none",
            none,
            "no",
            "obeyed, but the tools leave the prompt",
            "The prompt changes at its head, so that going on with it computes everything again.",
        )
    words = "obeyed, the prompt stays the same" if chart.tools_kept else "obeyed; whether the prompt stays is not told"
    return Finding("tool_choice_none", none, "yes", words)


def _two_users(chart: Chart) -> Finding:
    if chart.two_users is None:
        return Finding("two_users", "two users in a row", "unknown", "not asked")
    if chart.two_users:
        return Finding("two_users", "two users in a row", "yes", "the chat template takes them")
    return Finding(
        "two_users",
        "two users in a row",
        "no",
        chart.two_users_said or "refused",
        "After an interrupted turn the next message may be refused; a less strict chat template helps.",
    )


def _slots(chart: Chart) -> Finding:
    if chart.slots is None:
        return Finding(
            "slots", "one slot", "unknown", "not told", "A turn is computed ahead only where there is one slot."
        )
    if chart.slots == 1:
        return Finding("slots", "one slot", "yes", "1 slot")
    return Finding(
        "slots",
        "one slot",
        "no",
        f"{chart.slots} slots share the memory",
        "A turn is not computed ahead, and each slot holds a part of the window. For one person: start it with -np 1.",
    )


def _save(chart: Chart) -> Finding:
    if chart.save_path is None:
        return Finding("slot_save", "saves its slots", "unknown", "not told")
    if chart.save_path:
        return Finding("slot_save", "saves its slots", "yes", "it has a save path")
    meaning = "What is computed is gone when it ends" + (
        "." if chart.label else "; start it with --slot-save-path DIR."
    )
    return Finding("slot_save", "saves its slots", "no", "no save path", meaning)


def _progress(chart: Chart) -> Finding:
    if chart.progress:
        return Finding("progress", "progress of a prompt", "yes", "told while it is computed")
    words = "not told" if chart.progress is False else "not asked"
    return Finding(
        "progress",
        "progress of a prompt",
        _verdict(chart.progress),
        words,
        "Long prompts are silent until their first word.",
    )


def _timings(chart: Chart) -> Finding:
    words = "told" if chart.timings else "not told" if chart.timings is False else "not asked"
    if chart.timings and chart.speed:
        words = f"told: it computes {grouped(round(chart.speed))} prompt tokens a second"
    return Finding("timings", "timings", _verdict(chart.timings), words)


def _cancel(chart: Chart) -> Finding:
    label, words = "stops when we hang up", chart.cancel_words or "could not be seen"
    meaning = ""
    if chart.cancels is False:
        meaning = "Esc stops the answer on the screen, but the next one may have to wait for the old one."
    return Finding("cancel", label, _verdict(chart.cancels), words, meaning)


def _shares(measured: Measured | None) -> str:
    if measured is None:
        return "not measured"
    if measured.cached is None or measured.computed is None:
        return f"first word after {measured.first_token:.2f} s, tokens not told"
    return f"{grouped(measured.cached)} of {grouped(measured.cached + measured.computed)} tokens came from the cache"


def _cache(chart: Chart) -> Finding:
    yes, later = kept(chart, "continuation"), chart.measured.get("continuation")
    words = _shares(later) if later is not None else chart.measure_said or "not measured"
    meaning = "Every turn computes the whole conversation again." if yes is False else ""
    return Finding("cache", "keeps what it computed", _verdict(yes), words, meaning)


def _parked(chart: Chart) -> Finding:
    yes = kept(chart, "back")
    meaning = ""
    if yes is False:
        meaning = "A separate request costs the conversation its cache, so that its next turn is computed in full."
        if chart.kind == "llama.cpp":
            meaning += " --cache-ram MIB keeps it in memory."
    return Finding("parked", "also after another request", _verdict(yes), _shares(chart.measured.get("back")), meaning)


_Make = Callable[[Chart], Finding]
_HOSTED: tuple[_Make, ...] = (_kind, _model, _window, _usage, _cached_told, _tools, _tool_choice, _two_users)
_LOCAL: tuple[_Make, ...] = (
    *_HOSTED,
    _slots,
    _save,
    _progress,
    _timings,
    _cancel,
    _cache,
    _parked,
)


@dataclass(frozen=True, slots=True)
class Saving:
    """What one way costs against another: prompt tokens computed, and how many times sooner the first word came."""

    name: str
    computed: int | None
    instead_of: int | None
    sooner: float | None


def savings(chart: Chart) -> tuple[Saving, ...]:
    """Going on against a separate summary request, and a prewarmed turn against a cold one."""
    pairs = (("continuation", "separate"), ("prewarmed", "opening"))
    out = []
    for name, other in pairs:
        one, two = chart.measured.get(name), chart.measured.get(other)
        if one is not None and two is not None:
            sooner = two.first_token / one.first_token if one.first_token > 0 else None
            out.append(Saving(name, one.computed, two.computed, sooner))
    return tuple(out)


def advice(chart: Chart, current: Mapping[str, object], *, connect: bool) -> tuple[Advice, ...]:
    """The settings to take, from what was measured; `current` are those in force.

    With `connect` the server is another than the configured one, so that its address and model are told too.
    """
    if not chart.usable:
        return ()
    wanted: list[tuple[str, str | int | bool, str]] = []
    if connect:
        wanted.append(("base_url", chart.url, "this server"))
        if len(chart.model) <= LONGEST_NAME and not chart.model.lower().endswith(".gguf"):
            wanted.append(("model", chart.model, "the model that was examined"))
    if chart.local and not (chart.ended and kept(chart, "continuation") is None):  # not reached is no reason
        wanted += _economy(chart)
    return tuple(Advice(key, value, why, current.get(key) == value) for key, value, why in wanted)


def _economy(chart: Chart) -> list[tuple[str, str | int | bool, str]]:
    keeps = kept(chart, "continuation")
    if not keeps:
        why = "the server does not keep its cache" if keeps is False else "whether the cache is kept is not known"
        return [("compact_continuation", False, why), ("prewarm", "off", why), ("proj_snapshot", False, why)]
    out: list[tuple[str, str | int | bool, str]] = []
    if chart.tool_none in {"called", "refused"} or chart.tools_kept is False:
        out.append(("compact_continuation", False, 'tool_choice "none" is not obeyed, or changes the prompt'))
    else:
        saved = next((s for s in savings(chart) if s.name == "continuation"), None)
        why = "a summary goes on with what is cached"
        if saved is not None and saved.computed is not None and saved.instead_of is not None:
            why = f"a summary computes {grouped(saved.computed)} tokens instead of {grouped(saved.instead_of)}"
        out.append(("compact_continuation", True, why))
    if chart.slots != 1:
        why = "the server has several slots" if chart.slots else "how many slots it has is not known"
        out.append(("prewarm", "off", why))
    elif kept(chart, "prewarmed"):
        out.append(("prewarm", "on", "a turn after a rewrite finds its prompt computed"))
    else:
        out.append(("prewarm", "off", "a prompt sent ahead was not found again"))
    out.append(("proj_snapshot", True, "the head of the conversation stays what is cached"))
    if chart.save_path and chart.slots == 1 and not chart.label:  # our own engine's are kept anyway
        out.append(("warm_resume", "all", "a resumed conversation finds its prompt computed"))
    return out
