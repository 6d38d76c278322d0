"""The settings the engine works by, apart from everything that works."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from marextui.context.bulk import KEEP_IMAGES, MAX_REQUEST_MB
from marextui.context.sections import SECTIONS
from marextui.context.strategy_names import StrategyName
from marextui.context.trigger_names import CompactBase
from marextui.context.triggers import THRESHOLD, Trigger
from marextui.engine.warm import WarmMode


@dataclass(frozen=True, slots=True)
class Policy:
    """The settings the engine works by. Figures in tokens, turns and rounds; None: not configured.

    `reserve_override` replaces M1's reserve (replays); `base_prompt` replaces the product's own system prompt.
    `compact_continuation`, `prewarm` and `proj_snapshot` hold for local engines only, see
    `EngineState.economy_allowed` (L1, L30, L70, B25).
    """

    compact_at: float = 0.65
    auto_compress: bool = True
    omit_after_turns: int = 1
    max_output: int | None = None
    reserve_override: int | None = None
    max_tool_rounds: int = 25
    retries: int = 2
    temperature: float | None = None
    window_override: int | None = None
    strategy: StrategyName = "anchored"
    sections: tuple[str, ...] = SECTIONS
    beside_tokens: int | None = None
    trigger: Trigger = THRESHOLD
    compact_base: CompactBase = "budget"
    offline_summaries: bool = False
    on_refused: Literal["stop", "play_on"] = "stop"
    base_prompt: str = ""
    check_compactions: bool = True
    keep_images: int = KEEP_IMAGES
    max_request_mb: int = MAX_REQUEST_MB
    echo_reasoning: bool = False
    compact_continuation: bool = False
    prewarm: Literal["off", "on", "full"] = "off"
    proj_snapshot: bool = False
    warm_resume: WarmMode = "on"
    warm_resume_mb: int = 1000
    offer_economy: bool = False
    """Nobody has chosen yet whether a local engine is to be saved work: offer it (issue 4, section 5)."""
