"""What `/compact` would do, worked out without doing it: no request, no change, no context (case 48)."""

from __future__ import annotations

from dataclasses import dataclass

from marextui.context.budget import summary_cap
from marextui.context.cut import manual_cut
from marextui.context.fates import Count, FateRow, fates
from marextui.context.fold import Conversation


@dataclass(frozen=True, slots=True)
class CompactionPreview:
    """Figures in tokens of the whole view (system part excluded).

    `tokens_after` is an upper bound: what is kept plus a summary that fills its cap (`summary_cap` tokens). With a
    `reason` nothing can be cut: then `rows` are all kept, `cut` is "" and `tokens_after` equals `tokens_now`.
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

    @property
    def saved(self) -> int:
        """Tokens saved at least; 0 when the summary may be as long as what it replaces."""
        return max(0, self.tokens_now - self.tokens_after)


def preview(
    conversation: Conversation,
    count: Count,
    *,
    used: int,
    estimated: bool,
    threshold: float | None,
    window: int | None,
) -> CompactionPreview:
    """The compaction that a person could start now (M21). `used` is H, `threshold` None when the window is unknown."""
    kept = conversation.shown()
    counts = [count(m) for m in kept]
    cap = summary_cap(window)
    now = len(conversation.history())
    cut = manual_cut(kept, counts, summary_tokens=cap, target=threshold, used=used)
    cycle = conversation.cycle + 1
    if cut is None:
        reason = _why_nothing(len(kept), sum(counts))
        rows = fates(conversation, 0, count)
        return CompactionPreview(cycle, rows, "", used, used, cap, now, now, estimated, reason)
    return CompactionPreview(
        cycle=cycle,
        rows=fates(conversation, cut.index, count),
        cut=kept[cut.index].id,
        tokens_now=used,
        tokens_after=cut.projected,
        summary_cap=cap,
        messages_now=now,
        messages_after=len(kept) - cut.index + 2,
        estimated=estimated,
    )


def _why_nothing(messages: int, tokens: int) -> str:
    if messages < 2:
        return "there is nothing to compact yet"
    return f"no usable cut: what could be cut away before the newest turn is too little ({tokens} tokens in all)"
