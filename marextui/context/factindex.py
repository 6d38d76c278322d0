"""Exact facts of a span, found by code: paths, errors, values with their keys, ids (issue section 2; Part 2, 2)."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Literal

from marextui.context.beside_labels import labels
from marextui.context.calls import arguments, call_command
from marextui.context.fact_keys import FactKind, Found
from marextui.context.fact_patterns import facts_in
from marextui.context.messages import Message, ToolCall, canonical_json
from marextui.context.orders import order_history
from marextui.context.outcomes import files_of
from marextui.context.quoting import code, inert, quoted
from marextui.context.redaction import redact
from marextui.context.search_words import flat, stem
from marextui.context.speech import is_request, own_words, tame

Speaker = Literal["user", "assistant", "call", "tool"]
"""Who stated a fact; `call` is the arguments of a tool call."""


@dataclass(frozen=True, slots=True)
class Fact:
    """A value as it stands in the message `message_id` (the first one that states it).

    `key` names it: "timeout", a package; the value itself where nothing names it. `uses` counts the messages it stands
    in. `superseded_by` is the id of the message that gave the key another value, "" while it holds.
    """

    kind: FactKind
    key: str
    value: str
    message_id: str
    uses: int
    superseded_by: str = ""
    speaker: Speaker = "tool"
    last: int = 0
    """Position of the last message it stands in, counted from 1; system messages and summaries are not counted."""


@dataclass(frozen=True, slots=True)
class _Told:
    """A stretch of text with who said it; `subject` is what a tool was asked about (a file, a command)."""

    speaker: Speaker
    text: str
    subject: str = ""
    spoken: bool = False
    """A person's own sentences stand in it too."""

    @property
    def ending(self) -> str:
        """The ending of the file or command it is about."""
        return self.subject.split("\n", 1)[0][-200:].rstrip()


@dataclass(frozen=True, slots=True)
class _About:
    """What a call is about: the one file it touches, its command, or the call itself; `plain` when neither."""

    subject: str
    plain: bool


def _about(call: ToolCall) -> _About:
    files = dict.fromkeys(path.removeprefix("./") for path, _ in files_of(call))
    command = call_command(call)
    subject = next(iter(files)) if len(files) == 1 else command or f"{call.name} {call.arguments}"
    return _About(subject, not files and not command)


_PLUMBING_KEYS = """
    command cmd path file_path filepath filename description pattern input code query content text prompt search replace
    old_string new_string old_str new_str patch diff output_mode
"""
_PLUMBING = frozenset(_PLUMBING_KEYS.split())


def _strings(value: object, *, named: bool) -> Iterator[str]:
    """Texts in the arguments of a call; with their names where the tool is none that works on files or commands."""
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for key, inner in value.items():
            if named and isinstance(inner, str | int | float) and "\n" not in str(inner) and key not in _PLUMBING:
                yield f"{canonical_json(key)}: {canonical_json(inner)}"
            else:
                yield from _strings(inner, named=named)
    elif isinstance(value, list):
        for inner in value:
            yield from _strings(inner, named=named)


_SOURCE = re.compile(
    r"\.(?:py|pyi|js|jsx|mjs|ts|tsx|vue|css|scss|html?|go|rs|java|kt|c|h|cc|cpp|hpp|cs|rb|php|swift|lua|md|rst|pony|sql)$"
)


_CONFIG = re.compile(
    r"(?:\.(?:env|toml|ya?ml|ini|cfg|conf|json|properties|lock|txt)|(?:^|/)(?:\.env[\w.]*|Dockerfile|Makefile|Procfile))$"
)


