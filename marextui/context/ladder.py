"""The ladder: what leaves the view, in which order, until a request fits (Part 2, 5; cases 3, 31, 34; I2, I3, I6).

Each rung is a pure decision about pieces of messages: a piece stands in the view as a marker (or as head and tail with
a marker) and whole in the omission store. Nothing here asks a model. Figures are tokens unless a name says otherwise.

The rungs, from what is missed least to what is missed most: outputs that were read again later, bulky outputs of
earlier turns, bulky inputs of earlier calls, old reasoning, old images; then (a summary without a model is not decided
here) outputs and inputs inside the newest turn, its newest round last; at the very end long messages.
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from marextui.context.bulk import image_label, images
from marextui.context.calls import arguments, call_command, call_files
from marextui.context.fold import Conversation
from marextui.context.marked import INPUT_LABEL
from marextui.context.messages import ImagePart, Message, OtherPart, TextPart, ToolCall, canonical_json
from marextui.context.omission import OMIT_OVER, TOOL_OUTPUT, head_tail, marker, parse_marker
from marextui.context.repeats import is_unchanged
from marextui.context.tokens import IMAGE_TOKENS, TokenLedger

Rung = Literal["repeats", "outputs", "inputs", "images", "turn", "round", "texts"]

GOAL_SHARE = 0.8
"""Share of the threshold that a reduction must reach to be worth a rewritten prefix (I3, hysteresis; case 14)."""
SMALLEST = 300
"""Characters below which a marker, of some hundred itself, would free next to nothing."""
LEAST_KEPT = 400
"""Characters of head and tail that stay of a text that is shortened, unless not even that fits."""
LEAST_BUDGET = 200
"""Budget below which nothing is worth reducing: no request and answer fit."""

_PART_OF_FILE = frozenset(
    {"offset", "limit", "length", "start", "end", "start_line", "end_line", "line", "lines", "range", "view_range",
     "line_range", "head", "tail", "query", "pattern", "page"}
)  # fmt: skip
_ID = "omitted-0000"
_DEPTH = 8


@dataclass(frozen=True, slots=True)
class Piece:
    """Something of a message that can leave the view; `text` is what the store keeps, `saves` the tokens freed.

    `part` is the position in the content (-1: the whole string). With `call` ≥ 0 it is an argument of that call, at
    `path`. With `keep` > 0 so many characters of head and tail stay. `tool` is the tool it comes from, "" for none.
    """

    rung: Rung
    message_id: str
    text: str
    saves: int
    part: int = -1
    call: int = -1
    path: tuple[str | int, ...] = ()
    label: str = TOOL_OUTPUT
    keep: int = 0
    tool: str = ""


def enough(pieces: Sequence[Piece], excess: int) -> tuple[tuple[Piece, ...], int]:
    """(the first of `pieces` that free `excess` tokens together, or all of them; what they free)."""
    freed = 0
    for n, piece in enumerate(pieces):
        if freed >= excess:
            return tuple(pieces[:n]), freed
        freed += piece.saves
    return tuple(pieces), freed


class Ladder:
    """The pieces of `conversation` as it stands now, sized with `ledger`; oldest first within each rung.

    `turn` is the turn in progress. The newest request of the user and the newest tool round are never among the pieces
    of the first rungs (I2).
    """

    def __init__(self, conversation: Conversation, ledger: TokenLedger, turn: int) -> None:
        self._state = conversation
        self._ledger = ledger
        self._turn = turn
        self.messages = conversation.kept()
        asked = [i for i, m in enumerate(self.messages) if m.role == "user" and not m.synthetic]
        self._request = self.messages[asked[-1]] if asked else self._repeated()
        self._from_request = asked[-1] if asked else 0
        calling = (i for i in range(len(self.messages) - 1, self._from_request - 1, -1) if self.messages[i].tool_calls)
        self._round = next(calling, len(self.messages))
        self._tools = {c.id: c.name for m in self.messages for c in m.tool_calls}

    def _repeated(self) -> Message | None:
        pending = self._state.pending()
        return None if pending is None else self._state.message(pending.id)

    # -- rungs that cost nothing of the present -----------------------------------------------------------------------

    def repeats(self) -> tuple[Piece, ...]:
        """(a) Older outputs of what was read, searched or run again later, whole and with success (P22)."""
        found: list[Piece] = []
        later: set[tuple[str, str]] = set()
        for i in range(len(self.messages) - 1, -1, -1):
            message = self.messages[i]
            call = self._call_of(i)
            if message.role != "tool" or call is None or not isinstance(message.content, str):
                continue
            itself, file, partly = _asked(call)
            if i < self._round and {itself, ("file", file)} & later:
                found.extend(self._output("repeats", message, SMALLEST))
            elif not message.is_error and self._whole(message):
                later.add(itself)
                if file and not partly:
                    later.add(("file", file))
        return tuple(reversed(found))

    def outputs(self) -> tuple[Piece, ...]:
        """(b) Bulky outputs of earlier turns."""
        return tuple(
            p
            for m in self.messages[: self._round]
            if m.role == "tool" and m.turn < self._turn
            for p in self._output("outputs", m, OMIT_OVER)
        )

    def inputs(self) -> tuple[Piece, ...]:
        """(c) Bulky arguments of calls of earlier turns."""
        return tuple(
            p
            for m in self.messages[: self._round]
            if m.turn < self._turn
            for p in self._arguments("inputs", m, OMIT_OVER)
        )

    def old_reasoning(self) -> tuple[str, int]:
        """(d) (id of the message before which reasoning may go, tokens freed); "" when none is sent back.

        The reasoning of the newest turn stays: some servers check that of a tool loop in progress (case 25).
        """
        if not self._ledger.echo_reasoning or not self._from_request:
            return "", 0
        old = self._state.shown()[: self._from_request]
        freed = sum(self._ledger.text(m.reasoning) for m in old if m.reasoning)
        return (self.messages[self._from_request].id, freed) if freed else ("", 0)

    def old_images(self, keep: int = 0) -> tuple[Piece, ...]:
        """Images but for the newest `keep`; those of the newest request and the newest round always stay (case 103)."""
        places = [(m, i) for m in self.messages for i in images(m) if not self._gone(m.id, i)]
        surplus = places[: max(0, len(places) - keep)]
        protected = {m.id for m in self.messages[self._round :]}
        protected |= {self._request.id} if self._request is not None else set()
        return tuple(p for m, i in surplus if m.id not in protected for p in self._image("images", m, i))

    # -- rungs inside the newest turn ----------------------------------------------------------------------------------

    def in_turn(self) -> tuple[Piece, ...]:
        """(f) Outputs, inputs and other payloads anywhere before the newest round."""
        return tuple(
            p
            for m in self.messages[: self._round]
            if m is not self._request
            for p in (*self._output("turn", m, SMALLEST), *self._arguments("turn", m, SMALLEST), *self._payloads(m))
        )

    def newest_round(self, excess: int) -> tuple[Piece, ...]:
        """(f) The newest round at last: its outputs cut to head and tail, the largest first, then its inputs.

        What the model has asked for stays in sight: an output that vanished whole would only be asked for again.
        """
        pieces: list[Piece] = []
        outputs = [p for m in self.messages[self._round :] for p in self._output("round", m, LEAST_KEPT)]
        for piece in sorted(outputs, key=lambda p: -p.saves):
            left = excess - sum(p.saves for p in pieces)
            if left > 0 and not self._gone(piece.message_id, piece.part):
                pieces.extend(self._shortened(piece, left, len(piece.text), self._ledger.text(piece.text)))
        inputs = [p for m in self.messages[self._round :] for p in self._arguments("round", m, SMALLEST)]
        return (*pieces, *enough(inputs, excess - sum(p.saves for p in pieces))[0])

    def newest_outputs(self, excess: int) -> tuple[Piece, ...]:
        """Outputs and payloads of the newest round, whole: when not even the request cut to head and tail helped."""
        found = [p for m in self.messages[self._round :] for p in (*self._output("round", m, 0), *self._payloads(m))]
        return enough(sorted(found, key=lambda p: -p.saves), excess)[0]

    def texts(self, excess: int) -> tuple[Piece, ...]:
        """What the assistant wrote in the newest turn, oldest first, cut to head and tail."""
        return self._cut_texts((m for m in self.messages[self._from_request :] if m.role == "assistant"), excess)

    def request(self, excess: int) -> tuple[Piece, ...]:
        """The very last: the newest request itself cut to head and tail, then its images (I2)."""
        if self._request is None:
            return ()
        pieces = self._cut_texts((self._request,), excess)
        payloads, _ = enough(self.newest_payloads(), excess - sum(p.saves for p in pieces))
        return (*pieces, *payloads)

    def newest_payloads(self) -> tuple[Piece, ...]:
        """Images and attachments of the newest round and the newest request, the oldest first."""
        newest = [*([self._request] if self._request is not None else []), *self.messages[self._round :]]
        return tuple(replace(p, rung="texts") for m in newest for p in self._payloads(m))

    def _cut_texts(self, messages: Iterable[Message], excess: int) -> tuple[Piece, ...]:
        pieces: list[Piece] = []
        for message in messages:
            for part, text in _texts(message):
                left = excess - sum(p.saves for p in pieces)
                if left <= 0 or len(text) <= LEAST_KEPT or self._gone(message.id, part, shortened=False):
                    continue
                cut = self._state.shortened.get((message.id, part))
                whole = Piece("texts", message.id, text, 0, part, label="message")
                shown = cut.keep if cut else len(text)
                pieces.extend(self._shortened(whole, left, shown, self._shown_tokens(message.id, part, text)))
        return tuple(pieces)

    # -- sizes ---------------------------------------------------------------------------------------------------------

    def request_tokens(self) -> int:
        """Tokens of the newest request as shown."""
        shown = self._state.pending()
        if shown is None and self._request is not None:
            shown = self._state.shown()[self._from_request]
        return 0 if shown is None else self._ledger.message(shown)

    def newest_turn_tokens(self) -> int:
        """Tokens of the newest request and all after it, as shown."""
        repeated = self._state.pending()
        after = self._ledger.messages(self._state.shown()[self._from_request :])
        return after + (self._ledger.message(repeated) if repeated is not None else 0)

    # -- pieces --------------------------------------------------------------------------------------------------------

    def _gone(self, message_id: str, part: int, *, shortened: bool = True) -> bool:
        """Whether this part stands as a marker already (or, if `shortened`, as head and tail)."""
        key = (message_id, part)
        return key in self._state.omitted or (shortened and key in self._state.shortened)

    def _whole(self, message: Message) -> bool:
        """Whether the view shows this output from its first to its last character, and it is no pointer to another."""
        return not self._gone(message.id, -1) and parse_marker(message.text) is None and not is_unchanged(message.text)

    def _call_of(self, index: int) -> ToolCall | None:
        """The call that the tool message at `index` answers: the nearest before it with that id."""
        message = self.messages[index]
        if message.role != "tool":
            return None
        for i in range(index - 1, -1, -1):
            if self.messages[i].role != "tool":
                return next((c for c in self.messages[i].tool_calls if c.id == message.tool_call_id), None)
        return None

    def _shown_tokens(self, message_id: str, part: int, text: str) -> int:
        """Tokens of a text as the view shows it: whole, or cut to head and tail with a marker."""
        cut = self._state.shortened.get((message_id, part))
        if cut is None:
            return self._ledger.text(text)
        end = marker(cut.omission_id, cut.chars, cut.label)
        return self._ledger.text(head_tail(text, cut.keep)) + self._ledger.text(end)

    def _output(self, rung: Rung, message: Message, over: int) -> Iterator[Piece]:
        if message.role != "tool":
            return
        tool = message.name or self._tools.get(message.tool_call_id, "")
        for part, text in _texts(message):
            if len(text) <= over or self._gone(message.id, part, shortened=False):
                continue
            end = self._ledger.text(marker(_ID, len(text)))
            saves = self._shown_tokens(message.id, part, text) - end
            if saves > 0:
                yield Piece(rung, message.id, text, saves, part, tool=tool)

    def _arguments(self, rung: Rung, message: Message, over: int) -> Iterator[Piece]:
        for number, call in enumerate(message.tool_calls):
            gone = self._state.inputs.get((message.id, number), {})
            if () in gone:
                continue
            for path, text in long_inputs(call.arguments, over):
                saves = self._ledger.text(text) - self._ledger.text(marker(_ID, len(text), INPUT_LABEL))
                if path not in gone and saves > 0:
                    yield Piece(rung, message.id, text, saves, -1, number, path, INPUT_LABEL, tool=call.name)

    def _image(self, rung: Rung, message: Message, part: int) -> Iterator[Piece]:
        content = message.content[part]
        if isinstance(content, ImagePart):
            label = image_label(content.url)
            saves = IMAGE_TOKENS - self._ledger.text(marker(_ID, len(content.url), label))
            yield Piece(rung, message.id, content.url, max(1, saves), part, label=label)

    def _payloads(self, message: Message) -> Iterator[Piece]:
        """Images and parts of unknown kinds."""
        if isinstance(message.content, str):
            return
        for i, part in enumerate(message.content):
            if self._gone(message.id, i):
                continue
            if isinstance(part, ImagePart):
                yield from self._image("turn", message, i)
            elif isinstance(part, OtherPart):
                size = self._ledger.message(Message("", "user", (part,)))
                saves = size - self._ledger.text(marker(_ID, len(part.raw), "attachment"))
                if saves > 0:
                    yield Piece("turn", message.id, part.raw, saves, i, label="attachment")

    def _shortened(self, piece: Piece, excess: int, shown: int, size: int) -> Iterator[Piece]:
        """`piece`, of which `shown` characters now take `size` tokens, cut further so that `excess` tokens are freed.

        At least `LEAST_KEPT` characters stay; nothing when that frees nothing.
        """
        end = self._ledger.text(marker(_ID, len(piece.text), piece.label))
        room = size - excess - end
        keep = max(LEAST_KEPT, int(shown * max(0.0, room / size) * 0.95))
        while keep > LEAST_KEPT and self._ledger.text(head_tail(piece.text, keep)) > room:
            keep = max(LEAST_KEPT, keep * 4 // 5)
        saves = size - self._ledger.text(head_tail(piece.text, keep)) - end
        if keep < shown and saves > 0:
            yield replace(piece, keep=keep, saves=saves)


def _texts(message: Message) -> Iterator[tuple[int, str]]:
    if isinstance(message.content, str):
        yield -1, message.content
        return
    for i, part in enumerate(message.content):
        if isinstance(part, TextPart):
            yield i, part.text


def _asked(call: ToolCall) -> tuple[tuple[str, str], str, bool]:
    """(what was asked, word for word; the one file a call reads, else ""; whether it reads only a part of it)."""
    args = arguments(call)
    itself = ("call", canonical_json([call.name, dict(sorted(args.items())) if args else call.arguments]))
    files = set() if call_command(call) else set(call_files(call))
    if len(files) != 1 or next(iter(files))[1] != "read":
        return itself, "", False
    partly = any(k.lower() in _PART_OF_FILE and v not in (None, "", [], 0) for k, v in args.items())
    return itself, next(iter(files))[0].removeprefix("./"), partly


def long_inputs(arguments_text: str, over: int) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """(path, text) of each text in JSON arguments longer than `over` characters; ((), all) when they are no object."""
    if len(arguments_text) <= over:
        return
    try:
        value = json.loads(arguments_text)
    except (ValueError, RecursionError):
        value = None
    if not isinstance(value, dict):
        yield (), arguments_text
        return
    yield from _walk(value, (), over)


def _walk(value: Any, path: tuple[str | int, ...], over: int) -> Iterator[tuple[tuple[str | int, ...], str]]:
    if isinstance(value, str):
        if len(value) > over and parse_marker(value) is None:
            yield path, value
    elif len(path) < _DEPTH and isinstance(value, dict):
        for key, item in value.items():
            yield from _walk(item, (*path, key), over)
    elif len(path) < _DEPTH and isinstance(value, list):
        for i, item in enumerate(value):
            yield from _walk(item, (*path, i), over)
