"""The bench of the cache, on the scripted model: its token counts hold on any machine (issue 4, section 8).

One byte of a prompt is one token there. Times are for people, and are not looked at.
"""

from __future__ import annotations

from pathlib import Path

import pytest

from marextui.context.continuation import DEMAND_MARK
from marextui.settings import Settings
from tests.bench.cache import measure, message, table
from tests.stubs.tiny_model import tiny_gguf

pytestmark = [pytest.mark.server, pytest.mark.timeout(240)]

SUMMARY = """\
## Session Intent
- Look at the failed payments of each night; "never change port 8080", said the user

## Files Modified
none

## Decisions Made
- The port stays 8080

## Current State
- nothing was changed so far

## Next Steps
- look at the payments of the next night"""


@pytest.mark.parametrize("sliding", [0, 256], ids=["plain", "sliding window"])
async def test_each_key_saves_what_it_is_for(tmp_path: Path, sliding: int) -> None:
    """Also where most layers look back at 256 tokens only: there a rewritten prompt is computed from its beginning."""
    phrases = {DEMAND_MARK: SUMMARY, "Write the notes now": SUMMARY}
    model = tiny_gguf(tmp_path / "tiny.gguf", phrases=phrases, sliding=sliding)
    settings = Settings(model=str(model), local_window=32_768, compact_at=0.4)
    rows = {row.name: row for row in await measure(settings, tmp_path)}
    one, around = len(message(1)), 100

    assert rows["first turn"].cached == 0
    assert rows["next turn"].computed <= one + around, "without any key a turn computes what is new"
    assert rows["next turn, prewarmed"].computed <= one + around

    after, warmed = rows["turn after it"], rows["turn after it, prewarmed"]
    assert after.computed > 2 * one, "the summary and all that is kept behind it"
    assert warmed.computed <= one + around

    cold, resumed = rows["resumed, computed anew"], rows["resumed warm"]
    assert cold.cached < around
    assert resumed.computed <= one + around < cold.computed / 4

    separate, went_on = rows["summary, separate request"], rows["summary, continuation"]
    assert separate.cached < around
    assert went_on.computed < separate.computed / 2, "the answer and the demand, of a conversation that is longer"
    assert went_on.cached > 5 * one
    assert "x less" in table(list(rows.values()))