def _told(message: Message, about: dict[str, _About]) -> Iterator[_Told]:
    if message.role == "tool":
        asked = about.get(message.tool_call_id)
        yield _Told("tool", message.text, message.tool_call_id if asked is None else asked.subject)
    elif message.role == "user":
        asks = is_request(message)
        if asks:
            yield _Told("user", own_words(message))
        yield _Told("tool", message.text, message.id, spoken=asks)
    elif message.role == "assistant":
        yield _Told("assistant", message.text)
        for call in message.tool_calls:
            asked = about[call.id]
            yield _Told("call", "\n".join(_strings(dict(arguments(call)), named=asked.plain)), asked.subject)


_REGISTER = frozenset({"number", "setting", "port", "version", "date", "id"})
_MANY = frozenset({"number", "setting", "port", "date"})
_BY_TOKEN = frozenset({"path", "symbol", "hash", "url", "id"})
_TOKEN = re.compile(r"[^\s\"'`()\[\]{},;<>|=*]{3,300}")
_SPACES = re.compile(r"[\s_]+")


def _same(value: str) -> str:
    return _SPACES.sub("", value.lower())


def _words(key: str) -> str:
    """A key for comparison: "timeout login" is the login timeout."""
    return " ".join(sorted({stem(w) for w in flat(key).split()}))


_DIGITS = re.compile(r"[\d.,_\s-]+")


_TIME = ("ms", "µs", "s", "m", "h", "day", "j", "week")


def _unit(value: str) -> str:
    """What kind of unit stands beside the digits: "time" for `30 s` and `2 minutes`, "" for none."""
    unit = _DIGITS.sub("", value.lower())
    return "time" if unit.startswith(_TIME) and unit != "mb" else unit[:1]


def _facts_of(text: str, told: _Told) -> tuple[Found, ...]:
    ending = told.ending
    return facts_in(
        text,
        prose=told.speaker in {"user", "assistant"},
        source=bool(_SOURCE.search(ending)),
        config=bool(_CONFIG.search(ending)),
        spoken=told.spoken,
    )


