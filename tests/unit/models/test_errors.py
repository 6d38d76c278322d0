"""What refusals mean: overflow with its numbers (section C, M4), and what is not overflow (cases 100, 105)."""

from __future__ import annotations

import json

import pytest

from marextui.models.errors import classify, redact


def body(message: str, **fields: object) -> str:
    return json.dumps({"error": {"message": message, **fields}})


@pytest.mark.parametrize(
    ("status", "raw", "n_prompt", "n_ctx"),
    [
        pytest.param(
            400,
            body(
                "request (9031 tokens) exceeds the available context size (8192 tokens), try increasing it",
                type="exceed_context_size_error",
                n_prompt_tokens=9031,
                n_ctx=8192,
            ),
            9031,
            8192,
            id="llama.cpp",
        ),
        pytest.param(
            400,
            body("the request exceeds the available context size", type="exceed_context_size_error", n_ctx="8192.0"),
            None,
            8192,
            id="llama.cpp-lenient",
        ),
        pytest.param(
            400,
            body(
                "This model's maximum context length is 128000 tokens. However, your messages resulted in 130500"
                " tokens. Please reduce the length of the messages.",
                code="context_length_exceeded",
            ),
            130500,
            128000,
            id="openai",
        ),
        pytest.param(
            400,
            body(
                "This model's maximum context length is 4096 tokens. However, you requested 5000 tokens (4000 in the"
                " messages, 1000 in the completion)."
            ),
            4000,
            4096,
            id="vllm",
        ),
        pytest.param(400, body("prompt is too long: 205000 tokens > 200000 maximum"), 205000, 200000, id="anthropic"),
        pytest.param(
            400,
            body("The input token count (1100000) exceeds the maximum number of tokens allowed (1048576)."),
            1100000,
            1048576,
            id="gemini",
        ),
        pytest.param(
            400,
            body("Prompt contains 40,000 tokens, too large for model with 32,768 maximum context length"),
            40000,
            32768,
            id="mistral",
        ),
        pytest.param(413, body("too many tokens in the request"), None, None, id="413-with-token-words"),
        pytest.param(422, json.dumps({"detail": "exceeds the context window of 8192"}), None, 8192, id="422"),
        pytest.param(
            500, "the prompt is longer than the context: context window (4096)", None, 4096, id="plain-text-500"
        ),
        pytest.param(None, body("context_length_exceeded"), None, None, id="inside-a-stream"),
    ],
)
def test_overflow(status: int | None, raw: str, n_prompt: int | None, n_ctx: int | None) -> None:
    error = classify(status, raw)
    assert (error.kind, error.n_prompt, error.n_ctx) == ("overflow", n_prompt, n_ctx)
    assert "/compact" in error.hint


@pytest.mark.parametrize(
    ("status", "raw", "kind"),
    [
        pytest.param(413, "<html><h1>413 Request Entity Too Large</h1></html>", "bad_request", id="case-105-html"),
        pytest.param(413, body("payload too large"), "bad_request", id="case-105-json"),
        pytest.param(429, body("Rate limit: too many tokens per min"), "rate_limit", id="rate-limit-names-tokens"),
        pytest.param(400, body("tokens per minute: too many tokens, rate_limit"), "rate_limit", id="400-rate-limit"),
        pytest.param(429, body("You exceeded your quota", code="insufficient_quota"), "rate_limit", id="quota"),
        pytest.param(401, body("Incorrect API key provided"), "auth", id="401"),
        pytest.param(403, "", "auth", id="403"),
        pytest.param(402, body("Insufficient credits"), "auth", id="402"),
        pytest.param(404, body("model not found"), "bad_request", id="404"),
        pytest.param(503, body("Loading model", type="unavailable_error"), "loading", id="loading"),
        pytest.param(503, body("overloaded"), "server", id="503"),
        pytest.param(
            500, body("Jinja Exception: Conversation roles must alternate", type="server_error"), "template", id="D7"
        ),
        pytest.param(500, body("Context size has been exceeded."), "server", id="D7-kv-exhausted-is-no-long-prompt"),
        pytest.param(504, "<html>Gateway Time-out</html>", "server", id="case-42"),
        pytest.param(400, body("bad tool_choice"), "bad_request", id="400"),
        pytest.param(307, "", "bad_request", id="redirect"),
        pytest.param(500, "", "server", id="500-empty"),
        pytest.param(500, "[" * 100_000, "server", id="deep-json"),
        pytest.param(None, json.dumps({"error": "model crashed"}), "server", id="bare-string-in-a-stream"),
    ],
)
def test_not_overflow(status: int | None, raw: str, kind: str) -> None:
    error = classify(status, raw)
    assert error.kind == kind
    assert error.message
    assert error.hint
    assert "<" not in error.message


