"""How memory is kept: added to without repeating, corrected without forgetting, full without silence (I14, M32, M34).

Cases 129–131, 133: a fact that replaces an earlier one about the same subject strikes it through; over the cap what no
longer holds goes first, then the oldest entries, and what a person wrote last; all of it goes to an archive.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from marextui.context.attributes import RIVALS
from marextui.context.fusion import contradicts
from marextui.context.memory import (
    MEMORY_CAP,
    Block,
    MemoryEntry,
    admissible,
    blocks,
    cut_bytes,
    fold,
    format_entry,
    one_line,
    parse_memory,
    size_of,
    struck,
)


@dataclass(frozen=True, slots=True)
class Remembered:
    """The file's new text, the facts the new entry replaced, and what had to leave the file, oldest first."""

    text: str
    superseded: tuple[str, ...] = ()
    archived: tuple[MemoryEntry, ...] = ()


@dataclass(frozen=True, slots=True)
class Fed:
    """What feeding memory did that people must hear of: entries moved to the archive, entries the archive dropped."""

    superseded: tuple[str, ...] = ()
    archived: tuple[MemoryEntry, ...] = ()
    dropped: int = 0


_LABEL = re.compile(r"(Intent|Requirement|Decision|Value|File|Earlier|Note): ")
_CHOICE = re.compile(
    r"\b(?:us(?:e|es|ed|ing)|go(?:ing)? with|cho(?:ose|oses|sen)|switch(?:ed|ing)? to|mov(?:e|ed|ing) to|adopt(?:ed)?"
    r"|prefer(?:red)?|pick(?:ed)?|migrat(?:e|ed|ing) to|settled? on|is|are|with"
    r"|utilis\w+|choisi\w*|passer à|on prend)\b"
    r"|使用|改用|采用|換成|换成|採用",
    re.IGNORECASE,
)
_NUMBERED = re.compile(
    r"\b(?:issue|ticket|bug|pr|task|step|phase|item|part|chapter|milestone|sprint|week|day|case|level|cycle|point)s? "
    r"#?\d+|#\d+"
)
"""What carries a number as its name: another number is another thing, not another value."""

_SUBJECT = re.compile(r"\s*[`*\"]*([\w ./-]{2,60}?)[`*\"]*\s*(?:[:=]|→|\bis\b|\best\b)")
_INSTEAD = re.compile(
    r"instead|rather|place of|not|no longer|drop|replac|abandon|from|au lieu|plutôt|remplace|plus", re.IGNORECASE
)
_STARTS_WITH_FILE = re.compile(r"\s*`?[\w./-]+\.\w{1,8}\b")
_NEGATION_WORDS = "not never no without avoid dont don stop cannot ne pas jamais plus sans eviter aucun"
_NEGATIONS = frozenset(_NEGATION_WORDS.split())
_WORDS = re.compile(r"[\w.+#-]*\w", re.ASCII)
_FILLER_WORDS = """
    we i our the a an use uses used using to for with as in on of and now should will must instead from go going chose
    choose chosen switch switched move moved adopt adopted prefer preferred pick picked is are be it migrate migrated
    settle settled over
"""
_FILLER = frozenset(_FILLER_WORDS.split())


def _label(fact: str) -> tuple[str, str]:
    found = _LABEL.match(fact)
    return (found.group(1), fact[found.end() :]) if found else ("", fact)


def replaces(newer: str, older: str) -> bool:
    """True when the fact `newer` says something else about the subject of `older`: only one of them can hold.

    A file's newest note replaces its earlier one; of decisions, the opposite, another value for the same thing, and
    another of things that exclude each other ("use SQLite", later "use Postgres"). Intents stand side by side.
    """
    (new_label, new), (old_label, old) = _label(newer), _label(older)
    if fold(new) == fold(old):
        return False
    if "Intent" in (new_label, old_label):
        return False
    if new_label == "File" or old_label == "File":
        path, colon, _ = new.partition(": ")
        return new_label == old_label and bool(colon) and old.startswith(path + colon)
    numbered = [set(_NUMBERED.findall(text.lower())) for text in (new, old)]
    if all(numbered) and numbered[0] != numbered[1]:
        return False
    starts = [_STARTS_WITH_FILE.match(text) for text in (new, old)]
    if all(starts) and len({m.group() for m in starts if m}) > 1:
        return False
    return contradicts(new, old) or _other_choice(new, old) or _same_frame(new, old)