class _Index:
    def __init__(self) -> None:
        self.facts: list[Fact] = []
        self.plain: dict[tuple[str, str], int] = {}
        self.held: dict[tuple[str, str], dict[str, int]] = {}  # (kind, key) -> by slot, the fact in force
        self.names: dict[tuple[str, str], str] = {}  # the key as it was said first
        self.holders: dict[str, dict[tuple[FactKind, str], None]] = {}  # holder -> (kind, name) of its values
        self.shared: set[tuple[str, str]] = set()  # (kind, name) of which somebody has a value of his own
        self.spoken: set[tuple[str, str]] = set()  # what the user's own words name in the message at hand
        self.seen: dict[int, str] = {}  # the last message that counted for a fact

    def take(self, message: Message, position: int, told: _Told, found: Sequence[Found], pasted: bool) -> None:
        if told.speaker == "user":
            self.spoken = {(fact.kind, _words(fact.key)) for fact in found if fact.named}
        found = [*self._said_not(found, message, told.speaker)]
        values: dict[tuple[str, str], set[str]] = {}
        for fact in found:
            if fact.named:
                values.setdefault((fact.kind, fact.key), set()).add(_same(fact.value))
        for fact in found:
            if fact.kind == "error" and told.speaker == "user":
                continue  # found again, whole, in all that the message holds
            one = fact.named and len(values[(fact.kind, fact.key)]) == 1
            if fact.named and not one and told.speaker in {"user", "assistant"}:
                one = True  # of several values in one text of prose the last one stands
            if fact.named and not one and fact.kind in _MANY:
                continue  # one name for many things in one output: without the thing the value says nothing
            if told.spoken and fact.named and (fact.kind, _words(fact.key)) in self.spoken:
                continue  # the user's own words, read above
            if one and fact.kind in _REGISTER:
                self._name(fact, message, position, told)
            else:
                speaker: Speaker = "user" if pasted and fact.kind not in _REGISTER - {"id"} else told.speaker
                self._plain(fact, message, position, speaker)

    def _said_not(self, found: Sequence[Found], message: Message, speaker: Speaker) -> Iterator[Found]:
        """What of `found` is said to be so; what the user says is not so holds no longer."""
        denied = {(f.kind, _words(f.key), _same(f.value)) for f in found if f.denied}
        for kind, key, value in denied if speaker == "user" else ():
            slots = self.held.get((kind, key), {})
            for slot in [s for s, n in slots.items() if _same(self.facts[n].value) == value]:
                self._supersede(slots.pop(slot), message)
        for fact in found:
            if not fact.denied and (not fact.named or (fact.kind, _words(fact.key), _same(fact.value)) not in denied):
                yield fact

    def _whose(self, fact: Found) -> Found:
        """`fact` with the holder it is known to belong to: "move prod to port 1", "login is 45 s"."""
        if fact.holder:
            place = (fact.kind, _words(fact.name))
            self.holders.setdefault(_words(fact.holder), {})[place] = None
            self.shared.add(place)
        elif fact.moved and (fact.kind, _words(fact.key)) in self.shared:
            return self._whose(replace(fact, key=f"{fact.moved} {fact.key}", holder=fact.moved))
        elif (fact.kind, _words(fact.key)) not in self.held:
            fits = [n for n in self.holders.get(_words(fact.key), ()) if self._fits(fact, *n)]
            if len(fits) == 1:
                kind, name = fits[0]
                return replace(fact, kind=kind, key=f"{fact.key} {name}")
        return fact

    def _fits(self, fact: Found, kind: FactKind, name: str) -> bool:
        """Whether the value is of the kind the holder `fact.key` has for `name`: a number of the same unit."""
        had = self.held.get((kind, _words(f"{fact.key} {name}")), {})
        return any(_unit(fact.value) in {"", _unit(self.facts[n].value)} for n in had.values())

    def _count(self, n: int, message: Message, position: int) -> None:
        if self.seen.get(n) != message.id:
            self.seen[n] = message.id
            fact = self.facts[n]
            self.facts[n] = replace(fact, uses=fact.uses + 1, last=position)

    def _add(self, fact: Found, message: Message, position: int, speaker: Speaker) -> int:
        self.facts.append(Fact(fact.kind, fact.key, fact.value, message.id, 1, "", speaker, position))
        self.seen[len(self.facts) - 1] = message.id
        return len(self.facts) - 1

    def _plain(self, fact: Found, message: Message, position: int, speaker: Speaker) -> None:
        by_value = not fact.named or fact.kind == "id"
        key = (fact.kind, fact.value if by_value else f"{fact.key}={_same(fact.value)}")
        n = self.plain.get(key)
        if n is None:
            self.plain[key] = self._add(fact, message, position, speaker)
            return
        known = self.facts[n]
        if known.key == known.value != fact.key:  # now we learn what it is called
            self.facts[n] = replace(known, key=fact.key)
        self._count(n, message, position)

    def _name(self, fact: Found, message: Message, position: int, told: _Told) -> None:
        """A value for a name: the last one said in a slot stands. What tools say never corrects what a user said."""
        fact = self._whose(fact)
        place = (fact.kind, _words(fact.key))
        if fact.known_only and place not in self.held:
            return
        fact = replace(fact, key=self.names.setdefault(place, fact.key))
        slots = self.held.setdefault(place, {})
        slot = told.speaker if told.speaker in {"user", "assistant"} else f"about {told.subject}"
        known = False
        for other in ("user", "assistant", slot):
            n = slots.get(other)
            if n is not None and _same(self.facts[n].value) == _same(fact.value):
                self._count(n, message, position)
                known = True
        if known and (slot in slots or slot != "user"):
            if slot in slots and _same(self.facts[slots[slot]].value) != _same(fact.value):
                self._supersede(slots[slot], message)
                del slots[slot]
            return
        n = self._add(fact, message, position, told.speaker)
        if fact.kind == "id":
            self.plain.setdefault(("id", fact.value), n)
        if slot in slots:
            self._supersede(slots[slot], message)
        if slot == "user":
            self._correct(slots, fact, message)
        slots[slot] = n

    def _correct(self, slots: dict[str, int], fact: Found, message: Message) -> None:
        """The user's word corrects the assistant, and a tool where only one thing goes by that name."""
        others = [s for s in slots if s not in {"user", "assistant"}]
        for other in ["assistant", *(others if len(others) == 1 else [])]:
            if other in slots and _same(self.facts[slots[other]].value) != _same(fact.value):
                self._supersede(slots.pop(other), message)

    def _supersede(self, n: int, message: Message) -> None:
        if not self.facts[n].superseded_by:
            self.facts[n] = replace(self.facts[n], superseded_by=message.id)

    def count_tokens(self, message: Message, position: int, text: str) -> None:
        """Count the use of values that stand in `text` as a word of their own, however it was said."""
        for token in set(_TOKEN.findall(text)):
            if token.isalpha() and (token.islower() or token.istitle()):
                continue  # an ordinary word
            for word in {token, token.rstrip(".:!?"), token.removeprefix("./")}:
                for kind in _BY_TOKEN:
                    n = self.plain.get((kind, word))
                    if n is not None:
                        self._count(n, message, position)


