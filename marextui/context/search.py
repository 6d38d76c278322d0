"""Lexical search without dependencies: exact phrases and identifiers first, then BM25 over passages.

Documents are cut into overlapping passages of whole lines, so that the one sentence that answers a question is not
drowned by the long output around it. Deterministic; no model, no index on disk.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Container, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import pairwise

from marextui.context.search_words import EXPECTED, RELATED, STOP_WORDS, flat, stem


@dataclass(frozen=True, slots=True)
class Doc:
    """A searchable text; documents are given in time order, oldest first."""

    id: str
    text: str


@dataclass(frozen=True, slots=True)
class Hit:
    """A passage of the document `id`; a higher score is better."""

    id: str
    text: str
    score: float


_PASSAGE_CHARS = 700
_OVERLAP_CHARS = 200
_K1, _B = 1.2, 0.5
_RELATED_WEIGHT = 0.35
_PART_WEIGHT = 0.6
_TOKEN = re.compile(r"[^\W_](?:[\w./:@+#-]*[\w+#])?|[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_WIDE = re.compile(r"[\u3040-\u30ff\u4e00-\u9fff\uac00-\ud7af]")
_CAMEL = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|\d+|[^\W\d_a-zA-Z]+")


def _is_identifier(token: str) -> bool:
    return any(c.isdigit() or c in "_./:@+#-" for c in token) or bool(re.search(r"[a-z][A-Z]", token))


def tokens(text: str) -> list[tuple[str, float]]:
    """(term, weight) of `text`: words stemmed, identifiers and paths whole and, weighing less, in their parts."""
    found: list[tuple[str, float]] = []
    for m in _TOKEN.finditer(text):
        raw = m.group()
        found.extend(_known_terms(raw) if len(raw) <= _WORD_CHARS else _terms(raw))
    return found


def _terms(raw: str) -> tuple[tuple[str, float], ...]:
    """What `tokens` makes of one word."""
    found: list[tuple[str, float]] = []
    if _WIDE.search(raw):
        wide = [c for c in raw if _WIDE.match(c)]
        found.extend((c, 1.0) for c in wide)
        found.extend((a + b, 1.0) for a, b in pairwise(wide))
        raw = _WIDE.sub("", raw)
        if not raw:
            return tuple(found)
    if _is_identifier(raw):
        whole = flat(raw)
        found.append((whole, 1.0))
        parts = [stem(flat(p)) for p in _CAMEL.findall(raw)]
        if parts != [whole]:
            found.extend((p, _PART_WEIGHT) for p in parts if len(p) > 1 or p.isdigit())
    else:
        found.append((stem(flat(raw)), 1.0))
    return tuple(found)


_known_terms = lru_cache(maxsize=32_768)(_terms)
"""Remembered: a conversation says the same words again and again, and every message is indexed."""
_WORD_CHARS = 64
"""Longest word that is remembered, in characters."""


@dataclass(slots=True)
class _Passage:
    doc: int
    start: int
    end: int
    terms: dict[str, float]
    length: float


def _spans(text: str) -> list[tuple[int, int]]:
    """Overlapping stretches of whole lines; a line longer than a passage is cut at blanks."""
    pieces: list[tuple[int, int]] = []
    start = 0
    for line in text.splitlines(keepends=True):
        at = start
        while start + len(line) - at > _PASSAGE_CHARS:
            cut = text.rfind(" ", at + _PASSAGE_CHARS // 2, at + _PASSAGE_CHARS)
            cut = cut + 1 if cut != -1 else at + _PASSAGE_CHARS
            pieces.append((at, cut))
            at = cut
        pieces.append((at, start + len(line)))
        start += len(line)
    spans: list[tuple[int, int]] = []
    first = 0
    while first < len(pieces):
        begin, last = pieces[first][0], first
        while last + 1 < len(pieces) and pieces[last + 1][1] - begin <= _PASSAGE_CHARS:
            last += 1
        end = pieces[last][1]
        spans.append((begin, end))
        if last + 1 >= len(pieces):
            break
        back = last + 1
        while back - 1 > first and end - pieces[back - 1][0] <= _OVERLAP_CHARS:
            back -= 1
        first = back
    return spans


Prepared = dict[tuple[str, int], list[tuple[int, int, dict[str, float], float]]]
"""Passages by (id, hash) of their document, to be used again: (start, end, terms, length in terms) of each."""


def _passages(docs: Sequence[Doc], only: Container[str] | None, prepared: Prepared) -> list[_Passage]:
    found: list[_Passage] = []
    for n, doc in enumerate(docs):
        if only is not None and doc.id not in only:
            continue
        key = (doc.id, hash(doc.text))
        if key not in prepared:
            prepared[key] = list(_cut(doc.text))
        found.extend(_Passage(n, *passage) for passage in prepared[key])
    return found


def _cut(text: str) -> Iterator[tuple[int, int, dict[str, float], float]]:
    for start, end in _spans(text):
        terms: dict[str, float] = {}
        length = 0.0
        for term, weight in tokens(text[start:end]):
            terms[term] = terms.get(term, 0.0) + weight
            length += weight
        if terms:
            yield start, end, terms, length


def query_terms(query: str) -> dict[str, float]:
    """Terms of the query with their weights, related words at a lower one; stop-words only when there is nothing else.

    They are terms of `tokens`.
    """
    weights: dict[str, float] = {}
    for term, weight in tokens(query):
        if term not in STOP_WORDS:
            weights[term] = max(weights.get(term, 0.0), weight)
    if not weights:
        weights = dict.fromkeys((t for t, _ in tokens(query)), 1.0)
    for term in list(weights):
        for related in RELATED.get(term, ()):
            weights.setdefault(related, _RELATED_WEIGHT * weights[term])
    return weights


_NUMBERED = re.compile(r"\b([^\W\d_]{3,}) +#?(\d+)\b")
_QUOTED = re.compile(r"[\"“«`']([^\"”»`']{3,200})[\"”»`']")


def phrases(query: str) -> list[str]:
    """What should be found literally: quoted parts, identifiers, numbered things ("step 12"), and the query itself
    when it is no question."""
    found = [m.group(1).strip() for m in _QUOTED.finditer(query)]
    found.extend(t for t in (m.group() for m in _TOKEN.finditer(query)) if _is_identifier(t) and len(t) > 2)
    found.extend(f"{word} {number}" for word, number in _NUMBERED.findall(query))
    whole = query.strip().rstrip("?.! ")
    if "?" not in query and len(whole) > 3 and " " in whole:
        found.append(whole)
    return [p.lower() for p in dict.fromkeys(found) if p]


def _literally(phrase: str) -> re.Pattern[str]:
    """`phrase` as it is, but "step 1" not in "step 12"."""
    return re.compile(re.escape(phrase) + (r"(?!\d)" if phrase[-1].isdigit() else ""))


def _expected(query: str) -> list[re.Pattern[str]]:
    asked_for = flat(query)
    return [answer for asked, answer in EXPECTED if asked.search(asked_for)]


def _widen(text: str, start: int, end: int, max_chars: int) -> str:
    """The passage with as much of its surroundings as fits, cut at line ends where one is near."""
    if len(text) <= max_chars:
        return text.strip()
    spare = max(0, max_chars - (end - start) - 2)
    begin = max(0, start - spare // 3)
    stop = min(len(text), begin + max_chars - 2)
    begin = max(0, min(begin, stop - max_chars + 2)) if stop == len(text) else begin
    if begin:
        newline = text.find("\n", begin, start)
        begin = newline + 1 if newline != -1 else begin
    if stop < len(text):
        newline = text.rfind("\n", end, stop)
        stop = newline if newline != -1 else stop
    body = text[begin:stop].strip()
    return (("…" if begin else "") + body + ("…" if stop < len(text) else ""))[:max_chars]


class Index:
    """Documents made searchable once, for several queries.

    `only` are the ids looked through (None: all); the others still stand around what is found. `prepared` is kept by a
    caller that searches the same documents again: it is filled, and spares cutting them anew.
    """

    def __init__(
        self, docs: Sequence[Doc], *, only: Container[str] | None = None, prepared: Prepared | None = None
    ) -> None:
        self._docs = tuple(docs)
        self._passages = _passages(self._docs, only, {} if prepared is None else prepared)
        self._average = sum(p.length for p in self._passages) / max(1, len(self._passages))

    def search(self, query: str, *, limit: int = 3, max_chars: int = 2000) -> tuple[Hit, ...]:
        """As `search` of this module."""
        weights, passages = query_terms(query), self._passages
        if not weights or not passages or limit < 1:
            return ()
        total = len(passages)
        seen = Counter(term for p in passages for term in weights if term in p.terms)
        idf = {t: math.log(1 + (total - n + 0.5) / (n + 0.5)) for t, n in seen.items()}
        literal, expected = [_literally(p) for p in phrases(query)], _expected(query)
        literal_bonus = 1.5 * math.log(1 + total)
        asked = {t: w for t, w in weights.items() if w > _RELATED_WEIGHT}
        best_possible = sum(w * idf.get(t, 0.0) for t, w in asked.items()) or 1.0
        scored: list[tuple[float, int, int]] = []
        for n, p in enumerate(passages):
            norm = _K1 * (1 - _B + _B * p.length / self._average)
            held = [(t, p.terms[t]) for t in weights if t in p.terms]
            if not held:
                continue
            score = sum(weights[t] * idf[t] * count * (_K1 + 1) / (count + norm) for t, count in held)
            covered = sum(asked[t] * idf[t] for t, _ in held if t in asked)
            text = self._docs[p.doc].text[p.start : p.end].lower()
            score *= 1 + 0.5 * min(1.0, covered / best_possible)
            score += sum(literal_bonus for phrase in literal if phrase.search(text))
            if any(pattern.search(text) for pattern in expected):
                score *= 1.2
            scored.append((score, p.doc, n))
        scored.sort(key=lambda s: (-round(s[0], 6), -s[1], s[2]))
        return _distinct(self._docs, passages, scored, limit, max_chars)


def search(docs: Sequence[Doc], query: str, *, limit: int = 3, max_chars: int = 2000) -> tuple[Hit, ...]:
    """At most `limit` passages for `query`, best first, each of at most `max_chars` characters; () when none matches.

    A hit shows the best window of its document, widened to whole lines; what is left of its room shows the documents
    next to it, labelled with their ids.

    A passage scores by BM25, rare words counting most; more when it holds many of the words asked for, a quoted phrase
    or an identifier of the query literally, or the kind of thing the question asks for (a number for "how many", a
    path for "which file"). Among equals the later is first: later statements correct earlier ones.
    """
    return Index(docs).search(query, limit=limit, max_chars=max_chars)


_SAME_DOC = 0.75
"""A further passage of a document already shown counts less: three results should be three places."""


def _distinct(
    docs: Sequence[Doc],
    passages: Sequence[_Passage],
    scored: Sequence[tuple[float, int, int]],
    limit: int,
    max_chars: int,
) -> tuple[Hit, ...]:
    """The best passages that do not show the same text twice, whether by overlap or as a copy elsewhere."""
    hits: list[Hit] = []
    shown: list[str] = []
    used: Counter[int] = Counter()
    queue = list(scored)
    while queue and len(hits) < limit:
        best = max(range(len(queue)), key=lambda k: (queue[k][0] * _SAME_DOC ** used[queue[k][1]], queue[k][1], -k))
        score, doc, n = queue.pop(best)
        p = passages[n]
        core = " ".join(docs[doc].text[p.start : p.end].split())
        if any(core in text for text in shown):
            continue
        text = _widen(docs[doc].text, p.start, p.end, max_chars)
        shown.append(" ".join(text.split()))
        hits.append(Hit(docs[doc].id, _with_neighbours(docs, doc, text, max_chars), score))
        used[doc] += 1
    return tuple(hits)


_NEIGHBOUR_MIN = 60
"""Characters below which a neighbour is not worth its label."""


def _with_neighbours(docs: Sequence[Doc], doc: int, text: str, max_chars: int) -> str:
    """`text` and, where room is left, what came right after and before it: an answer follows its question."""
    if not text.endswith("…") and doc + 1 < len(docs):
        text = _append(text, docs[doc + 1], max_chars, "then")
    if not text.endswith("…") and doc + 2 < len(docs):
        text = _append(text, docs[doc + 2], max_chars, "then")
    if not text.startswith("…") and doc > 0:
        before = docs[doc - 1].text.strip()
        label = f"[before, {docs[doc - 1].id}]\n"
        room = max_chars - len(text) - len(label) - 3
        if before and room >= min(_NEIGHBOUR_MIN, len(before)):
            text = f"{label}{before if len(before) <= room else '…' + before[len(before) - room :]}\n\n{text}"
    return text


def _append(text: str, doc: Doc, max_chars: int, how: str) -> str:
    after = doc.text.strip()
    label = f"\n\n[{how}, {doc.id}]\n"
    room = max_chars - len(text) - len(label) - 1
    if not after or room < min(_NEIGHBOUR_MIN, len(after)):
        return text
    return f"{text}{label}{after if len(after) <= room else after[:room] + '…'}"
