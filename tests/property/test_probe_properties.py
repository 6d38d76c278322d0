"""Properties of probes and fetch reports over generated logs (P16, P17, P20)."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from marextui.context.ask import searchable
from marextui.context.messages import Message
from marextui.context.probes import check_probes, extract_probes
from marextui.context.refetch import fetch_reports
from marextui.context.search import Doc
from tests.property.histories import Log, any_messages, logs
from tests.property.test_summary_check_properties import spans


@given(spans() | any_messages(), st.integers(0, 12))
@settings(deadline=None)
def test_probes_of_a_span_are_all_in_the_span(span: tuple[Message, ...], limit: int) -> None:
    """P17: what is expected really stood there; nothing is lost while nothing was cut."""
    probes = extract_probes(span, limit=limit)
    assert len(probes) <= limit
    assert probes == extract_probes(span, limit=limit)
    assert {p.message_id for p in probes} <= {m.id for m in span}
    result = check_probes(probes, span, ())
    assert (result.in_view, result.lost) == (len(probes), ())


@given(spans(), st.integers(0, 20))
@settings(deadline=None)
def test_each_probe_is_in_view_or_recalled_or_lost(span: tuple[Message, ...], kept: int) -> None:
    probes = extract_probes(span)
    docs = [Doc(m.id, searchable(m)) for m in span[::2]]
    result = check_probes(probes, span[kept:], docs)
    assert result.in_view + result.by_recall + len(result.lost) == result.total == len(probes)
    assert len(result.recalled) == result.by_recall
    assert set(result.recalled).isdisjoint(result.lost)


@given(spans(), st.integers(0, 20))
@settings(deadline=None)
def test_a_longer_view_never_loses_a_probe(span: tuple[Message, ...], kept: int) -> None:
    probes = extract_probes(span)
    assert check_probes(probes, span[kept:], ()).in_view <= check_probes(probes, span, ()).in_view


@given(logs())
@settings(deadline=None)
def test_fetch_reports_of_any_log_add_up(log: Log) -> None:
    """P20: re-fetches and regret are fetches, and every compaction has its report."""
    reports = fetch_reports(log.entries)
    cycles = [r.cycle for r in reports]
    assert cycles == sorted(set(cycles))
    assert cycles[0] == 0
    for report in reports:
        assert len(report.refetched) + len(report.regretted) <= report.fetches
        assert 0.0 <= report.rate <= 1.0
    assert reports[0].refetched == ()
