"""Where a compaction may cut, and where it should (M7–M10, M21, B3, B13). Token figures exclude the system part.

`messages` are the raw messages after the cut in force (`Conversation.kept`), `counts` their tokens one by one.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

from marextui.context.messages import Message
from marextui.context.speech import only_update

KEPT_SHARE = 0.2
"""Share of the estimated tokens a forced compaction keeps when the window is unknown (M21)."""
SMALLEST_SUMMARY = 100
"""Tokens of a summary with next to nothing in it: cutting less than this away can only make a view longer."""
FORCED_SHARE = 0.85
"""Share of the room that a forced cut should fill at most, so that the next step has some."""
FORCED_SUMMARY_SHARE = 0.6
"""Share of what is left beside the smallest tail that a forced summary takes when room is scarce."""


@dataclass(frozen=True, slots=True)
class Cut:
    """Keep `messages[index:]`: `kept_tokens` (with a repeated request, B13), `projected` with the summary too."""

    index: int
    kept_tokens: int
    projected: int


def cut_candidates(messages: Sequence[Message], *, mid_turn: bool = False) -> list[int]:
    """Indices that may be the first kept message, ascending; never 0, which would cut nothing (M7, M8).

    A candidate is a user message that a person wrote: not synthetic, not a bare context update. With `mid_turn`
    (B13) also an assistant message that opens a tool group. No call stands on one side and its result on the other;
    a call without a result blocks every cut behind it until a later assistant message shows that the conversation
    went on without it (an interrupted exchange is still in progress, M8).
    """
    blocked_upto, asks = _exchange_ends(messages), set(turn_starts(messages))
    candidates: list[int] = []
    for i in range(1, len(messages)):
        message = messages[i]
        opens = mid_turn and message.role == "assistant" and bool(message.tool_calls)
        if (i in asks or opens) and blocked_upto[i - 1] < i:
            candidates.append(i)
    return candidates


def turn_starts(messages: Sequence[Message]) -> list[int]:
    """Where a person's turn begins: their own messages, ascending, the first message included."""
    return [i for i, m in enumerate(messages) if m.role == "user" and not m.synthetic and not only_update(m)]


def _exchange_ends(messages: Sequence[Message]) -> list[int]:
    """For each index, the last index an exchange begun at or before it still reaches."""
    reach: dict[int, int] = {}
    askers: dict[str, int] = {}  # call id -> the latest assistant that made such a call
    unanswered: set[str] = set()
    for i, message in enumerate(messages):
        if message.role == "tool" and message.tool_call_id in askers:
            reach[askers[message.tool_call_id]] = i
            unanswered.discard(message.tool_call_id)
        elif message.role == "assistant":
            unanswered = {c.id for c in message.tool_calls}
            askers.update(dict.fromkeys(unanswered, i))
    reach.update({askers[call_id]: len(messages) for call_id in unanswered})
    return list(accumulate((reach.get(i, i) for i in range(len(messages))), max))


def choose_cut(
    messages: Sequence[Message],
    counts: Sequence[int],
    *,
    summary_tokens: int,
    target: float,
    floor_reduction: float = 0.2,
    used: int,
    mid_turn: bool = False,
    ceiling: float | None = None,
    pending: int = 0,
) -> Cut | None:
    """The cut of an automatic compaction, or None when no cut helps enough (M10, B3).

    The projection of a cut is `summary_tokens` (the cap) plus what is kept. The earliest cut whose projection is at
    most half of `target` (the threshold) wins; else the one with the smallest projection still below `target`. Both
    must bring H down from `used` by at least `floor_reduction`, and to `ceiling` or less when there is one (I3: 0.8 of
    the threshold, so that the next message does not trigger again). User messages come first; with `mid_turn` cuts
    inside a turn are looked at only when no user message will do (B13). `pending` are the tokens of a request that the
    view already repeats ahead of `messages`: a cut that finds no request in them goes on repeating that one.
    """

    def best(cuts: Sequence[Cut]) -> Cut | None:
        fair = [c for c in cuts if c.projected < target and c.projected <= (1 - floor_reduction) * used]
        if ceiling is not None:
            fair = [c for c in fair if c.projected <= ceiling]
        return next((c for c in fair if c.projected <= target / 2), min(fair, key=lambda c: c.projected, default=None))

    found = best(_cuts(messages, counts, summary_tokens, mid_turn=False, pending=pending))
    if found is None and mid_turn:
        found = best(_cuts(messages, counts, summary_tokens, mid_turn=True, pending=pending))
    return found


