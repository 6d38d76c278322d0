"""When a compaction runs by itself, and the sentence that says why not (M15–M20, I4, cases 1, 10, 13, 14, 99)."""

from __future__ import annotations

from dataclasses import dataclass, replace
from fractions import Fraction
from typing import Literal

MIN_MESSAGES = 6
"""Fewest history messages (system part excluded, summary pair included) for an automatic compaction (M19, B19)."""
MAX_FAILURES = 3
"""Consecutive failures after which only a person starts the next one (case 13)."""
MAX_PER_TURN = 3
"""Successful automatic compactions in one turn; more means that what was freed is read again at once (case 9)."""
REFUSAL_GROWTH = Fraction(1, 10)
"""Growth of H after which a compaction refused for lack of reduction is tried again (L26)."""
CRITICAL_SHARE = Fraction(9, 10)
"""Share of the window from which a refusal is no longer held (L27)."""

Outcome = Literal["done", "failed", "refused"]
"""done: committed; failed: error, empty summary, cancelled (M15, M16); refused: no usable cut or no gain (M10)."""


@dataclass(frozen=True, slots=True)
class Attempts:
    """What is remembered of automatic compactions of one conversation, in memory only. The default: none yet.

    `messages` is the length of the log at the last attempt and `used` H then (tokens); `failures` counts consecutive
    failures, `in_turn` successes during `turn`.
    """

    outcome: Outcome | None = None
    messages: int = 0
    used: int = 0
    turn: int = 0
    failures: int = 0
    in_turn: int = 0


def after_attempt(attempts: Attempts, outcome: Outcome, *, messages: int, used: int, turn: int) -> Attempts:
    """The memory after one more attempt. A manual success is recorded too: it resets the failures (case 13)."""
    failures = {"done": 0, "failed": attempts.failures + 1, "refused": attempts.failures}[outcome]
    before = attempts.in_turn if attempts.turn == turn else 0
    return replace(
        attempts,
        outcome=outcome,
        messages=messages,
        used=used,
        turn=turn,
        failures=failures,
        in_turn=before + (outcome == "done"),
    )


def after_forced(attempts: Attempts, *, messages: int, used: int) -> Attempts:
    """The memory after a compaction that made room without a model where the request could not be sent otherwise.

    What is there now is not new (I4); but it says nothing about the model, so its failures still count (case 13).
    """
    return replace(attempts, outcome=attempts.outcome or "done", messages=messages, used=used)


def without_refusal(attempts: Attempts) -> Attempts:
    """The memory under another model or window: what was refused there says nothing here (L27)."""
    return replace(attempts, outcome=None, messages=0, used=0) if attempts.outcome == "refused" else attempts


def after_undo(attempts: Attempts, *, messages: int, used: int, turn: int) -> Attempts:
    """The memory after a compaction was undone: what is there now is what a person wants to see, so it is not new.

    Nothing is compacted automatically until something new is said, however full the restored view is (I4); failures
    and the compactions of this turn still count.
    """
    in_turn = attempts.in_turn if attempts.turn == turn else 0
    return replace(attempts, outcome="done", messages=messages, used=used, turn=turn, in_turn=in_turn)


def given_up(attempts: Attempts) -> str:
    """Why no automatic try comes any more, whatever is said next; "" when one may (case 13)."""
    if attempts.failures < MAX_FAILURES:
        return ""
    return f"The last {attempts.failures} compactions failed; /compact tries again."


def already_tried(
    attempts: Attempts,
    *,
    messages: int,
    used: int,
    turn: int,
    window: int | None = None,
    system: int = 0,
    over_budget: bool = False,
) -> str:
    """Why another automatic try now would change nothing, "" when one is due (I4).

    - never twice on the same content: no message was logged since the last attempt (case 1), also after an undo;
    - after a failure, once per turn (M17), and none after `MAX_FAILURES` in a row until one succeeds (case 13);
    - after a refusal, not before H grew by 10 % (L26) — unless H fell since, or H and the `system` part are at 90 % of
      the window (L27);
    - not more than `MAX_PER_TURN` times in a turn (case 9), unless the request would be refused otherwise
      (`over_budget`): then the next rung is a dead turn.
    """
    if stopped := given_up(attempts):
        return stopped
    if attempts.outcome is None:
        return ""
    if messages <= attempts.messages:
        return "Nothing new was said since the last compaction attempt."
    if attempts.outcome == "failed" and turn == attempts.turn:
        return "The compaction of this turn failed; the next turn tries again."
    if attempts.outcome == "done" and turn == attempts.turn and attempts.in_turn >= MAX_PER_TURN and not over_budget:
        return f"This turn was compacted {attempts.in_turn} times already."
    critical = over_budget or (window is not None and used + system >= CRITICAL_SHARE * window)
    if attempts.outcome == "refused" and not critical and attempts.used <= used < attempts.used * (1 + REFUSAL_GROWTH):
        return "The last attempt would not have freed enough; waiting for 10 % more."
    return ""


def why_no_compaction(
    *,
    auto: bool,
    messages: int,
    window: int | None,
    budget: int | None = None,
    tried: str = "",
) -> str:
    """The first condition that keeps automatic compaction from running, as a sentence; "" when none does.

    Order: switched on (M18), at least `MIN_MESSAGES` messages of the current history (M19), a known window (M20),
    a budget above 0 (M1), then `tried`, the answer of `already_tried` (I4). The threshold is not one of them.
    """
    if not auto:
        return "Automatic compaction is off (auto_compress = false); /compact does it now."
    if messages < MIN_MESSAGES:
        return f"Only {messages} of the {MIN_MESSAGES} messages needed before anything is compacted."
    if window is None:
        return "The window of this model is unknown, so nothing is compacted automatically; set `window` to say it."
    if budget is not None and budget <= 0:
        return (
            f"The prompt does not fit: system prompt, rules and tools leave nothing of the {window}-token window. "
            "Shorten the rules or choose a model with a larger window."
        )
    return tried
