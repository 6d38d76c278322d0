"""Merging a new summary into the earlier one, in code and never by a model (P5, P10, P11).

Nothing of an earlier summary vanishes: an item stays active, or stays with another status, or is handed back by `fit`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence, Set
from dataclasses import replace

from marextui.context.attributes import RIVALS, claim, other_value
from marextui.context.entries import Folded, Summary, SummaryItem, SummarySection
from marextui.context.section_titles import canonical_title, plain
from marextui.context.sections import rule_of, value_of
from marextui.context.summary_render import item_line, render_sections

_FILLER_WORDS = """
    a an the to of for in on at by with and or we i it is are be will shall should must use uses using used keep set
    make that this as from all any our us let go do done was were has have please now un une le la les de des du et ou
    dans en sur pour avec on nous est sont sera doit utiliser utilise utilisons garder que qui ce cette
    der die das den dem ein eine einen ist sind wird soll muss mit von auf im zum zur el los las una es son esta con por
    s t ll re ve d l
"""
_FILLER = frozenset(_FILLER_WORDS.split())
_NEGATION_WORDS = """
    not never no without avoid dont don stop cannot isn aren wasn weren won shouldn mustn doesn didn hasn can't
    n ne pas jamais plus sans eviter aucun aucune nicht nie niemals kein keine ohne nunca sin ninguna
