"""Base URLs as people type them."""

from __future__ import annotations

import pytest

from marextui.models.endpoint import (
    auth_headers,
    display_url,
    http_client,
    is_local,
    is_loopback,
    join,
    normalise_base_url,
    server_root,
)
from marextui.models.types import ModelError


@pytest.mark.parametrize(
    ("typed", "api", "root"),
    [
        ("localhost:8080", "http://localhost:8080/v1", "http://localhost:8080"),
        ("http://127.0.0.1:1234/", "http://127.0.0.1:1234/v1", "http://127.0.0.1:1234"),
        (" https://api.openai.com/v1/ ", "https://api.openai.com/v1", "https://api.openai.com"),
        ("api.deepseek.com", "https://api.deepseek.com/v1", "https://api.deepseek.com"),
        ("https://openrouter.ai/api/v1", "https://openrouter.ai/api/v1", "https://openrouter.ai/api"),
        ("http://h:1/v1/chat/completions", "http://h:1/v1", "http://h:1"),
        ("https://g.example/v1beta/openai/", "https://g.example/v1beta/openai", "https://g.example"),
        ("[::1]:8080", "http://[::1]:8080/v1", "http://[::1]:8080"),
        ("192.168.1.4:11434", "http://192.168.1.4:11434/v1", "http://192.168.1.4:11434"),
    ],
)
def test_normalise(typed: str, api: str, root: str) -> None:
    assert normalise_base_url(typed) == api
    assert normalise_base_url(api) == api
    assert server_root(api) == root


@pytest.mark.parametrize("typed", ["", "   ", "ftp://x/v1", "http://", "http://h:0", "http://h:99999/", "http://[::1"])
def test_refuses_what_is_no_base_url(typed: str) -> None:
    with pytest.raises(ModelError) as caught:
        normalise_base_url(typed)
    assert caught.value.kind == "bad_request"


def test_query_is_kept_and_secrets_are_not_shown() -> None:
    base = normalise_base_url("https://user:pass@azure.example/openai/v1?api-version=3")
    assert join(base, "models") == "https://user:pass@azure.example/openai/v1/models?api-version=3"
    assert display_url(base) == "https://azure.example/openai/v1"


def test_local_and_loopback() -> None:
    assert is_loopback("http://localhost:1/v1")
    assert is_loopback("http://[::1]:1/v1")
    assert not is_loopback("http://192.168.0.2/v1")
    assert is_local("http://192.168.0.2/v1")
    assert is_local("http://nas/v1")
    assert not is_local("https://api.openai.com/v1")


def test_key_that_cannot_stand_in_a_header_is_refused_without_repeating_it() -> None:
    assert auth_headers("") == {}
    assert auth_headers(" k-1\n") == {"Authorization": "Bearer k-1"}
    for bad in ("sk-a\r\nX: 1", "sk-é"):
        with pytest.raises(ModelError) as caught:
            auth_headers(bad)
        assert caught.value.kind == "auth"
        assert bad not in str(caught.value)


async def test_a_client_never_follows_redirects_and_has_no_total_limit() -> None:
    async with http_client("http://127.0.0.1:1/v1", silence_timeout=7) as client:
        assert client.follow_redirects is False
        assert client.timeout.read == 7, "case 41: seconds without a byte, not for the whole reply"
