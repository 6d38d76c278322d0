"""Properties of redaction: idempotent, the same object of text without secrets, JSON stays JSON (I10)."""

from __future__ import annotations

import json

from hypothesis import given
from hypothesis import strategies as st

from marextui.context.messages import Message, ToolCall
from marextui.context.redacted import redacted_arguments, redacted_message
from marextui.context.redaction import redact

KEYS = ("ghp_" + "a1" * 18, "sk-" + "x7Kq" * 6, "AKIA" + "ABCD2345" * 2, "glpat-" + "a1" * 10)
PIECES = st.sampled_from(
    (
        *KEYS,
        *["=", ":", '"', "'", "\\", "\n", "[", "]", "(", ")", "{", "}", ",", ";", "&", "@", "#", "-", "_", ".", "/"],
        " ",
        "password",
        "PASSWORD",
        "token",
        "api_key",
        "secret",
        "hunter22",
        "abc123def456",
        "://",
        "user",
        "Bearer ",
        "Authorization: ",
        " is ",
        "--",
        "-----BEGIN PRIVATE KEY-----",
        "-----END PRIVATE KEY-----",
        "MIIEabcdefgh12345678",
        "[redacted: password #3f, short]",
        "[redacted",
        "é",
        "İ",
    )
)
TEXTS = st.lists(PIECES, max_size=14).map("".join) | st.text(max_size=60)


@given(TEXTS)
def test_redacting_twice_is_redacting_once(text: str) -> None:
    """Placeholders are no secrets, whatever stands around them."""
    clean = redact(text)
    assert redact(clean) == clean


@given(TEXTS, st.sampled_from(KEYS), TEXTS)
def test_no_key_of_a_known_form_survives(before: str, key: str, after: str) -> None:
    """I10: whatever stands around it, as long as it is not part of a longer word."""
    around = f"{before} @KEY@ {after}".replace(key, "")
    assert key not in redact(around.replace("@KEY@", key))


@given(st.dictionaries(st.sampled_from(["password", "command", "api_key", "x"]), TEXTS, max_size=4))
def test_arguments_stay_json_with_the_same_names(arguments: dict[str, str]) -> None:
    """A call on disk can still be read by the work log and the fold."""
    raw = json.dumps(arguments)
    clean = redacted_arguments(raw)
    assert json.loads(clean).keys() == arguments.keys()
    assert redacted_arguments(clean) == clean


@given(TEXTS, TEXTS, TEXTS)
def test_a_clean_message_is_the_same_object(text: str, reasoning: str, arguments: str) -> None:
    """Writing what was read changes nothing."""
    message = Message("m", "assistant", text, (ToolCall("c", "Bash", arguments),), reasoning=reasoning)
    clean = redacted_message(message)
    assert redacted_message(clean) is clean