"""
_NEGATION = frozenset(_NEGATION_WORDS.split())
_ADDITIVE = re.compile(
    r"\W*(?:also|add|adding|support|implement|test|fix|create|include|write|document|aussi|ajoute|crée|corrige)",
    re.IGNORECASE,
)
_INSTEAD = re.compile(
    r"\b(?:instead of|rather than|in place of|not|no longer|drop(?:ped|ping)?|replac(?:es|ed|ing)|abandon(?:ed)?"
    r"|(?:switch(?:ed)?|mov(?:ed?|ing)|migrat(?:ed?|ing)) (?:away )?from|au lieu d[e']|plutôt qu[e']|remplace|ne plus)"
    r"\s*(?:using |utiliser )?((?:(?! to | vers | by | par )[^.;,()])+)",
    re.IGNORECASE,
)
_IN_WHAT = re.compile(
    r"(?:^|\s)(?:in|into|via|using|dans|en|im|über)\s+(?:(?:the|a|an|la|le|les|un|une|der|die|das|el)\s+)?$"
)
_DONE = re.compile(
    r"\b(?:done|finished|complete[d]?|fixed|added|implemented|passes|passed|passing|created|written|merged|updated|works"
    r"|fait|termin[ée]e?s?|corrig[ée]e?s?|ajout[ée]e?s?)\b|[✓✔✅]|\[x\]",
    re.IGNORECASE,
)


def _words(text: str) -> frozenset[str]:
    """Content words, numbers kept whole, plural and case dropped."""
    found = re.findall(r"[\w./:@-]*\w", text.lower())
    return frozenset(w if any(c.isdigit() for c in w) else w.rstrip("s") for w in found) - _FILLER


def _same(a: str, b: str) -> bool:
    return plain(a) == plain(b)


def _is_value(word: str) -> bool:
    return any(c.isdigit() for c in word) or any(c in word for c in "._/:@-")


def contradicts(newer: str, older: str) -> bool:
    """True when decision `newer` replaces `older`: same subject with another value, the opposite, or "instead of".

    Deliberately narrow: two decisions that merely share a subject stay side by side.
    """
    new, old = _words(newer), _words(older)
    if not new or not old:
        return False
    new_no, old_no = bool(new & _NEGATION), bool(old & _NEGATION)
    new_core, old_core = new - _NEGATION, old - _NEGATION
    said, said_before = claim(newer), claim(older)
    of_one = said is None or said_before is None or said.subject == said_before.subject
    common = new_core & old_core
    smaller = min(len(new_core), len(old_core))
    if new_no != old_no and of_one and smaller and len(common) >= max(1, 0.75 * smaller):
        return True
    for match in _INSTEAD.finditer(newer):
        left = _words(match.group(1)) - _NEGATION
        if left and left <= old_core and not old_no and len(left) >= min(2, len(old_core)) - 1:
            return True
    if new_no or old_no or _ADDITIVE.match(newer):
        return False
    if said is not None and said_before is not None:
        return other_value(said, said_before)
    only_new, only_old = new_core - common, old_core - common
    if not only_new or not only_old or len(common) < 1:
        return False
    values = all(map(_is_value, only_new)) and all(map(_is_value, only_old))
    if values and len(only_new) <= 2 and len(only_old) <= 2:
        return True
    return len(common) >= 2 and len(only_new) == len(only_old) == 1 and _other_place(only_new | only_old, newer, older)


def _other_place(exchanged: Set[str], newer: str, older: str) -> bool:
    """Whether the one word in which the two differ is where or in what something is done ("cache it in redis"), or one
    of a group of rivals: what is done to ("handles strings", "handles numbers") can be several things."""
    if any(exchanged <= group for group in RIVALS):
        return True
    leads = [text.lower().partition(w)[0] for text in (newer, older) for w in exchanged if w in text.lower()]
    return all(_IN_WHAT.search(lead) for lead in leads)


def _clamped(items: Iterable[SummaryItem], cycle: int) -> list[SummaryItem]:
    return [
        i if i.last_cycle <= cycle else replace(i, first_cycle=min(i.first_cycle, cycle), last_cycle=cycle)
        for i in items
    ]


def _again(old: SummaryItem, new: SummaryItem) -> SummaryItem:
    """`old` said again: one item, its span of cycles widened."""
    return replace(
        old,
        first_cycle=min(old.first_cycle, new.first_cycle),
        last_cycle=max(old.last_cycle, new.last_cycle),
        sources=tuple(dict.fromkeys(old.sources + new.sources)),
    )


def _active_like(items: Sequence[SummaryItem], text: str) -> int:
    return next((n for n, i in enumerate(items) if i.status == "active" and _same(i.text, text)), -1)


def _fuse_files(earlier: Sequence[SummaryItem], new: Sequence[SummaryItem]) -> list[SummaryItem]:
    merged = list(earlier)
    for item in new:
        at = next((n for n, i in enumerate(merged) if i.status == "active" and i.key == item.key != ""), -1)
        if at < 0:
            at = _active_like(merged, item.text)
        if at < 0:
            merged.append(item)
        elif _same(merged[at].text, item.text) or item.status != "active":
            merged[at] = _again(merged[at], item)
        else:
            old = merged[at]
            merged[at : at + 1] = [
                replace(old, status="superseded"),
                replace(item, first_cycle=min(old.first_cycle, item.first_cycle)),
            ]
    return merged


def _fuse_appended(earlier: Sequence[SummaryItem], new: Sequence[SummaryItem], *, supersede: bool) -> list[SummaryItem]:
    merged = list(earlier)
    for item in new:
        at = _active_like(merged, item.text)
        if at >= 0:
            merged[at] = _again(merged[at], item)
            continue
        if supersede and item.status == "active":
            for n, old in enumerate(merged):
                if old.status == "active" and old.last_cycle <= item.last_cycle and contradicts(item.text, old.text):
                    key = old.key or f"decision {plain(old.text)}"
                    merged[n] = replace(old, status="superseded", key=key)
                    item = replace(item, key=key)
        merged.append(item)
    return merged


def _fuse_replaced(
    earlier: Sequence[SummaryItem], new: Sequence[SummaryItem], *, steps: bool, told: Sequence[str], settled: bool
) -> list[SummaryItem]:
    """New items replace the old ones, which stay as done (a step the new summary tells of) or superseded.

    So does the word that there are none (`settled`); a section that was left out replaces nothing.
    """
    if not new and not settled:
        return list(earlier)
    merged: list[SummaryItem] = []
    repeated: set[str] = set()
    for old in earlier:
        again = next((i for i in new if i.status == "active" and _same(i.text, old.text)), None)
        if old.status != "active":
            merged.append(old)
        elif again is not None:
            repeated.add(plain(again.text))
            merged.append(_again(old, again))
        else:
            merged.append(replace(old, status="done" if steps and _is_told(old.text, told) else "superseded"))
    merged.extend(i for i in new if plain(i.text) not in repeated or i.status != "active")
    return merged


def _is_told(step: str, told: Sequence[str]) -> bool:
    words = _words(step)
    return bool(words) and any(_DONE.search(t) and len(words & _words(t)) >= 0.6 * len(words) for t in told)


def fuse(earlier: Summary | None, new: Summary, *, cycle: int) -> Summary:
    """`new` (the summary of the span cut in compaction `cycle`) merged into `earlier` (P10).

    Files are keyed by path (the latest note wins, older notes stay as superseded); decisions are appended without
    duplicates and a contradicting one supersedes; intent and unknown sections are kept and appended to; current state
    and next steps are replaced. Deterministic; an empty `new` changes nothing; no cycle tag passes `cycle` (P11).
    """
    order: dict[str, str] = {}
    for section in (*new.sections, *(earlier.sections if earlier else ())):
        order.setdefault(canonical_title(section.title), section.title)
    before = _by_title(earlier.sections if earlier else ())
    after = {key: _clamped(items, cycle) for key, items in _by_title(new.sections).items()}
    folded: dict[str, tuple[Folded, ...]] = {}
    for section in earlier.sections if earlier else ():
        key = canonical_title(section.title)
        folded[key] = (*folded.get(key, ()), *section.folded)
    told = [i.text for key in ("current state", "files modified", "decisions made") for i in after.get(key, ())]
    settled = {canonical_title(s.title) for s in new.sections if s.settled and any(p.items for p in new.sections)}
    sections = []
    for key, title in order.items():
        old = before.get(key, ())
        archived = {(i.text, i.status) for i in old if i.status != "active"}
        fresh = [i for i in after.get(key, ()) if (i.text, i.status) not in archived]
        rule = rule_of(title)
        if rule == "by path":
            merged = _fuse_files(old, fresh)
        elif rule in ("replaced", "steps"):
            none = rule == "steps" and key in settled
            merged = _fuse_replaced(old, fresh, steps=rule == "steps", told=told, settled=none)
        else:
            merged = _fuse_appended(old, fresh, supersede=rule != "appended")
        sections.append(SummarySection(title, tuple(merged), folded.get(key, ())))
    return Summary(tuple(sections))


def _by_title(sections: Iterable[SummarySection]) -> dict[str, list[SummaryItem]]:
    """The items of `sections` by canonical title: a model may write two headings that mean the same."""
    found: dict[str, list[SummaryItem]] = {}
    for section in sections:
        found.setdefault(canonical_title(section.title), []).extend(section.items)
    return found


def fit(summary: Summary, cap_chars: int) -> tuple[Summary, tuple[SummaryItem, ...]]:
    """(summary whose rendering is within `cap_chars` characters, the items taken out of it, oldest first).

    The oldest items of lowest value go first; the first next step and the first intent go last. Items that are no
    longer active are taken out too once they fill more than the cap, so that a summary does not grow with the number
    of compactions (I16). When even what must stay is too long, it is shortened and the original handed back.
    """
    places = [(s, n) for s, section in enumerate(summary.sections) for n in range(len(section.items))]
    newest = max((i.last_cycle for section in summary.sections for i in section.items), default=1)

    first = {
        (s, next((n for n, i in enumerate(section.items) if i.status == "active"), 0))
        for s, section in enumerate(summary.sections)
    }

    def item_at(place: tuple[int, int]) -> SummaryItem:
        return summary.sections[place[0]].items[place[1]]

    def rank(place: tuple[int, int]) -> tuple[int, int, int, int]:
        item = item_at(place)
        title = summary.sections[place[0]].title
        keep = {"session intent": 2, "next steps": 1}.get(canonical_title(title), 0) if place in first else 0
        return keep, value_of(title) - (newest - item.last_cycle), item.last_cycle, place[1]

    dropped: set[tuple[int, int]] = set()
    inactive = [p for p in places if item_at(p).status != "active"]
    size = sum(len(item_line(item_at(p))) + 1 for p in inactive)
    for place in sorted(inactive, key=lambda p: (item_at(p).last_cycle, p)):
        if size <= cap_chars:
            break
        size -= len(item_line(item_at(place))) + 1
        dropped.add(place)

    def without() -> Summary:
        return Summary(
            tuple(
                replace(s, items=tuple(i for n, i in enumerate(s.items) if (k, n) not in dropped))
                for k, s in enumerate(summary.sections)
            )
        )

    over = len(render_sections(without())) - cap_chars
    queue = sorted((p for p in places if item_at(p).status == "active"), key=rank)
    for place in queue[:-1]:
        if over <= 0:
            break
        dropped.add(place)
        over -= len(item_line(item_at(place))) + 1
        if over <= 0:  # an emptied section gains a line, a superseded note may leave: count again
            over = len(render_sections(without())) - cap_chars
    kept = without()
    taken = [item_at(p) for p in sorted(dropped, key=lambda p: (item_at(p).last_cycle, p))]
    over = len(render_sections(kept)) - cap_chars
    if over > 0 and queue:
        last = item_at(queue[-1])
        room = len(last.text) - over
        if room >= 1:
            short = replace(last, text=last.text[: room - 1].rstrip() + "…")
            kept = _exchange(kept, last, short)
            taken.append(last)
    return kept, tuple(taken)


def _exchange(summary: Summary, old: SummaryItem, new: SummaryItem) -> Summary:
    return Summary(
        tuple(
            replace(s, items=tuple(new if i is old else i for i in s.items)) if old in s.items else s
            for s in summary.sections
        )
    )