def _same_frame(newer: str, older: str) -> bool:
    """True when the two differ in one short place that holds one value: what something is run with, what is used for a
    purpose."""
    new, old = (re.findall(r"[^\s,;()]+", text.lower().rstrip(".")) for text in (newer, older))
    head = 0
    while head < min(len(new), len(old)) and new[head] == old[head]:
        head += 1
    tail = 0
    while tail < min(len(new), len(old)) - head and new[-1 - tail] == old[-1 - tail]:
        tail += 1
    values = new[head : len(new) - tail], old[head : len(old) - tail]
    if not all(1 <= len(v) <= 3 for v in values) or set(values[0]) & set(values[1]):
        return False
    before, after = new[:head], new[len(new) - tail :]
    own = [w for w in before if w not in _FILLER and w not in _NEGATIONS]
    if before[-1:] == ["with"] and own and len(new) <= 8:
        return True
    used = bool(before) and before[-1] in {"use", "using", "uses"} and len(own) <= 1
    return used and bool(after) and after[0] in {"for", "as"} and any(w not in _FILLER for w in after[1:])


def _other_choice(newer: str, older: str) -> bool:
    if not (_CHOICE.search(newer) and _CHOICE.search(older)):
        return False
    written = _WORDS.findall(newer), _WORDS.findall(older)
    lowered = [w.lower() for w in written[0]], [w.lower() for w in written[1]]
    letters = frozenset(w for words in written for w in words if len(w) == 1 and w.isupper() and w != "I")
    if _other_of(letters, *written):
        return True
    return any(_other_of(group, *lowered) for group in RIVALS)


def _other_of(group: frozenset[str], newer: Sequence[str], older: Sequence[str]) -> bool:
    """True when each chooses one of `group`, not the same, and neither says what for in a way the other does not."""
    one, other = _chosen(newer, group), _chosen(older, group)
    if not one or not other or one == other:
        return False
    mine, theirs = ({w.lower() for w in words if w not in group} - _FILLER for words in (newer, older))
    return mine <= theirs or theirs <= mine


@dataclass(frozen=True, slots=True)
class _Gist:
    """What of a fact decides at a glance whether two can be about the same subject."""

    words: frozenset[str]
    rivals: frozenset[int]
    subject: str
    negated: bool

    def may_meet(self, newer: _Gist, *, instead: bool) -> bool:
        """False when `newer` surely does not replace this fact; true costs a closer look."""
        if self.rivals & newer.rivals or (self.subject and self.subject == newer.subject):
            return True
        common = len(self.words & newer.words)
        if not common:
            return False
        if instead or self.negated != newer.negated:
            return 3 * common >= min(len(self.words), len(newer.words)) or instead
        return len(self.words) - common <= 2 and len(newer.words) - common <= 2


def _gist(fact: str) -> _Gist:
    label, text = _label(fact)
    words = {w.lower().rstrip("s") for w in _WORDS.findall(text)}
    plain = {w.lower() for w in _WORDS.findall(text)}
    rivals = {n for n, group in enumerate(RIVALS) if not group.isdisjoint(plain)}
    if any(len(w) == 1 for w in plain):
        rivals.add(-1)
    subject = _SUBJECT.match(text)
    return _Gist(
        frozenset(words - _FILLER),
        frozenset(rivals),
        f"{label} {subject.group(1).lower()}" if subject else "",
        not _NEGATIONS.isdisjoint(plain),
    )


def _chosen(words: Sequence[str], group: frozenset[str]) -> str:
    """The one member of `group` that is chosen: "from X to Y", "Y instead of X" and "Y, not X" choose Y."""
    dropped = {"from", "of", "not", "over", "than"}
    found = {w for n, w in enumerate(words) if w in group and not (n and words[n - 1].lower() in dropped)}
    return found.pop() if len(found) == 1 else ""


def remember(text: str, e: MemoryEntry, *, cap: int = MEMORY_CAP) -> Remembered:
    """The file's text with `e` added, at most `cap` bytes of UTF-8 (M32, M34, I14).

    Facts that stand in the file and hold are not repeated (label, case and blanks aside); outcomes of permissions are
    not taken. Facts of earlier entries that a new one replaces, and those of `e.supersedes` that are found there, are
    struck through where they stand; text by hand is never changed. When neither adds anything the file stays as it is.
    An entry larger than the cap by itself is cut at its end.
    """
    lines = text.rstrip("\n").split("\n") if text.strip() else []
    old = blocks("\n".join(lines))
    known = {said(f) for block in old for f in _standing(block, e.date)}
    fresh: dict[str, str] = {}
    for fact in map(one_line, e.facts):
        if said(fact) and said(fact) not in known and admissible(fact):
            fresh.setdefault(said(fact), fact)
    superseded = list(_strike(lines, old, tuple(fresh.values()), e.supersedes, e.date))
    if not fresh and not superseded:
        return Remembered(text)
    new = replace(e, facts=tuple(fresh.values()), supersedes=tuple(superseded))
    block = format_entry(new)
    if not lines:
        return Remembered(cut_bytes(block, cap), tuple(superseded))
    joined = "\n".join((*lines, "", block))
    if size_of(joined) <= cap:
        return Remembered(joined, tuple(superseded))
    kept, archived = _make_room(lines, cap - size_of(block) - 1, e.date)
    joined = "\n".join((*kept, "", block)) if kept else block
    return Remembered(cut_bytes(joined, cap), tuple(superseded), archived)


