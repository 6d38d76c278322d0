"""Sentences of ours are well-formed wherever they are put together from parts."""

from __future__ import annotations

import pytest

from marextui.context.phrases import sentence


@pytest.mark.parametrize(
    ("fragment", "whole"),
    [
        ("no usable cut: tools 15k leave 1k of 32k", "No usable cut: tools 15k leave 1k of 32k."),
        ("there is nothing to compact yet", "There is nothing to compact yet."),
        ("The server failed.", "The server failed."),
        ("was that all?", "Was that all?"),
        ("es ist élan", "Es ist élan."),
        ("max_request_mb = 3 sets the limit", "max_request_mb = 3 sets the limit."),
        ("src/a.py is gone", "src/a.py is gone."),
        ("", ""),
    ],
)
def test_a_reason_becomes_a_sentence(fragment: str, whole: str) -> None:
    assert sentence(fragment) == whole
    assert sentence(whole) == whole
