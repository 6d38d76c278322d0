"""Whose words an item repeats: a tool's, or the user's and the assistant's (cases 126, 127; Part 2, 15)."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from marextui.context.ask import searchable
from marextui.context.messages import Message
from marextui.context.section_titles import plain
from marextui.context.speech import by_program, own_words

_WORD = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]|[^\W_]{1,80}")
_WIDE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_RUN, _WIDE_RUN, _SHORTEST = 4, 8, 3
_QUOTED_SHARE = 0.5
_QUOTED_RUNS = 4
"""Runs of a tool's words (seven words in a row, say) that make a quotation whatever stands around them."""
_INJECTION = re.compile(
    r"prompt[ -]injection|jailbreak|injected (?:instruction|prompt)|(?:malicious|hidden|adversarial) "
    r"(?:instruction|prompt)|injection de prompt|instructions? (?:malveillante|cachée)s?",
    re.IGNORECASE,
)

Run = tuple[str, ...]


def _words(text: str) -> list[str]:
    return [w.casefold() for w in _WORD.findall(text)]


def _runs(words: Sequence[str], length: int) -> Iterator[Run]:
    return zip(*(words[n:] for n in range(length)), strict=False)


def _length(words: Sequence[str]) -> int:
    wide = sum(bool(_WIDE.match(w)) for w in words)
    return min(len(words), _WIDE_RUN if wide > len(words) / 2 else _RUN)


class Provenance:
    """The span's words by speaker; built for a list of `items` at once, in time linear in the span."""

    def __init__(self, span: Sequence[Message], earlier: Iterable[str], items: Iterable[str]) -> None:
        self._items = {text: _words(text) for text in items}
        wanted: dict[int, set[Run]] = {}
        for words in self._items.values():
            if (length := _length(words)) >= _SHORTEST:
                wanted.setdefault(length, set()).update(_runs(words, length))
        self._tool: set[Run] = set()
        self._said: set[Run] = set()
        self._users: list[tuple[str, str, set[Run]]] = []
        self._span_text = [searchable(m) for m in span if not m.synthetic]
        for message in span:
            tool = message.role == "tool" or (message.role == "user" and by_program(message))
            self._note(searchable(message), self._tool if tool else self._said, wanted)
            if own := own_words(message):
                runs: set[Run] = set()
                self._note(own, runs, wanted)
                self._users.append((message.id, f" {plain(own)} ", runs))
        for text in earlier:
            self._note(text, self._said, wanted)

    @staticmethod
    def _note(text: str, into: set[Run], wanted: dict[int, set[Run]]) -> None:
        words = _words(text) if wanted else []
        for length, runs in wanted.items():
            into.update(r for r in _runs(words, length) if r in runs)

    def from_tool_alone(self, item: str) -> bool:
        """True when half of the item, or seven words on end, are a tool's words, and none the user's or assistant's."""
        words = self._items[item]
        length = _length(words)
        if length < _SHORTEST:
            return False
        runs = set(_runs(words, length))
        tool = runs & self._tool - self._said
        return not runs & self._said and (len(tool) >= _QUOTED_RUNS or len(tool) >= _QUOTED_SHARE * len(runs))

    def users(self, item: str) -> tuple[str, ...]:
        """Ids of the user's messages that `item` quotes: half of it, or seven words on end, or all its few words."""
        words = self._items[item]
        length = _length(words)
        if length < _SHORTEST:
            said = plain(item)
            return tuple(m for m, text, _ in self._users if said and f" {said} " in text)
        runs = set(_runs(words, length))
        enough = min(_QUOTED_RUNS, _QUOTED_SHARE * len(runs))
        return tuple(m for m, _, spoken in self._users if len(runs & spoken) >= enough)

    def invented_attack(self, item: str) -> bool:
        """True when the item tells of a prompt injection that nobody in the span spoke of (case 127)."""
        return bool(_INJECTION.search(item)) and not any(_INJECTION.search(t) for t in self._span_text)