def said(fact: str) -> str:
    """Equal for facts that say the same, whatever they are labelled as and quoted or not."""
    return fold(_label(fact)[1]).strip("“”. ")


def _standing(block: Block, date: str) -> Iterator[str]:
    for fact in block.entry.active(date):
        yield from (line.lstrip("-*• ") for line in fact.split("\n")) if not block.date else (fact,)


def _strike(
    lines: list[str], old: Sequence[Block], fresh: Sequence[str], ended: Sequence[str], date: str
) -> Iterator[str]:
    """Strike through, in `lines`, the facts that one of `fresh` replaces or that `ended`; yields them.

    What ended as an intent ("Intent: …") ends intents alone. Line numbers stay valid.
    """
    over = {label: [said(e) for e in ended if _label(e)[0] == label] for label in {_label(e)[0] for e in ended}}
    wanted = [(new, _gist(new), bool(_INSTEAD.search(new))) for new in fresh]
    for block in old:
        if not block.date:
            continue
        for line in block.lines:
            if line.kind != "fact":
                continue
            gist = _gist(line.text)
            # At a glance first: a full file holds twenty thousand facts.
            if _is_over(line.text, over) or any(
                gist.may_meet(g, instead=instead) and replaces(new, line.text) for new, g, instead in wanted
            ):
                lines[line.first] = struck(line.text, date)
                for wrapped in range(line.first + 1, line.end):
                    lines[wrapped] = ""
                yield line.text


def _is_over(fact: str, over: Mapping[str, Sequence[str]]) -> bool:
    """Whether `fact` is one of those that ended; a long one is known by its beginning, if it was shortened."""
    if not over:
        return False
    label, text = _label(fact)[0], said(fact)
    ends = (*over.get("", ()), *(over.get(label, ()) if label else ()))
    return any(text == e or (text.endswith("…") and len(text) > 40 and e.startswith(text[:-1].rstrip())) for e in ends)


def _make_room(lines: Sequence[str], room: int, today: str) -> tuple[list[str], tuple[MemoryEntry, ...]]:
    """(the lines that stay within `room` bytes, what went, oldest first): what no longer holds, the oldest, by hand."""
    over = sum(size_of(line) + 1 for line in lines) - room
    gone: set[int] = set()
    archived: dict[int, MemoryEntry] = {}

    def take(first: int, end: int) -> None:
        nonlocal over
        fresh = set(range(first, end)) - gone
        gone.update(fresh)
        over -= sum(size_of(lines[n]) + 1 for n in fresh)

    found = blocks("\n".join(lines))
    for at, block in enumerate(found):
        if over <= 0:
            break
        holding = set(block.entry.active(today)) if block.date else {block.hand}
        past = [line for line in block.lines if line.kind == "fact" and line.text not in holding]
        struck_out = [line for line in block.lines if line.kind == "superseded"]
        if not past and not struck_out:
            continue
        archived[at] = replace(
            block.entry,
            facts=tuple(line.text for line in past),
            superseded=tuple(line.text for line in struck_out),
            supersedes=(),
        )
        for line in (*past, *struck_out):
            take(line.first, line.end)
        if not holding:
            take(block.first, block.end)
    for by_hand in (False, True):
        for at, block in enumerate(found):
            if over <= 0:
                break
            if (not block.date) is by_hand and not set(range(block.first, block.end)) <= gone:
                archived[at] = block.entry
                take(block.first, block.end)
    return [line for n, line in enumerate(lines) if n not in gone], tuple(archived[at] for at in sorted(archived))


def add_archive(text: str, entries: Sequence[MemoryEntry], *, cap: int = MEMORY_CAP) -> tuple[str, int]:
    """(the archive with `entries` appended, at most `cap` bytes; how many of its oldest entries had to go for good)."""
    kept = [format_entry(e) for e in (*parse_memory(text), *entries)]
    size = sum(size_of(block) + 1 for block in kept)
    dropped = 0
    while kept[dropped + 1 :] and size > cap:
        size -= size_of(kept[dropped]) + 1
        dropped += 1
    return cut_bytes("\n".join(kept[dropped:]), cap), dropped
