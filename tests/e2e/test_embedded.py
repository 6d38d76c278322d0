"""The 1.5B model itself, through the hub: a conversation, a real compaction, a read-back (issue 2, section 5).

Minutes, not seconds: skipped unless the extra `local` is installed. What it says is asserted on structure only; its
words are logged (`-o log_cli=true --log-cli-level=INFO`) for a person to judge.
"""

from __future__ import annotations

import logging
import time
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from marextui import paths
from marextui.context.validate import violations
from marextui.engine.events import (
    CompactionFailed,
    CompactionFinished,
    GaugeChanged,
    ModelReady,
    Notice,
    OmissionRead,
    ToolStarted,
    TurnFinished,
)
from marextui.models.hub import EMBEDDED, engine_installed
from marextui.models.weights import installed
from marextui.settings import Settings
from tests.stubs.live_engine import LiveEngine, live_engine

pytestmark = [
    pytest.mark.embedded,
    pytest.mark.timeout(1200),
    pytest.mark.skipif(not (engine_installed() and installed(EMBEDDED)), reason="the extra 'local' is not installed"),
]

log = logging.getLogger("embedded")

WINDOW = 6144
"""Small, so that a compaction is a few turns away."""

TRIES = 3
"""How often the model may try to write its notes until some can be used."""

SERVICE = "# settings of the billing service\nPORT = 8417\nTIMEOUT_SECONDS = 45\n" + "".join(
    f"FEATURE_{n:02d} = {'True' if n % 3 else 'False'}  # switch number {n}\n" for n in range(30)
)
TALK = (
    "We move the billing service to the new cluster this week. Never change the port, the firewall only knows that "
    "one. Also keep the public interface of billing/api.py as it is, three other teams call it.",
    "The first thing to do is a function retry_payment in billing/payments.py: it tries three times and waits two "
    "seconds between the tries. The second thing is a test for it in tests/test_payments.py.",
    "I decided against a message queue: it would be one more thing to run. We log failed payments to the file "
    "failed_payments.jsonl instead and look at it in the morning.",
    "The new cluster has two machines, north and south. The database stays on north. If south is down, payments must "
    "still work; if north is down, we show a page that says so and keep the cart.",
)


def message(n: int, text: str) -> str:
    """`text` with some lines of a log to fill the window: reading is faster here than writing."""
    lines = "".join(f"night {n}, 02:{i:02d}: payment {5000 + 20 * n + i} declined, code {51 + i}\n" for i in range(14))
    return f"{text} These are the failed payments of a night:\n{lines}Just answer OK."


@pytest.fixture
async def live(tmp_path: Path) -> AsyncIterator[LiveEngine]:
    project = tmp_path / "project"
    (project / "billing").mkdir(parents=True)
    (project / "billing" / "settings.py").write_text(SERVICE)
    settings = Settings(model="embedded", local_window=WINDOW, temperature=0.0)
    try:
        async with live_engine(settings, project) as engine:
            yield engine
    finally:
        for joined in (paths.cache_dir() / "models").glob("*.gguf"):
            joined.unlink()  # a gigabyte that pytest would keep for three runs


def tell(live: LiveEngine, done: TurnFinished) -> None:
    u = done.usage
    log.info(
        "turn %d %s: inp %s (cache %s) out %s, %s steps, %.1f s, %.1f tokens/s · %s",
        done.turn,
        done.end,
        u.inp,
        u.cache_read,
        u.out,
        u.steps,
        u.seconds,
        u.tokens_per_second or 0,
        " ".join(live.last().text.split())[:200],
    )


async def test_a_conversation_is_compacted_by_the_model_itself_and_an_omission_read_back(live: LiveEngine) -> None:
    begun = time.monotonic()
    done = await live.ask("Read the file billing/settings.py with the Read tool. Which port is set there?")
    tell(live, done)
    assert done.end == "done", live.of(Notice)
    ready = live.of(ModelReady)[0]
    assert (ready.local, ready.supports_tools, ready.window) == (True, True, WINDOW)
    assert "Read" in [t.name for t in live.of(ToolStarted)], "it calls a tool when it is told to"
    stored = await live.engine.omissions()
    assert [(o.id, o.tool) for o in stored] == [("omitted-001", "Read")]
    knows_port = "8417" in live.last().text

    for n, text in enumerate((*TALK, *TALK), 1):
        done = await live.ask(message(n, text))
        tell(live, done)
        assert done.end == "done", live.of(Notice)
        live.check_log()
        if live.of(CompactionFinished) or live.of(CompactionFailed):
            break
    # so small a model sometimes writes nothing that can be kept: that is said, harms nothing, and a person asks again
    for _ in range(TRIES - 1):
        if live.of(CompactionFinished):
            break
        log.info("rejected: %s", live.of(CompactionFailed)[-1].reason)
        await live.compact()
        live.check_log()
    assert live.of(CompactionFinished), (live.of(CompactionFailed), live.of(GaugeChanged)[-1].gauge)
    entry = live.of(CompactionFinished)[0].entry
    log.info(
        "compaction: %d → %d tokens, %d → %d messages, %.1f s",
        entry.tokens_before,
        entry.tokens_after,
        entry.messages_before,
        entry.messages_after,
        entry.seconds,
    )
    for section in entry.summary.sections:
        for item in section.items:
            log.info("  %s: %s", section.title, item.text)
    by = "manual" if live.of(CompactionFailed) else "threshold"
    assert (entry.summarizer, entry.trigger) == ("model", by)
    assert entry.tokens_after < entry.tokens_before
    filled = [s.title for s in entry.summary.sections if s.items]
    assert filled, "something of what the model wrote"
    told = entry.beside + "".join(item.text for section in entry.summary.sections for item in section.items)
    for must in ("Never change the port", "billing/api.py", "retry_payment", "failed_payments.jsonl"):
        assert must in told, "whatever the model wrote, or left out"
    assert not violations(live.history(), with_system=False)
    gauge = live.of(GaugeChanged)[-1].gauge
    assert gauge.summary > 0
    assert gauge.threshold is not None
    assert gauge.used < gauge.threshold

    mark = len(live.events)
    done = await live.ask(
        "Call ReadOmittedContent with content_id omitted-001 and tell me the value of TIMEOUT_SECONDS in it."
    )
    tell(live, done)
    assert done.end in ("done", "error")  # out of tool rounds is an error of the model, not of the engine
    for call in live.of(ToolStarted, mark):
        log.info("  called %s %s", call.name, call.arguments)
    for result in [m for m in live.history()[-6:] if m.role == "tool"]:
        log.info("  told %r", result.text[:300])
    by_itself = [e.id for e in live.of(OmissionRead, mark)]
    live.check_log()
    whole = await live.engine.read_omission("omitted-001")
    assert whole is not None
    assert "TIMEOUT_SECONDS = 45" in whole
    assert "FEATURE_29" in whole, "complete, whatever of it was ever sent"
    log.info(
        "port known: %s, read back by itself: %s, timeout told: %s, %.0f s in all",
        knows_port,
        by_itself,
        "45" in live.last().text,
        time.monotonic() - begun,
    )
