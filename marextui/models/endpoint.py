"""Base URLs and HTTP clients of OpenAI-compatible servers."""

from __future__ import annotations

import ipaddress
import re

import httpx

from marextui.models.types import ModelError

_VERSION = re.compile(r"^v\d+(?:alpha|beta)?\d*$")
_KNOWN_TAILS = ("/chat/completions", "/completions", "/models", "/embeddings")


def host_is_private(host: str) -> bool:
    """True for loopback, link-local and private addresses and for names that cannot be public ("localhost", "nas")."""
    host = host.strip("[]").lower()
    try:
        return not ipaddress.ip_address(host).is_global
    except ValueError:
        return "." not in host or host.endswith((".local", ".localhost", ".lan", ".internal", ".home.arpa"))


def _host(url: str) -> str:
    """The host of `url`, "" when it is no address; connecting to it says so in words."""
    try:
        return httpx.URL(url).host.strip("[]").lower()
    except httpx.InvalidURL:
        return ""


def is_loopback(url: str) -> bool:
    """True when `url` points at this machine."""
    host = _host(url)
    try:
        return ipaddress.ip_address(host).is_loopback
    except ValueError:
        return host == "localhost" or host.endswith(".localhost")


def is_local(url: str) -> bool:
    """True when `url` points at this machine or its private network: no price, no table of hosted windows."""
    return host_is_private(_host(url))


def normalise_base_url(text: str) -> str:
    """The API root that ends in a version segment: "localhost:8080" → "http://localhost:8080/v1".

    Takes an address with or without scheme, trailing slash, "/v1" or "/chat/completions"; a path that already
    names a version ("/api/v1", "/v1beta/openai") is kept. Raises `ModelError` ("bad_request") for anything else.
    """
    raw = text.strip()
    if raw and "://" not in raw:
        host = raw.split("/")[0].rsplit("@", 1)[-1].rsplit(":", 1)[0]
        raw = ("http://" if host_is_private(host) else "https://") + raw
    try:
        url = httpx.URL(raw)
        port = url.port
    except (httpx.InvalidURL, ValueError) as error:
        raise _bad_url(text) from error
    if url.scheme not in {"http", "https"} or not url.host or (port is not None and not 0 < port < 65536):
        raise _bad_url(text)
    path = url.path.rstrip("/")
    for tail in _KNOWN_TAILS:
        path = path.removesuffix(tail)
    path = path.rstrip("/")
    if not any(_VERSION.match(segment) for segment in path.split("/")):
        path += "/v1"
    return str(url.copy_with(path=path, fragment=None))


def _bad_url(text: str) -> ModelError:
    return ModelError(
        "bad_request",
        f"“{text.strip()[:200]}” is not a base URL.",
        hint="A base URL looks like http://localhost:8080/v1 or https://api.openai.com/v1.",
    )


def join(base_url: str, tail: str) -> str:
    """`tail` ("chat/completions") under the API root `base_url`; a query of the base is kept."""
    url = httpx.URL(base_url)
    return str(url.copy_with(path=url.path.rstrip("/") + "/" + tail.lstrip("/")))


def server_root(base_url: str) -> str:
    """The server above the API root, for its native routes: "http://h:1/x/v1" → "http://h:1/x"."""
    url = httpx.URL(base_url)
    kept: list[str] = []
    for segment in url.path.strip("/").split("/"):
        if not segment or _VERSION.match(segment):
            break
        kept.append(segment)
    return str(url.copy_with(path="/" + "/".join(kept), query=None)).rstrip("/")


def same_server(one: str, other: str) -> bool:
    """Whether two base URLs name the same scheme, host and port: a key of the one may be sent to the other."""
    try:
        a, b = httpx.URL(normalise_base_url(one)), httpx.URL(normalise_base_url(other))
    except ModelError:
        return False
    return (a.scheme, a.host, a.port) == (b.scheme, b.host, b.port)


def display_url(base_url: str) -> str:
    """`base_url` without user, password and query, for messages and pickers."""
    try:
        url = httpx.URL(base_url)
        return str(url.copy_with(username=None, password=None, query=None, fragment=None)).rstrip("/")
    except httpx.InvalidURL:
        return "?"


def auth_headers(api_key: str) -> dict[str, str]:
    """The Authorization header; none without a key, as local servers want none.

    Raises `ModelError` ("auth") for a key that cannot stand in a header, without repeating it.
    """
    key = api_key.strip()
    if not key:
        return {}
    if not key.isascii() or not key.isprintable():
        raise ModelError(
            "auth",
            "The API key holds characters that no key has (a line break, an accent or a smart quote).",
            hint="Copy the key again, alone, and paste it once.",
        )
    return {"Authorization": f"Bearer {key}"}


def timeouts(silence: float) -> httpx.Timeout:
    """`silence` seconds without a byte end a request; nothing limits its whole duration (case 41)."""
    return httpx.Timeout(connect=15.0, read=silence, write=60.0, pool=15.0)


def http_client(
    base_url: str, *, silence_timeout: float, transport: httpx.AsyncBaseTransport | None = None
) -> httpx.AsyncClient:
    """A client for one server: no redirects (a key must not travel), no total time limit (case 41).

    `silence_timeout` is seconds without a byte. Plain http servers get a fresh connection for each request, because
    llama.cpp announces keep-alive and then closes (trap 1 of the local engine); private hosts bypass the proxies of
    the environment.
    """
    plain = httpx.URL(base_url).scheme == "http"
    return httpx.AsyncClient(
        timeout=timeouts(silence_timeout),
        limits=httpx.Limits(max_connections=20, max_keepalive_connections=0 if plain else 5),
        follow_redirects=False,
        trust_env=not is_local(base_url),
        transport=transport,
    )