def index_facts(messages: Sequence[Message]) -> tuple[Fact, ...]:
    """Facts of `messages` in the order they were first stated, superseded ones included; linear in their length.

    A value said again by anyone counts as a use. The last value of a name stands (last writer wins) among what one
    speaker said, for tools about one thing; a user's word corrects the others, never the other way round. Values that
    are secrets are left out.
    """
    index = _Index()
    about: dict[str, _About] = {}
    told_by = [m for m in messages if m.role != "system" and not m.synthetic]
    for position, message in enumerate(told_by, 1):
        for call in message.tool_calls:
            about[call.id] = _about(call)
        for told in _told(message, about):
            if told.text.strip():
                text = tame(told.text)
                found = _facts_of(text, told)
                pasted = message.role == "user" and is_request(message)
                index.take(message, position, told, found, pasted)
                index.count_tokens(message, position, text)
    facts = [f for f in index.facts if not _secret(f)]
    places = {m.id: n for n, m in enumerate(told_by, 1)}
    facts.extend(
        Fact("constraint", o.text, o.text, o.message_id, 1, o.superseded_by, "user", places[o.message_id])
        for o in order_history(told_by)
        if o.kind in {"constraint", "toggle"}
    )
    return tuple(sorted(facts, key=lambda f: places[f.message_id]))


def _secret(fact: Fact) -> bool:
    said = fact.value if fact.key == fact.value else f'{fact.key.replace(" ", "_")}="{fact.value}"'
    return redact(said) != said or "[redacted" in fact.value


_WEIGHT: dict[FactKind, float] = {
    "path": 1.0,
    "symbol": 0.7,
    "error": 3.0,
    "number": 1.6,
    "hash": 1.5,
    "url": 1.4,
    "setting": 1.3,
    "constraint": 3.0,
    "id": 2.0,
    "version": 1.2,
    "port": 2.0,
    "date": 1.3,
}
_SPOKEN: dict[Speaker, float] = {"user": 4.0, "assistant": 1.6, "call": 1.2, "tool": 0.8}


_RARE = frozenset({"error", "hash", "id", "url", "port"})
_ONCE = 0.5
"""What a tool printed once and nobody used since is worth less, but for kinds that are looked up exactly."""


def _score(fact: Fact, newest: int, corrected: bool) -> float:
    reuse = 1 + 0.5 * math.log2(max(1, fact.uses))
    recent = 0.6 + 0.4 * fact.last / max(1, newest)
    once = _ONCE if fact.uses == 1 and fact.speaker in {"call", "tool"} and fact.kind not in _RARE else 1.0
    return _WEIGHT[fact.kind] * _SPOKEN[fact.speaker] * reuse * recent * once * (1.5 if corrected else 1.0)


