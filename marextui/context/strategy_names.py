"""The names of the summary strategies, apart from what they do: the settings are read before anything is summarised."""

from __future__ import annotations

from typing import Literal, get_args

StrategyName = Literal["anchored", "regenerative"]
STRATEGY_NAMES: tuple[StrategyName, ...] = get_args(StrategyName)
