"""Editing a settings file changes the one value and nothing else, whatever else stands in the file."""

from __future__ import annotations

import tempfile
import tomllib
from pathlib import Path

import tomli_w
from hypothesis import given, settings
from hypothesis import strategies as st

from marextui.settings import write_setting
from marextui.settings_toml import layout

names = st.text(st.characters(codec="utf-8", exclude_categories=["Cc"]), min_size=1, max_size=6)
texts = st.text(st.characters(codec="utf-8"), max_size=12) | st.sampled_from(
    ['"""', "'''", '\\"', "# no", "[x]", "a = 1\n"]
)
scalars = texts | st.integers(-(2**40), 2**40) | st.booleans()
inner = scalars | st.lists(scalars, max_size=2) | st.dictionaries(names, scalars, max_size=2)
values = inner | st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=3)
documents = st.dictionaries(names | st.sampled_from(["theme", "keys", "compact_at"]), values, max_size=5)


@given(documents, st.booleans())
def test_every_top_level_value_is_found_where_it_stands(document: dict[str, object], multiline: bool) -> None:
    text = tomli_w.dumps(document, multiline_strings=multiline)
    found = layout(text)
    for key in document:
        place = found.places.get((key,))
        if place is None and any(header[0] == key for header in found.headers):
            continue  # a table with a header: it has no single place
        assert place is not None, key
        assert tomllib.loads(f"v = {text[place.start : place.end]}")["v"] == tomllib.loads(text)[key]
        assert place.line == text.count("\n", 0, place.start) + 1


@settings(deadline=None, max_examples=60)  # each example waits for the disk twice
@given(documents, texts.filter(str.strip), st.booleans())
def test_writing_changes_one_value(document: dict[str, object], theme: str, multiline: bool) -> None:
    if isinstance(document.get("theme"), dict | list):
        del document["theme"]  # refused: there it is a table
    text = "# first\n" + tomli_w.dumps(document, multiline_strings=multiline)
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder) / "config.toml"
        path.write_bytes(text.encode())
        write_setting(path, "theme", theme)
        written = path.read_bytes().decode()
        assert tomllib.loads(written) == {**tomllib.loads(text), "theme": theme}
        assert written.startswith("# first\n")
        write_setting(path, "theme", None)
        rest = {k: v for k, v in tomllib.loads(text).items() if k != "theme"}
        assert tomllib.loads(path.read_bytes().decode()) == rest