def _corrections(facts: Sequence[Fact]) -> dict[tuple[str, str, str], Fact]:
    """(kind, key, id of the correcting message) -> the value that was corrected there, a user's before a tool's."""
    found: dict[tuple[str, str, str], Fact] = {}
    for fact in sorted((f for f in facts if f.superseded_by), key=lambda f: _SPOKEN[f.speaker]):
        found[(fact.kind, flat(fact.key), fact.superseded_by)] = fact
    return found


def best_facts(facts: Sequence[Fact], *, max_chars: int) -> tuple[Fact, ...]:
    """The facts most worth their room, best first, whose rendering has at most `max_chars` characters.

    By who said it (a user most), kind (errors, ids), reuse and recency. A corrected fact is followed by the value it
    had, so that `render_facts` can say so.
    """
    was = _corrections(facts)
    newest = max((f.last for f in facts), default=0)
    holding = [(n, f) for n, f in enumerate(facts) if not f.superseded_by]
    ranked = sorted(
        holding, key=lambda nf: (-_score(nf[1], newest, (nf[1].kind, flat(nf[1].key), nf[1].message_id) in was), -nf[0])
    )
    chosen: list[Fact] = []
    room = max_chars
    tails = {t for _, f in holding if f.kind == "path" for t in _tails(f.value)}
    for _, fact in ranked:
        if room < _SHORTEST:
            break
        if fact.kind == "path" and fact.value in tails:
            continue  # the whole path stands for it
        if fact.kind in {"path", "symbol"} and fact.uses == 1 and fact.speaker == "tool":
            continue  # one of a listing; Recall finds it
        old = was.get((fact.kind, flat(fact.key), fact.message_id))
        cost = len(_line(fact, old, "French")) + 1
        if cost <= room:
            room -= cost
            chosen.extend((fact, old) if old is not None else (fact,))
    return tuple(chosen)


def _tails(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[n:]) for n in range(1, min(len(parts), 12))]


_SHORTEST = 24
"""Characters below which no line of a fact is expected to fit."""
_VALUE_CHARS = 300


def _line(fact: Fact, old: Fact | None, language: str) -> str:
    words = labels(language)
    value = quoted(fact.value, _VALUE_CHARS) if fact.kind == "constraint" else code(fact.value, _VALUE_CHARS)
    name = "" if fact.key in {fact.value, "id"} else f" {inert(fact.key, 80)} ="
    kind = words[fact.kind]
    doubled = bool(name) and kind.lower() in fact.key.lower().split()  # "port", "staging port" say it themselves
    who = f"{words[fact.speaker]}, " if fact.speaker in {"user", "assistant"} else ""
    times = f", ×{fact.uses}" if fact.uses > 1 else ""
    before = ""
    if old is not None:
        value_before = quoted(old.value, 120) if old.kind == "constraint" else code(old.value, 120)
        before = "; " + words["was"].format(value=value_before, id=fact.message_id)
    return f"- {name.strip() if doubled else kind + name} {value} ({who}{fact.message_id}{times}{before})"


def render_facts(facts: Sequence[Fact], *, max_chars: int, language: str = "English") -> str:
    """One bullet for each fact that holds, in the given order; a corrected one says what it was until when.

    At most `max_chars` characters: later facts that do not fit are left out.
    """
    was = _corrections(facts)
    lines: list[str] = []
    room = max_chars + 1
    for fact in facts:
        if fact.superseded_by:
            continue
        line = _line(fact, was.get((fact.kind, flat(fact.key), fact.message_id)), language)
        if len(line) + 1 <= room:
            room -= len(line) + 1
            lines.append(line)
    return "\n".join(lines)


__all__ = ["Fact", "FactKind", "Speaker", "best_facts", "index_facts", "render_facts"]
