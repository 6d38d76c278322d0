"""Ten compactions on end, and every planted fact still answers (P16, P17; Part 2, 1 and 2): the bench's own measure."""

from __future__ import annotations

from tests.bench.fidelity import measure


async def test_after_ten_compactions_nothing_that_was_planted_is_lost() -> None:
    """Paths, errors, corrected values, ids, commands and decisions: in view, or found by one Recall of the question."""
    result = await measure(turns=72, window=4096, seed=7, strategy="anchored")
    assert result.cycles >= 10
    assert len(result.kinds) == 6
    lost = {kind: counts for kind, counts in result.kinds.items() if counts[3] or counts[2] < counts[0]}
    assert not lost, "kind: (asked, in view, reachable, lost)"
