"""Checking a summary against the span it stands for, and repairing it in code (Part 2, 7; cases 38, 57, 126, 127).

No second model call: made-up names and a tool's demands go, what is missing is added from calls, results and the
user's own words, with the cycle's tag.
"""

from __future__ import annotations

import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass, replace

from marextui.context.entries import Summary, SummaryItem, SummarySection
from marextui.context.facts import error_lines
from marextui.context.folding import NOTHING, picked
from marextui.context.fusion import fit
from marextui.context.language import detect_language
from marextui.context.mentions import Mention, material, mentions
from marextui.context.messages import Message
from marextui.context.order_words import claims_permission
from marextui.context.provenance import Provenance
from marextui.context.quoting import inert
from marextui.context.reply_check import SummaryRejected
from marextui.context.section_titles import canonical_title, is_files
from marextui.context.sections import rule_of
from marextui.context.speech import unquoted
from marextui.context.spoken import users_language
from marextui.context.summary_needs import NEED_KINDS, Need, Third, must_keep, thirds, view_of, with_items
from marextui.context.summary_render import item_line, render_sections

ROOM = 4800
"""Characters that must-keep facts may count on when no cap is given."""
_MUST_SHARE, _THIRD_SHARE = 2, 12
"""Must-keep facts take at most one part in 2 of the cap, each third one part in 12."""
_GUARDED = frozenset({"session intent", "decisions made", "next steps", "requirements"})
"""Sections in which a tool's words would pass for what somebody wants."""
_ABOUT_US = re.compile(r"\b(?:user|assistant|agent|model|you|plan|utilisateur)\b", re.IGNORECASE)
"""Of whom a permission is told; programs being worked on have permissions too."""
_CLEAR_CHARS = 200
"""Prose of an unmistakable language mismatch."""
_WIDE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_WIDE_COUNTS = 2
"""So many characters more does a character of a wide script say."""
_SHOWN = 120
_SOURCES = 3
"""Most messages named as the source of one item."""


@dataclass(frozen=True, slots=True)
class Checked:
    """A summary that may be used, and what was done to make it so; each problem and repair is one sentence.

    `folded` are items the size cap took out, by section, to be stored. `retry` says why asking the model once more is
    worth it (a clear mismatch of language, I11), "" when it is not.
    """

    summary: Summary
    problems: tuple[str, ...] = ()
    repaired: tuple[str, ...] = ()
    folded: Summary = NOTHING
    retry: str = ""


