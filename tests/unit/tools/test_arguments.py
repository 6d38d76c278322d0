"""Arguments as models write them: aliases, leniency without guessing, errors a model can act on."""

from __future__ import annotations

import contextlib
import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from marextui.tools.arguments import ArgumentError, load_object, parse
from marextui.tools.types import ToolSpec

SPEC = ToolSpec(
    "Demo",
    "",
    {
        "type": "object",
        "properties": {
            "file_path": {"type": "string"},
            "offset": {"type": "integer"},
            "replace_all": {"type": "boolean"},
        },
        "required": ["file_path"],
    },
)


@pytest.mark.parametrize("raw", ["", "  \n", "null", "{}", '"{}"', '""'])
def test_nothing_given_is_an_empty_object(raw: str) -> None:
    assert load_object(raw) == {}


def test_a_string_that_holds_json_is_unwrapped_once_only() -> None:
    once = json.dumps(json.dumps({"a": 1}))
    assert load_object(once) == {"a": 1}
    with pytest.raises(ArgumentError, match="not a string"):
        load_object(json.dumps(once))


@pytest.mark.parametrize(
    "raw", ["{'file_path': 'a'}", '{"file_path": "a",}', '{"file_path": "a"', "file_path=a", "[" * 9999]
)
def test_broken_json_is_not_guessed_and_says_where(raw: str) -> None:
    with pytest.raises(
        ArgumentError, match=r"Demo: the arguments are (not valid JSON|nested).*Expected \{file_path: string, "
    ):
        parse(SPEC, raw)


@pytest.mark.parametrize(("raw", "what"), [("[1]", "a list"), ("3", "a number"), ("true", "a boolean")])
def test_only_objects_are_arguments(raw: str, what: str) -> None:
    with pytest.raises(ArgumentError, match=what):
        parse(SPEC, raw)


def test_missing_parameter_is_named_with_what_is_expected() -> None:
    with pytest.raises(ArgumentError) as caught:
        parse(SPEC, "{}")
    assert str(caught.value) == (
        "Demo: missing file_path. Expected {file_path: string, offset?: integer, replace_all?: boolean}."
    )


@pytest.mark.parametrize("key", ["file_path", "path", "filename", "filePath", "FILE_PATH", "filepath"])
def test_usual_other_names_are_accepted(key: str) -> None:
    assert parse(SPEC, json.dumps({key: "a"})) == {"file_path": "a"}


def test_unknown_keys_are_listed_and_explanations_dropped() -> None:
    with pytest.raises(ArgumentError, match="unknown colour, weight"):
        parse(SPEC, '{"file_path": "a", "weight": 1, "colour": 2, "description": "why"}')
    assert parse(SPEC, '{"file_path": "a", "description": "why"}') == {"file_path": "a"}


def test_two_names_for_one_parameter_must_agree() -> None:
    with pytest.raises(ArgumentError, match="file_path"):
        parse(SPEC, '{"path": "a", "filename": "b"}')
    assert parse(SPEC, '{"path": "a", "filename": "a"}') == {"file_path": "a"}


@pytest.mark.parametrize(
    ("value", "result"), [(3, 3), (3.0, 3), ("3", 3), (" -4 ", -4), (None, "absent"), (True, "error"), ("3.5", "error")]
)
def test_integers(value: Any, result: Any) -> None:
    raw = json.dumps({"file_path": "a", "offset": value})
    if result == "error":
        with pytest.raises(ArgumentError, match="offset must be an integer"):
            parse(SPEC, raw)
    else:
        assert parse(SPEC, raw).get("offset", "absent") == result


@pytest.mark.parametrize(("value", "result"), [(True, True), ("False", False), ("yes", None), (1, None)])
def test_booleans(value: Any, result: bool | None) -> None:
    raw = json.dumps({"file_path": "a", "replace_all": value})
    if result is None:
        with pytest.raises(ArgumentError, match="replace_all must be true or false"):
            parse(SPEC, raw)
    else:
        assert parse(SPEC, raw)["replace_all"] is result


def test_a_raw_line_feed_inside_a_string_is_taken_as_it_is() -> None:
    assert parse(SPEC, '{"file_path": "a\nb"}') == {"file_path": "a\nb"}


@settings(deadline=None)
@given(st.text() | st.recursive(st.none() | st.integers() | st.text(), st.lists, max_leaves=5).map(json.dumps))
def test_nothing_but_argument_errors_comes_out(raw: str) -> None:
    with contextlib.suppress(ArgumentError):
        assert set(parse(SPEC, raw)) <= {"file_path", "offset", "replace_all"}
