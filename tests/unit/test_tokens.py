"""Token estimates (M39, I8, I9, cases 85–97). Counting is by words here; work is asserted by counting calls."""

from __future__ import annotations

import base64
import math
from dataclasses import replace

import pytest
from hypothesis import given
from hypothesis import strategies as st

from marextui.context.calibration import MAX_FACTOR
from marextui.context.entries import Entry, MessageAdded, OmissionRef, OutputsOmitted, UsageMeasured
from marextui.context.fold import fold
from marextui.context.messages import ImagePart, Message, OtherPart, TextPart, ToolCall, canonical_json
from marextui.context.summary_pair import summary_pair
from marextui.context.tokens import (
    EXACT_CHARS,
    IMAGE_TOKENS,
    SLICE_CHARS,
    Segments,
    TokenLedger,
    count_bounded,
    history_tokens,
    segments,
)
from tests.property.histories import any_messages


class Words:
    """A vocabulary in which each word is a token; remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[str] = []

    def __call__(self, text: str) -> int:
        self.asked.append(text)
        return len(text.split())


def ledger(factor: float = 1.0) -> TokenLedger:
    return TokenLedger(Words(), factor)


def test_a_message_is_four_plus_its_content() -> None:
    assert ledger().message(Message("m", "user", "one two three")) == 7
    assert ledger().message(Message("m", "user", "")) == 4
    assert ledger().text("one two") == 2
    assert ledger().text("") == 0


def test_names_and_arguments_of_calls_count() -> None:
    call = ToolCall("c1", "Read", '{"path": "a b"}')
    assert ledger().message(Message("m", "assistant", "hi", (call, call))) == 4 + 1 + 2 * (1 + 3)


def test_reasoning_counts_only_when_it_is_sent_back() -> None:
    thinking = Message("m", "assistant", "hi", reasoning="one two three")
    assert ledger().message(thinking) == 5
    assert TokenLedger(Words(), echo_reasoning=True).message(thinking) == 8


def test_an_image_is_flat_and_its_bytes_are_never_tokenised() -> None:
    words = Words()
    picture = ImagePart("data:image/png;base64," + "A" * 100_000)
    message = Message("m", "user", (TextPart("look here"), picture, picture))
    assert TokenLedger(words).message(message) == 4 + 2 + 2 * IMAGE_TOKENS
    assert words.asked == ["look here"]
    assert TokenLedger(words).flat(message) == 2 * IMAGE_TOKENS


def test_an_unknown_part_counts_but_its_binary_payload_is_flat() -> None:
    """Case 87: never silently 0."""
    plain = OtherPart(canonical_json({"type": "note", "text": "one two three"}))
    audio = OtherPart(canonical_json({"type": "input_audio", "input_audio": {"data": "QUJD" * 500}}))
    words = Words()
    assert TokenLedger(words).message(Message("m", "user", (plain,))) > 4 + 2
    assert TokenLedger(words).message(Message("m", "user", (audio,))) == 4 + 1 + IMAGE_TOKENS
    assert max(len(a) for a in words.asked) < 100


def test_each_distinct_value_is_counted_once() -> None:
    """Work, not time: a history asked for again costs nothing."""
    words = Words()
    book = TokenLedger(words)
    history = [Message(f"m{n}", "user", f"text {n}") for n in range(50)]
    for _ in range(3):
        book.messages(history)
    assert (book.counted, len(words.asked)) == (50, 50)
    book.messages([*history, Message("new", "user", "one more")])
    assert book.counted == 51
    book.messages([replace(m) for m in history])
    assert book.counted == 51
    specs = [{"type": "function", "function": {"name": "Read"}}]
    assert book.tools(specs) == book.tools([dict(s) for s in specs]) > 0
    assert book.counted == 52
    book.factor = 2.0
    book.messages(history)
    assert book.counted == 52


def test_the_factor_corrects_text_but_not_images() -> None:
    message = Message("m", "user", (TextPart("one two"), ImagePart("x")))
    assert ledger(factor=1.5).message(message) == math.ceil(6 * 1.5) + IMAGE_TOKENS
    assert ledger(factor=0.3).factor == 1.0
    assert ledger(factor=99).factor == MAX_FACTOR


def test_long_texts_are_counted_in_bounded_work() -> None:
    """A run of 50 million letters must not be one vocabulary call, nor 50 million letters of work."""
    asked: list[int] = []

    def letters(text: str) -> int:
        asked.append(len(text))
        return len(text)

    assert count_bounded("x" * EXACT_CHARS, letters) == EXACT_CHARS
    assert max(asked) <= SLICE_CHARS
    asked.clear()
    assert count_bounded("x" * 50_000_000, letters) == pytest.approx(50_000_000, rel=1e-6)
    assert sum(asked) <= EXACT_CHARS
    assert count_bounded("x" * (EXACT_CHARS + 1), letters) == pytest.approx(EXACT_CHARS + 1, abs=1)


def test_encoded_data_in_a_text_costs_a_token_a_character() -> None:
    """Issue section 3: a picture in a log, in one piece or wrapped; words cost what they cost."""
    data = base64.b64encode(bytes((i * 151 + i // 7) % 256 for i in range(3_000))).decode()
    wrapped = "\n".join(data[i : i + 76] for i in range(0, len(data), 76))
    assert count_bounded(f"see {data} here", lambda t: len(t.split())) == len(data) + 2
    assert count_bounded(f"see\n{wrapped}\nhere", lambda t: len(t.split())) >= len(data)
    for prose in ("x" * 5_000, "word " * 1_000, "a_long_identifier_" * 100, "0123456789abcdef" * 64, "src/" * 300):
        assert count_bounded(prose, len) == len(prose)
        assert count_bounded(prose, lambda t: 7) == 7


def test_the_factor_follows_what_providers_report() -> None:
    """Case 91: Chinese at 0.6 and at 1.0 token per character with one vocabulary that says 0.8."""
    book = ledger()
    for _ in range(12):
        book.learn(measured=100_000, estimated=int(80_000 * book.factor))
    assert book.factor == pytest.approx(1.25, abs=0.01)
    for _ in range(12):
        book.learn(measured=60_000, estimated=int(80_000 * book.factor))
    assert book.factor == 1.0  # never below: too early is safer than an overflow


def test_one_odd_report_does_not_take_over() -> None:
    book = ledger()
    book.learn(measured=5100, estimated=100)  # a server with a long hidden prompt
    book.learn(measured=0, estimated=9000)
    assert book.factor == 1.0
    book.learn(measured=900_000, estimated=1000)
    assert book.factor == MAX_FACTOR
    book.learn(measured=3000, estimated=3000)
    assert book.factor == MAX_FACTOR  # an estimate that was right teaches nothing
    book.learn(measured=1000, estimated=3000)
    assert book.factor < MAX_FACTOR


def test_segments_by_kind() -> None:
    history = (
        *summary_pair("one two", 1),
        Message("u", "user", "a b c"),
        Message("a", "assistant", "", (ToolCall("c", "R", "{}"),)),
        Message("r", "tool", "x y", tool_call_id="c"),
    )
    parts = segments(history, ledger())
    assert parts.outputs == 6
    assert parts.conversation == 7 + 6
    assert parts.summary + parts.conversation + parts.outputs == ledger().messages(history)


@given(any_messages(), st.integers(0, 500_000))
def test_segments_sum_to_the_measure_exactly(messages: tuple[Message, ...], used: int) -> None:
    """I8, case 86: the residual is shown as conversation."""
    parts = segments((*summary_pair("s", 1), *messages), ledger(), used)
    assert parts.summary + parts.conversation + parts.outputs == used
    assert min(parts.summary, parts.conversation, parts.outputs) >= 0


def test_segments_of_nothing() -> None:
    assert segments((), ledger()) == Segments(0, 0, 0)
    assert segments((), ledger(), 9) == Segments(0, 9, 0)


def turn(number: int, words: int = 10, reasoning: str = "") -> list[Entry]:
    return [
        MessageAdded(Message(f"u{number}", "user", "w " * words)),
        MessageAdded(Message(f"a{number}", "assistant", "w " * words, origin="model", reasoning=reasoning)),
    ]


def test_without_a_measure_everything_is_estimated() -> None:
    """M39."""
    assert history_tokens(fold(turn(1)), ledger(), 50) == (28, True)
    assert history_tokens(fold([]), ledger(), 50) == (0, False)


def test_a_measure_is_taken_less_the_system_part() -> None:
    state = fold([*turn(1), UsageMeasured("u1", 900, 40, "m")])
    assert history_tokens(state, ledger(), 300) == (640, False)


def test_what_was_logged_since_is_added_as_an_estimate() -> None:
    """Case 97: usage 11k, of which 5k are hidden, and a new result of 4k."""
    unseen = MessageAdded(Message("u2", "user", "w " * 3996))
    state = fold([*turn(1), UsageMeasured("u1", 11_000, 0, "m"), unseen])
    assert history_tokens(state, ledger(), 0) == (15_000, True)


def test_reasoning_that_is_not_sent_back_is_not_history() -> None:
    """The gauge must not fall at the next measure (case 46 of Part 4)."""
    state = fold([*turn(1, reasoning="w " * 30), UsageMeasured("u1", 900, 40, "m")])
    assert history_tokens(state, ledger(), 0) == (910, True)
    assert history_tokens(state, TokenLedger(Words(), echo_reasoning=True), 0) == (940, False)
    longer = fold([*turn(1, reasoning="w " * 99), UsageMeasured("u1", 900, 40, "m")])
    assert history_tokens(longer, ledger(), 0) == (900, True)  # never more than the reply itself cost


def test_a_count_far_below_the_text_itself_is_not_believed() -> None:
    """Cases 89, 93: silent truncation reports window/2 + 2; cached tokens left out report 5."""
    for reported in (16_386, 5):
        state = fold([*turn(1, words=24_996), UsageMeasured("u1", reported, 0, "m")])
        assert history_tokens(state, ledger(), 0) == (50_000, True)


def test_a_count_somewhat_below_the_estimate_is_believed() -> None:
    state = fold([*turn(1, words=9996), UsageMeasured("u1", 14_000, 0, "m")])
    assert history_tokens(state, ledger(), 0) == (14_000, False)


def test_images_cheaper_than_their_flat_cost_do_not_discredit_a_measure() -> None:
    pictures = MessageAdded(Message("p", "user", tuple(ImagePart("x") for _ in range(9))))
    state = fold([pictures, *turn(1, words=300)[1:], UsageMeasured("p", 1100, 300, "m")])
    assert history_tokens(state, ledger(), 0) == (1400, False)


def test_a_system_part_larger_than_the_measure_never_makes_it_negative() -> None:
    state = fold([*turn(1), UsageMeasured("u1", 100, 0, "m")])
    assert history_tokens(state, ledger(), 300) == (0, False)


def test_a_rewrite_voids_the_measure() -> None:
    rewrite = OutputsOmitted(3, (OmissionRef("none", -1, "omitted-001", 700),))
    state = fold([*turn(1), UsageMeasured("u1", 900, 40, "m"), rewrite])
    assert history_tokens(state, ledger(), 0) == (28, True)