def turns_cut(
    messages: Sequence[Message],
    counts: Sequence[int],
    *,
    turns: int,
    summary_tokens: int,
    target: float,
    used: int,
    ceiling: float,
    floor_reduction: float,
    pending: int = 0,
) -> Cut | None:
    """The cut that keeps the newest `turns` turns and no more, None when it does not help enough (P13, P14).

    Where an exchange still in progress forbids that, the next earlier one. The rules are those of `choose_cut`: below
    `target`, at `ceiling` or less, H down from `used` by `floor_reduction` at least.
    """
    starts = turn_starts(messages)
    if not 0 < turns < len(starts):
        return None
    cuts = _cuts(messages, counts, summary_tokens, mid_turn=False, pending=pending)
    chosen = next((c for c in reversed(cuts) if c.index <= starts[-turns]), None)
    if chosen is None or chosen.projected >= target or chosen.projected > min(ceiling, (1 - floor_reduction) * used):
        return None
    return chosen


def forced_cut(
    messages: Sequence[Message],
    counts: Sequence[int],
    *,
    cap: int,
    overhead: int,
    room: float,
    used: int,
    pending: int = 0,
) -> tuple[Cut, int] | None:
    """(the cut, the cap of its summary) when the request would not be sent otherwise (ladder rung e); None: none fits.

    `room` is what the history may take, `overhead` what a summary costs besides its text. A turn boundary that leaves
    some of the room free wins, then a cut inside the turn that does; failing both, the smallest tail with a summary as
    large as the room allows, as long as it is shorter than half of what it stands for.
    """
    cuts = _cuts(messages, counts, cap + overhead, mid_turn=True, pending=pending)
    free = [c for c in cuts if c.projected <= FORCED_SHARE * room and c.projected < used]
    for inside in (False, True):
        fair = [c for c in free if inside or messages[c.index].role == "user"]
        chosen = next((c for c in fair if c.projected <= room / 2), min(fair, key=lambda c: c.projected, default=None))
        if chosen is not None:
            return chosen, cap
    least = min(cuts, key=lambda c: c.kept_tokens, default=None)
    if least is None:
        return None
    taken_away = used - least.kept_tokens - overhead
    left = room - least.kept_tokens - overhead
    small = int(min(cap, max(SMALLEST_SUMMARY, left * FORCED_SUMMARY_SHARE), taken_away / 2))
    if small < SMALLEST_SUMMARY or small > left:
        return None
    return Cut(least.index, least.kept_tokens, least.kept_tokens + overhead + small), small


def manual_cut(
    messages: Sequence[Message],
    counts: Sequence[int],
    *,
    summary_tokens: int,
    target: float | None,
    used: int,
    mid_turn: bool = False,
    pending: int = 0,
) -> Cut | None:
    """The cut of a forced compaction (`/compact`), or None: nothing to compact (M21).

    With a `target` the rule of `choose_cut` goes first. With an unknown window (None) the last 20 % of the estimated
    tokens are kept, at least the newest turn. Failing that, the cut that keeps least, as long as it takes away more
    than the smallest summary costs.
    """
    if target is not None:
        chosen = choose_cut(
            messages,
            counts,
            summary_tokens=summary_tokens,
            target=target,
            used=used,
            mid_turn=mid_turn,
            pending=pending,
        )
        if chosen is not None:
            return chosen
    total = sum(counts)
    cuts = _cuts(messages, counts, summary_tokens, mid_turn=mid_turn, pending=pending)
    useful = [c for c in cuts if total - c.kept_tokens > SMALLEST_SUMMARY]
    if target is None:
        small = next((c for c in useful if c.kept_tokens <= KEPT_SHARE * total), None)
        if small is not None:
            return small
    return min(useful, key=lambda c: c.kept_tokens, default=None)


def _cuts(
    messages: Sequence[Message], counts: Sequence[int], summary_tokens: int, *, mid_turn: bool, pending: int
) -> list[Cut]:
    """Every possible cut with its figures, earliest first."""
    if len(messages) != len(counts):
        raise ValueError(f"{len(messages)} messages but {len(counts)} counts")
    before = [0, *accumulate(counts)]
    cuts: list[Cut] = []
    for index in cut_candidates(messages, mid_turn=mid_turn):
        kept = before[-1] - before[index] + _repeated(messages, counts, index, pending)
        cuts.append(Cut(index, kept, kept + summary_tokens))
    return cuts


def _repeated(messages: Sequence[Message], counts: Sequence[int], index: int, pending: int) -> int:
    """Tokens of the pending request that a cut before an assistant message repeats ahead of the tail (B13)."""
    if messages[index].role == "user":
        return 0
    asks = (counts[i] for i in range(index - 1, -1, -1) if messages[i].role == "user" and not messages[i].synthetic)
    return next(asks, pending)
