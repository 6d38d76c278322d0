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

_ENGLISH = (
    r"(?:ignore|disregard|forget|override)\b.{0,40}\b(?:previous|prior|above|earlier|instructions?|rules?|everything)",
    r"from now on|always|never|must|do(?: not|n['’]t)|you (?:should|have to|need to|are to)|at once|immediately",
    r"without (?:asking|permission|confirm\w*)|the (?:user|owner|admin\w*) (?:wants?|asks?|requires?|says|demands?)",
    r"(?:note|message|instructions?) (?:to|for) (?:the |any |all )?(?:assistant|agent|ai|model|llm)s?",
    r"(?:run|execute|delete|remove|send|upload|post|commit|push|install|download|transfer|reveal|publish|overwrite)\s+"
    r"(?:the|this|that|all|it|them|your|every|any|curl|wget|rm|http\S*|~\S*|/\S*)",
)
_OTHERS = (
    r"ignore[rz]?|oublie[rz]?|supprime[rz]|exécute[rz]|envoye[rz]|toujours|jamais|il faut|devez|immédiatement",
    r"ignorier\w*|lösch\w*|immer|niemals|sofort|ignora\w*|borra|elimina|siempre|nunca|inmediatamente",
)
_DEMAND = re.compile(
    r"\b(?:" + "|".join(_ENGLISH + _OTHERS) + r")\b|^\W*(?:system|assistant|developer|important)\s*:"
    r"|忽略|无视|無視|立即|立刻|必须|必須|不要|禁止|删除|刪除|执行|發送|发送|必ず|しないで|削除|実行|무시|삭제|반드시",
    re.IGNORECASE,
)


def demands(text: str) -> bool:
    """Whether `text` tells somebody what to do, rather than how things are."""
    return bool(_DEMAND.search(text))


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
        self._tool_first: set[Run] = set()
        self._said: set[Run] = set()
        self._users: list[tuple[str, str, set[Run]]] = []
        self._span_text = [searchable(m) for m in span if not m.synthetic]
        for message in span:
            tool = message.role == "tool" or (message.role == "user" and by_program(message))
            heard = self._note(searchable(message), self._tool if tool else self._said, wanted)
            if tool:
                self._tool_first |= heard - self._said
            if own := own_words(message):
                runs: set[Run] = set()
                self._note(own, runs, wanted)
                self._users.append((message.id, f" {plain(own)} ", runs))
        for text in earlier:
            self._note(text, self._said, wanted)

    @staticmethod
    def _note(text: str, into: set[Run], wanted: dict[int, set[Run]]) -> set[Run]:
        words = _words(text) if wanted else []
        heard = {r for length, runs in wanted.items() for r in _runs(words, length) if r in runs}
        into |= heard
        return heard

    def from_tool_alone(self, item: str) -> bool:
        """True when half of the item, or seven words on end, are a tool's words, and none the user's or assistant's."""
        words = self._items[item]
        length = _length(words)
        if length < _SHORTEST:
            return False
        runs = set(_runs(words, length))
        tool = runs & self._tool - self._said
        return not runs & self._said and (len(tool) >= _QUOTED_RUNS or len(tool) >= _QUOTED_SHARE * len(runs))

    def tools_demand(self, item: str) -> bool:
        """True when `item` demands something in words that a tool's output said first and no user ever did.

        That the assistant has repeated them makes them nobody's wish.
        """
        words = self._items[item]
        length = _length(words)
        if length < _SHORTEST or not demands(item):
            return False
        runs = set(_runs(words, length))
        users: set[Run] = set().union(*(spoken for _, _, spoken in self._users))
        return not runs & users and len(runs & self._tool_first) >= min(_QUOTED_RUNS, _QUOTED_SHARE * len(runs))

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