def test_messages_are_short_and_never_hold_the_key() -> None:
    error = classify(401, body("Incorrect API key provided: sk-secret-123. " + "x" * 5000), api_key="sk-secret-123")
    assert "sk-secret" not in error.message + error.hint
    assert len(error.message) < 500
    assert redact("ab", "ab") == "ab", "a key too short to be one is not hunted for"


def test_retry_after_is_told() -> None:
    assert "20 s" in classify(429, "", retry_after="20").hint


def test_no_key_that_a_server_quotes_is_shown() -> None:
    """I10: not only ours: a proxy quotes the one it uses itself; the answer of `marextui -p` may end in a build log."""
    other = "sk-proj-" + "x7Kq" * 8
    for raw in (body(f"Incorrect API key provided: {other}."), f"<html>upstream said: {other}</html>"):
        error = classify(401, raw, api_key="sk-secret-123")
        assert other not in error.message + error.hint
        assert "[redacted: api key #" in error.message


@pytest.mark.parametrize(
    ("said", "n_prompt", "n_ctx"),
    [
        ("prompt token count of 134021 exceeds the limit of 128000", 134_021, 128_000),
        ("Your request exceeded model token limit: 131072 (requested: 140000)", 140_000, 131_072),
        ("Range of input length should be [1, 129024]", None, 129_024),
        ("input tokens exceed the configured limit of 272000 tokens. Your messages resulted in 300000", None, 272_000),
        ("The model has reached its context length. Reached context length of 4096 tokens.", None, 4_096),
        ("tokens to keep is greater than the context length (n_keep: 9000 >= n_ctx: 4096)", 9_000, 4_096),
        ("Prompt tokens limit exceeded: 131073 > 131072", 131_073, 131_072),
        ("The input (210000 tokens) is longer than the model's context length (131072 tokens).", 210_000, 131_072),
        ("tokens in request more than max tokens allowed", None, None),
        ("context_window_exceeded", None, None),
        ("`inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens", 5_000, 4_096),
    ],
)
def test_overflow_in_the_words_of_other_services(said: str, n_prompt: int | None, n_ctx: int | None) -> None:
    """A refusal that is not known for an overflow leaves a conversation dead: nothing is made smaller (case 31)."""
    error = classify(400, body(said))
    assert (error.kind, error.n_prompt, error.n_ctx) == ("overflow", n_prompt, n_ctx)


@pytest.mark.parametrize(
    "said",
    [
        "max_tokens must be <= 8192",
        "max_new_tokens: must be <= 4096",
        "temperature must be <= 2",
        "n must be <= 128",
        "`max_tokens` must be less than or equal to `8192`",
        "max_tokens: 64000 > 8192, which is the maximum allowed number of output tokens",
    ],
)
def test_a_limit_of_another_parameter_is_no_window(said: str) -> None:
    """Learned as a window, "temperature must be <= 2" would leave room for nothing, for ever."""
    error = classify(400, body(said))
    assert (error.kind, error.n_ctx) == ("bad_request", None)


def test_a_window_that_nothing_fits_into_is_not_believed() -> None:
    error = classify(400, body("the prompt is too long: maximum context length is 4 messages"))
    assert (error.kind, error.n_ctx) == ("overflow", None)


@pytest.mark.parametrize(
    ("status", "said"),
    [
        (400, "image.source.base64: specified using the image/png media type, but the image appears to be image/jpeg"),
        (400, "media exceeds size limit: max 10485760 bytes (2013)"),
        (400, "cannot identify image file <_io.BytesIO object>"),
        (400, "Failed to load image or audio file"),
        (500, "Failed to load image: broken PNG"),
        (404, "No endpoints found that support image input"),
        (400, "Could not process image"),
    ],
)
def test_a_picture_that_is_in_the_way_is_known_for_one(status: int, said: str) -> None:
    """One picture in the history must not make every later request fail (cases 102, 105)."""
    assert classify(status, body(said)).about == "images"


@pytest.mark.parametrize(
    "said",
    [
        "Missing `reasoning_content` field in the assistant message at message index 4",
        "The `reasoning_content` in the thinking mode must be passed back to the API.",
        "messages.3: Unexpected field reasoning_content",
        "property 'messages.2.reasoning_content' is unsupported",
    ],
)
def test_a_quarrel_about_past_reasoning_is_known_for_one(said: str) -> None:
    """Case 30's neighbour: some services refuse a tool loop without it, some any conversation with it."""
    assert classify(400, body(said)).about == "reasoning"
    assert classify(400, body("the reasoning was bad")).about == ""
