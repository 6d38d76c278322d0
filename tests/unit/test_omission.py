"""Omissions: marker, eligibility, caps, storage limits, reading back (M23–M30; cases 77, 83)."""

from __future__ import annotations

import pytest

from marextui.context.messages import ImagePart, Message, TextPart, ToolCall
from marextui.context.omission import (
    ID_PATTERN,
    Eligible,
    cap_output,
    eligible,
    expired,
    fits,
    format_id,
    marker,
    output_cap_chars,
    parse_marker,
    preview,
    read_slice,
    retention_days,
    truncate_for_store,
)

GOLDEN = '[omitted omitted-003: tool output, 12 480 chars — retrieve with ReadOmittedContent content_id="omitted-003"]'


@pytest.mark.parametrize(
    ("chars", "written"), [(601, "601"), (12_480, "12 480"), (1_234_567, "1 234 567"), (1000, "1 000")]
)
def test_marker_is_exact(chars: int, written: str) -> None:
    """M24: golden text, blanks U+0020 between thousands, dash U+2014."""
    expected = GOLDEN.replace("12 480", written)
    assert marker("omitted-003", chars) == expected
    assert parse_marker(expected) == "omitted-003"


def test_marker_characters() -> None:
    """M24: no other blank or dash may slip in."""
    text = marker("omitted-003", 1_234_567)
    assert {c for c in text if not c.isascii()} == {"\u2014"}


@pytest.mark.parametrize(
    "text",
    [
        "",
        "plain",
        GOLDEN[:-1],
        GOLDEN + " and more",
        GOLDEN.replace("—", "-"),
        GOLDEN.replace('"omitted-003"', '"omitted-004"'),
    ],
)
def test_what_is_no_marker(text: str) -> None:
    """A marker names one id, twice the same, and stands on the last line."""
    assert parse_marker(text) is None


def test_ids_grow_past_999_and_hold_no_path() -> None:
    """M25, M33."""
    assert [format_id(n) for n in (1, 999, 1000, 1001)] == [
        "omitted-001",
        "omitted-999",
        "omitted-1000",
        "omitted-1001",
    ]
    assert not any(ID_PATTERN.fullmatch(bad) for bad in ("../../x", "omitted-1", "omitted-001/../x", "omitted-١٢٣", ""))
    with pytest.raises(ValueError, match="start at 1"):
        format_id(0)


def _tool(turn: int, chars: int, **changes: object) -> Message:
    fields: dict[str, object] = {"content": "x" * chars, "tool_call_id": f"c{turn}-{chars}", **changes}
    return Message(f"t{turn}-{chars}", "tool", origin="tool", turn=turn, **fields)  # type: ignore[arg-type]


def _ids(found: tuple[Eligible, ...]) -> list[tuple[str, int]]:
    return [(e.message_id, e.part) for e in found]


@pytest.mark.parametrize(("turn", "expected"), [(1, []), (2, []), (3, [("t1-601", -1)]), (4, [("t1-601", -1)])])
def test_raw_in_its_turn_and_the_next_then_a_marker(turn: int, expected: list[tuple[str, int]]) -> None:
    """M23/B7: 600 is kept, 601 is replaced from turn t+2 on with omit_after_turns 1."""
    messages = [_tool(1, 600), _tool(1, 601)]
    assert _ids(eligible(messages, current_turn=turn, omit_after_turns=1, omitted={})) == expected


def test_only_what_has_grown_old_is_touched() -> None:
    """I7: what was replaced stays as it is; younger turns wait."""
    messages = [_tool(1, 700), _tool(2, 700), _tool(3, 700)]
    done = {("t1-700", -1): object()}
    assert _ids(eligible(messages, current_turn=4, omit_after_turns=1, omitted=done)) == [("t2-700", -1)]


def test_parts_errors_names_and_exemptions() -> None:
    """M23: part by part, error results too; M26: the read-back's own result is exempt by message id or tool name."""
    call = Message("a", "assistant", tool_calls=(ToolCall("c", "Grep", "{}"),), origin="model", turn=1)
    parts = (TextPart("s" * 10), ImagePart("data:image/png;base64,AA"), TextPart("l" * 900))
    result = Message("r", "tool", parts, tool_call_id="c", is_error=True, origin="tool", turn=1)
    found = eligible([call, result], current_turn=9, omit_after_turns=1, omitted={})
    assert found == (Eligible("r", 2, "l" * 900, "Grep"),)
    for exempt in ({"r"}, {"Grep"}):
        assert eligible([call, result], current_turn=9, omit_after_turns=1, omitted={}, exempt=exempt) == ()


