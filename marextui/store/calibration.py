"""`calibration.json` in the data folder: what was learned of how models count (case 91)."""

from __future__ import annotations

import asyncio
from pathlib import Path

from marextui.context.calibration import Calibration, from_json
from marextui.private_files import ensure_private, write_private

NAME = "calibration.json"


class CalibrationStore:
    """One small file for all projects, replaced as a whole. A damaged one counts as empty: it is learned again."""

    def __init__(self, data_dir: Path) -> None:
        self.path = data_dir / NAME

    async def load(self) -> Calibration:
        """What the file holds; nothing when there is none. Raises OSError when it cannot be read."""
        return await asyncio.to_thread(self._load)

    async def save(self, calibration: Calibration) -> None:
        """Write it, adding the models other processes have learned meanwhile. Raises OSError."""
        await asyncio.to_thread(self._save, calibration)

    def _load(self) -> Calibration:
        try:
            return from_json(self.path.read_bytes().decode("utf-8", "replace"))
        except FileNotFoundError:
            return Calibration()

    def _save(self, calibration: Calibration) -> None:
        merged = self._load()
        for model, factor in calibration.factors.items():
            merged = merged.learned(model, factor)
        ensure_private(self.path.parent)
        write_private(self.path, merged.to_json().encode())
