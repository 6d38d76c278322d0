"""The triggers a person can choose, by name: all the settings need to know (P12–P15)."""

from __future__ import annotations

from typing import Literal, get_args

ChosenTrigger = Literal["threshold", "sliding", "task"]
CHOSEN_TRIGGERS: tuple[ChosenTrigger, ...] = get_args(ChosenTrigger)

CompactBase = Literal["budget", "window"]
"""What `compact_at` is a share of: the budget (M5), or the whole window (P12, B1)."""
COMPACT_BASES: tuple[CompactBase, ...] = get_args(CompactBase)

KEEP_TURNS = 6
"""User turns a sliding window keeps (P13)."""
SLIDE_BY = 3
"""Turns that leave a sliding window at once, so that it does not rewrite the prefix at each turn (case 110)."""