def test_user_and_assistant_text_is_never_omitted() -> None:
    """M23 speaks of tool payloads only."""
    said = [Message("u", "user", "x" * 9000, turn=1), Message("a", "assistant", "y" * 9000, origin="model", turn=1)]
    assert eligible(said, current_turn=9, omit_after_turns=0, omitted={}) == ()


def test_a_capped_output_names_the_id_it_was_stored_under() -> None:
    """M30 then M23: it is replaced like any other, and its last line says where the original is."""
    capped = cap_output("y" * 9000, window=8192, omission_id="omitted-007")
    (found,) = eligible([_tool(1, 1, content=capped)], current_turn=3, omit_after_turns=1, omitted={})
    assert parse_marker(found.text) == "omitted-007"


@pytest.mark.parametrize(
    ("window", "chars"),
    [(32_768, 5242), (8192, 1310), (200_000, 32_000), (None, 30_000), (1000, 600), (3750, 600), (3757, 601)],
)
def test_cap_at_execution(window: int | None, chars: int) -> None:
    """M30, B10: 4 % of the window at 4 characters a token, floor 600, absolute when unknown."""
    assert output_cap_chars(window) == chars
    assert fits("x" * chars, window)
    assert not fits("x" * (chars + 1), window)


def test_capped_output_keeps_both_ends_and_says_where_the_rest_is() -> None:
    """M30: the model receives at most the cap plus a gap line and the marker, which states the original length."""
    text = "\n".join(f"line {n}" for n in range(12_000))
    capped = cap_output(text, window=32_768, omission_id="omitted-012")
    lines = capped.split("\n")
    assert lines[0] == "line 0"
    assert lines[-1] == marker("omitted-012", len(text))
    assert lines[-2] == "line 11999"
    gap = next(line for line in lines if line.startswith("[…"))
    assert len(capped) <= 5242 + len(gap) + len(lines[-1]) + 3
    assert cap_output("short", window=32_768, omission_id="omitted-012") == "short"


def test_cap_of_one_endless_line() -> None:
    """No line break to cut at: both ends still stand, and the total holds."""
    capped = cap_output("a" * 50_000 + "END", window=8192, omission_id="omitted-001")
    assert "END\n[omitted" in capped
    assert len(capped) < 1310 + 200


def test_store_truncates_to_the_limit_and_knows_the_true_length() -> None:
    """M27: 250 000 → 200 000 kept, true length 250 000; head and tail stand."""
    text = "h" * 125_000 + "t" * 125_000
    kept, size = truncate_for_store(text)
    assert (len(kept), size) == (200_000, 250_000)
    assert kept.startswith("h" * 125_000)
    assert kept.endswith("t" * 50_000)
    assert "characters left out here" in kept
    assert truncate_for_store("x" * 200_000) == ("x" * 200_000, 200_000)


@pytest.mark.parametrize("limit", [1, 10, 50, 100, 400])
def test_store_limit_holds_however_small(limit: int) -> None:
    """M27: at most the limit, always."""
    kept, size = truncate_for_store("ab" * 1000, limit)
    assert len(kept) <= limit
    assert size == 2000


def test_preview_is_one_line() -> None:
    """M28: at most 200 characters, no line break of any kind."""
    shown = preview("first\r\n\tsecond\u2028third\x85" + "z" * 900)
    assert shown.startswith("first second third z")
    assert len(shown) == 200
    assert shown.splitlines() == [shown]


@pytest.mark.parametrize(
    ("value", "days", "warned"),
    [
        (None, 30, False), ("7", 7, False), (" 14 ", 14, False), ("0", 0, False), ("", 30, True), ("  ", 30, True),
        ("abc", 30, True), ("-1", 30, True), ("7.5", 30, True), ("1e3", 30, True),
    ],
)  # fmt: skip
def test_retention_setting(value: str | None, days: int, warned: bool) -> None:
    """M29: 30 days unless a whole number says otherwise; 0 keeps for ever."""
    found, warning = retention_days(value)
    assert (found, bool(warning)) == (days, warned)


