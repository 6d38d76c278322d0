"""What `/compact` would do, worked out without doing it: no request, no change, no context (case 48)."""

from __future__ import annotations

from dataclasses import dataclass

from marextui.context.cut import Cut
from marextui.context.fates import Count, FateRow, fates
from marextui.context.fold import Conversation


@dataclass(frozen=True, slots=True)
class CompactionPreview:
    """Figures in tokens of the whole view (system part excluded).

    `tokens_after` is an upper bound: what is kept plus `summary_cap`, the most that the summary may take with what
    stands beside it. With a `reason` nothing can be cut: then `rows` are all kept, `cut` is "" and `tokens_after`
    equals `tokens_now`.
    """

    cycle: int
    rows: tuple[FateRow, ...]
    cut: str
    """Id of the first message that would be kept word for word."""
    tokens_now: int
    tokens_after: int
    summary_cap: int
    messages_now: int
    messages_after: int
    estimated: bool = True
    reason: str = ""
    triggers: tuple[str, ...] = ()
    """When a compaction begins by itself, a clause each; () when it never does."""

    @property
    def saved(self) -> int:
        """Tokens saved at least; 0 when the summary may be as long as what it replaces."""
        return max(0, self.tokens_now - self.tokens_after)


def preview(
    conversation: Conversation,
    count: Count,
    *,
    cut: Cut | None,
    cap: int,
    used: int,
    estimated: bool,
    reason: str,
    triggers: tuple[str, ...] = (),
) -> CompactionPreview:
    """The compaction that would cut at `cut`, None: nothing can be cut, and `reason` says why.

    `cap` is the most the summary may take, in tokens, its messages and what stands beside it included; `used` is H.
    """
    kept = conversation.shown()
    now = len(conversation.history())
    cycle = conversation.cycle + 1
    if cut is None:
        rows = fates(conversation, 0, count)
        return CompactionPreview(cycle, rows, "", used, used, cap, now, now, estimated, reason, triggers)
    return CompactionPreview(
        cycle=cycle,
        rows=fates(conversation, cut.index, count),
        cut=kept[cut.index].id,
        tokens_now=used,
        tokens_after=min(used, cut.kept_tokens + cap),
        summary_cap=cap,
        messages_now=now,
        messages_after=len(kept) - cut.index + 2,
        estimated=estimated,
        triggers=triggers,
    )