def check_summary(
    summary: Summary,
    span: Sequence[Message],
    *,
    earlier: Summary | None = None,
    language: str = "",
    cycle: int | None = None,
    cap_chars: int | None = None,
    known: Sequence[str] = (),
    needs: Container[str] = NEED_KINDS,
) -> Checked:
    """`summary` (of `span` alone, before it is fused into `earlier`) checked and repaired.

    1. Items naming a path, URL or id that occurs neither in the span, nor in `earlier`, nor in `known` are dropped
       (I12). 2. Items of intent, decisions and next steps that only repeat a tool's words are dropped, and requirements
       that repeat no words of the user. 3. Items that say something was allowed are dropped (I13). 4. The language must
       be the user's (`language`, an English name; "": found from the user's messages). 5. Must-keep facts and thirds of
       the span it says nothing of are added (`needs`: which kinds). 6. With `cap_chars`, its rendering is brought
       within it, the model's oldest low-value items first.

    Added items are tagged `cycle` (None: the newest cycle in the summary). Deterministic; checking the result again
    changes nothing. Raises `SummaryRejected` when most items that name something name what never was (case 38).
    """
    cycle = cycle or max((i.last_cycle for s in summary.sections for i in s.items), default=1)
    language = language or users_language(span, earlier)
    room = cap_chars if cap_chars is not None else ROOM
    needed = _affordable([n for n in must_keep(span, cycle=cycle, language=language) if n.kind in needs], room)
    pieces = thirds(span, cycle=cycle, max_chars=room // _THIRD_SHARE) if "third" in needs else ()
    ours = {n.item.text for n in needed} | {i.text for p in pieces for _, i in p.candidates}
    problems: list[str] = []
    summary = _without_inventions(summary, span, earlier, known, ours, problems)
    summary = _without_tool_demands(summary, span, earlier, ours, problems)
    summary = _without_permissions(summary, ours, problems)
    retry = _language_problem(summary, language, problems)
    summary, repaired, folded = _completed(summary, needed, pieces, cap_chars, problems)
    return Checked(summary, tuple(problems), repaired, folded, retry)


def _kept(summary: Summary, dropped: Container[tuple[int, int]]) -> Summary:
    return Summary(
        tuple(
            replace(s, items=tuple(i for n, i in enumerate(s.items) if (k, n) not in dropped))
            for k, s in enumerate(summary.sections)
        )
    )


def _texts(summary: Summary | None) -> frozenset[str]:
    return frozenset(i.text for s in summary.sections for i in s.items) if summary is not None else frozenset()


def _without_inventions(
    summary: Summary,
    span: Sequence[Message],
    earlier: Summary | None,
    known: Sequence[str],
    ours: Container[str],
    problems: list[str],
) -> Summary:
    """I12, case 38. `ours`: texts that code itself adds; they need no proof."""
    there = material(span, earlier, known)
    dropped: set[tuple[int, int]] = set()
    naming = 0
    invented: list[str] = []
    for k, section in enumerate(summary.sections):
        for n, item in enumerate(section.items):
            if item.text in ours:
                continue
            named = mentions(item.text)
            if is_files(section.title) and not named and any(c in item.key for c in "./"):
                named = (Mention(item.key, False),)
            naming += bool(named)
            unknown = [m.name for m in named if not there.holds(m)]
            if unknown:
                dropped.add((k, n))
                invented.extend(unknown)
                problems.append(
                    f"Dropped “{inert(item.text, _SHOWN)}”: {', '.join(inert(u, _SHOWN) for u in unknown)} occurs "
                    "nowhere in what was summarised."
                )
    if 2 * len(dropped) > naming:
        names = ", ".join(inert(n, _SHOWN) for n in list(dict.fromkeys(invented))[:5])
        raise SummaryRejected(f"Most of the summary names things that never occurred, such as {names}.")
    return _kept(summary, dropped)


def _without_tool_demands(
    summary: Summary, span: Sequence[Message], earlier: Summary | None, ours: Container[str], problems: list[str]
) -> Summary:
    """Cases 126 and 127: what a tool's output demands is no wish of the user and no decision, and a requirement that
    quotes no message of the user is none. Items that do quote one get its id as their source (I12)."""
    before = _texts(earlier)
    guarded = {
        (k, n): item
        for k, section in enumerate(summary.sections)
        for n, item in enumerate(section.items)
        if item.text not in before and item.text not in ours
    }
    words = Provenance(span, before, (item.text for item in guarded.values()))
    dropped: set[tuple[int, int]] = set()
    sources: dict[tuple[int, int], tuple[str, ...]] = {}
    for (k, n), item in guarded.items():
        reason = ""
        said_by = words.users(item.text)
        if canonical_title(summary.sections[k].title) not in _GUARDED:
            # how things are may well be a tool's words; what is to be done may not
            if words.tools_demand(item.text) and not error_lines(item.text):
                dropped.add((k, n))
                problems.append(f"Dropped “{inert(item.text, _SHOWN)}”: a tool's output demands it, not the user.")
            continue
        if words.from_tool_alone(item.text) or words.tools_demand(item.text):
            reason = "only a tool's output says so, not the user"
        elif words.invented_attack(item.text):
            reason = "nobody spoke of such an attack"
        elif rule_of(summary.sections[k].title) == "quoted" and not said_by:
            reason = "no message of the user says so"
        if reason:
            dropped.add((k, n))
            problems.append(f"Dropped “{inert(item.text, _SHOWN)}”: {reason}.")
        elif said_by:
            sources[k, n] = said_by[:_SOURCES]
    return _kept(_sourced(summary, sources), dropped)


def _without_permissions(summary: Summary, ours: Container[str], problems: list[str]) -> Summary:
    """I13, case 62: that something was allowed is no note; the program asks again, whatever a summary says."""
    dropped: set[tuple[int, int]] = set()
    for k, section in enumerate(summary.sections):
        guarded = canonical_title(section.title) in _GUARDED
        for n, item in enumerate(section.items):
            told = unquoted(item.text)
            if item.text not in ours and claims_permission(told) and (guarded or _ABOUT_US.search(told)):
                dropped.add((k, n))
                problems.append(f"Dropped “{inert(item.text, _SHOWN)}”: permissions are asked, not remembered.")
    return _kept(summary, dropped)


def _sourced(summary: Summary, sources: Mapping[tuple[int, int], tuple[str, ...]]) -> Summary:
    return Summary(
        tuple(
            replace(s, items=tuple(replace(i, sources=sources.get((k, n), i.sources)) for n, i in enumerate(s.items)))
            for k, s in enumerate(summary.sections)
        )
    )


def _language_problem(summary: Summary, language: str, problems: list[str]) -> str:
    """I11: a sentence for a retry when the mismatch is clear, "" otherwise."""
    prose = [unquoted(i.text) for s in summary.sections for i in s.items if i.status == "active"]
    found = detect_language("\n".join(prose))
    if not language or not found or found == language:
        return ""
    problems.append(f"The summary is in {found}, the user writes {language}.")
    halves = prose[::2], prose[1::2]
    size = sum(len(p) + _WIDE_COUNTS * len(_WIDE.findall(p)) for p in prose)
    clear = size >= _CLEAR_CHARS and all(detect_language("\n".join(h)) == found for h in halves)
    return f"The summary is in {found}; write it in {language}." if clear else ""


@dataclass(frozen=True, slots=True)
class _Missing:
    place: str
    item: SummaryItem
    problem: str


def _missing(summary: Summary, needed: Sequence[Need], pieces: Sequence[Third]) -> list[_Missing]:
    """What code would add to `summary` as it stands."""
    view, present = view_of(summary), _texts(summary)
    found = [
        _Missing(n.place, n.item, f"Missing {n.kind}: {n.what}")
        for n in needed
        if n.item.text not in present and not n.met(view)
    ]
    for piece in pieces:

        def lacking(more: Sequence[_Missing], piece: Third = piece) -> int:
            return piece.lacking(view_of(with_items(summary, [(m.place, m.item) for m in more])))

        left = lacking(found)
        for place, item in piece.candidates:
            if not left:
                break
            trial = [*found, _Missing(place, item, f"Little of the {piece.name} third: {item.text}")]
            if item.text not in present and (then := lacking(trial)) < left:
                found, left = trial, then
    return found


def _foldable(summary: Summary, needed: Sequence[Need], room: int) -> tuple[SummaryItem, ...]:
    """What to fold out so that the rest fits into `room`: first what tells no must-keep fact."""
    telling = {
        (k, n): item
        for k, section in enumerate(summary.sections)
        for n, item in enumerate(section.items)
        if any(item.text == need.item.text or need.met(view_of(_one(item))) for need in needed)
    }
    left = room - sum(len(item_line(i)) + 1 for i in telling.values())
    return fit(_kept(summary, telling), max(0, left))[1] or fit(summary, max(0, room))[1]


def _one(item: SummaryItem) -> Summary:
    return Summary((SummarySection("", (item,)),))


def _completed(
    summary: Summary, needed: Sequence[Need], pieces: Sequence[Third], cap_chars: int | None, problems: list[str]
) -> tuple[Summary, tuple[str, ...], Summary]:
    """(summary with what it missed, a sentence per addition, what the cap took out).

    What is missing is found again after each fold, since the items folded out may have told it.
    """
    whole, count = summary, 0
    folded: set[int] = set()
    while True:
        added = _missing(summary, needed, pieces)
        cost = sum(len(item_line(m.item)) + 1 for m in added)
        if cap_chars is None or len(render_sections(summary)) + cost <= cap_chars:
            break
        out = _foldable(summary, needed, cap_chars - cost)
        if not out:
            added = []
            break
        count += len(out)
        folded.update(map(id, out))
        summary = _kept(whole, _places(whole, folded))
    problems.extend(m.problem for m in added)
    if folded:
        problems.append(f"Too long: {count} items were folded out of it.")
    summary = with_items(summary, [(m.place, m.item) for m in added])
    return summary, tuple(f"Added to {m.place}: {m.item.text}" for m in added), picked(whole, folded)


def _places(summary: Summary, items: Container[int]) -> set[tuple[int, int]]:
    """(section, item) of the items with those identities."""
    return {(k, n) for k, s in enumerate(summary.sections) for n, i in enumerate(s.items) if id(i) in items}


def _affordable(needs: Sequence[Need], room: int) -> list[Need]:
    """The needs, in order, that fit into their share of the room, met or not."""
    kept: list[Need] = []
    left = room // _MUST_SHARE
    for need in needs:
        cost = len(item_line(need.item)) + 1
        if cost <= left:
            kept.append(need)
            left -= cost
    return kept


__all__ = ["Checked", "SummaryRejected", "check_summary"]