def test_expiry() -> None:
    """M29: 29 d 23 h kept, 30 d 1 s gone; 0 days never."""
    day = 86_400.0
    assert not expired(0, 29 * day + 23 * 3600, 30)
    assert not expired(0, 30 * day, 30)
    assert expired(0, 30 * day + 1, 30)
    assert not expired(0, 10_000 * day, 0)


def _log(lines: int) -> str:
    return "\n".join(f"{n:06d} INFO step {n} done" for n in range(lines))


def test_whole_text_comes_back_equal() -> None:
    """M26: 12 480 characters stored, 12 480 read."""
    text = "q" * 12_480
    assert read_slice(text, offset=None, length=None, query=None, limit_chars=20_000).text == text


def test_pages_join_to_the_whole() -> None:
    """M26: paging by the offset each page names loses and repeats nothing, and every page keeps its limit."""
    text, offset, pages = _log(3000), 0, []
    while True:
        page = read_slice(text, offset=offset, length=None, query=None, limit_chars=5000).text
        assert len(page) <= 5000
        body, _, note = page.rpartition("\n[characters ")
        pages.append(body)
        if "this is the end" in note:
            break
        offset = int(note.split("offset=")[1].rstrip("]"))
    assert "".join(pages) == text


def test_needle_in_the_middle_of_five_megabytes() -> None:
    """Case 83: the query gives the line, its number, its neighbours and the offset to go on from."""
    lines = _log(200_000).split("\n")
    lines[123_456] = "000000 ERROR Disk Quota exceeded on /var/data"
    found = read_slice("\n".join(lines), offset=None, length=None, query="disk quota", limit_chars=1500).text
    assert "1 match " in found
    assert "123457> 000000 ERROR Disk Quota exceeded on /var/data" in found
    assert f"123456: {lines[123_455]}" in found
    assert len(found) <= 1500


def test_needle_in_one_endless_line() -> None:
    """Case 83: a minified file has one line; what surrounds the match is shown, not the line."""
    text = "x," * 100_000 + "needle=42" + ",y" * 100_000
    found = read_slice(text, offset=None, length=None, query="NEEDLE=42", limit_chars=2000).text
    assert "needle=42" in found
    assert len(found) <= 2000


def test_query_is_no_regex_and_falls_back_to_words() -> None:
    """Literal first; else the lines that hold all the words, else most of them."""
    text = "alpha (beta) gamma\nport of the server is 8443\nserver\n"
    assert "alpha (beta) gamma" in read_slice(text, offset=None, length=None, query="(beta)", limit_chars=900).text
    words = read_slice(text, offset=None, length=None, query="server port", limit_chars=900).text
    assert "2> port of the server is 8443" in words
    assert "no line matches" in read_slice(text, offset=None, length=None, query="zebra", limit_chars=900).text


def test_more_matches_than_fit_can_be_paged() -> None:
    """Bounded, and the offset it names goes on without repeating."""
    text = "\n".join(f"hit {n}" if n % 5 == 0 else "-" for n in range(5000))
    first = read_slice(text, offset=None, length=None, query="hit", limit_chars=1200).text
    assert len(first) <= 1200
    offset = int(first.rsplit("offset=", 1)[1].split(",")[0])
    second = read_slice(text, offset=offset, length=None, query="hit", limit_chars=1200).text
    shown = [line for line in first.split("\n") if "> hit" in line]
    assert shown
    assert not set(shown) & {line for line in second.split("\n") if "> hit" in line}


@pytest.mark.parametrize(
    ("offset", "length", "says"),
    [(99_999, None, "past the end"), (0, 0, "at least 1"), (0, -5, "at least 1"), (-10, 5, "characters 0 to 5")],
)
def test_odd_numbers_get_a_sentence(offset: int, length: int | None, says: str) -> None:
    """M26: wrong arguments are explained, never an exception."""
    assert says in read_slice("some text", offset=offset, length=length, query=None, limit_chars=600).text


def test_empty_output_says_so() -> None:
    """An empty answer would read as a failure of the tool."""
    assert "empty" in read_slice("", offset=None, length=None, query=None, limit_chars=600).text
