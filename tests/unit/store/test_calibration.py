"""`calibration.json` (case 91)."""

from __future__ import annotations

from pathlib import Path

from marextui.context.calibration import Calibration
from marextui.store.calibration import NAME, CalibrationStore


async def test_nothing_saved_is_nothing_known(tmp_path: Path) -> None:
    assert await CalibrationStore(tmp_path / "none").load() == Calibration()


async def test_it_is_private_and_comes_back(tmp_path: Path) -> None:
    store = CalibrationStore(tmp_path / "deep" / "data")
    await store.save(Calibration({"m": 1.25}))
    assert (store.path.stat().st_mode & 0o777, store.path.name) == (0o600, NAME)
    assert (await store.load()).factor("m") == 1.25


async def test_two_processes_do_not_undo_each_other(tmp_path: Path) -> None:
    one, two = CalibrationStore(tmp_path), CalibrationStore(tmp_path)
    await one.save(Calibration({"a": 1.5}))
    await two.save(Calibration({"b": 1.2}))
    assert dict((await one.load()).factors) == {"a": 1.5, "b": 1.2}


async def test_a_damaged_file_counts_as_empty_and_is_replaced(tmp_path: Path) -> None:
    store = CalibrationStore(tmp_path)
    store.path.write_bytes(b"\xff\x00{")
    assert await store.load() == Calibration()
    await store.save(Calibration({"a": 1.5}))
    assert (await store.load()).factor("a") == 1.5
