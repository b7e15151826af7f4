"""Pieces of Markdown."""

from __future__ import annotations


def fenced(kind: str, text: str) -> str:
    return f"```{kind}\n{text}\n```"


def sql(text: str) -> str:
    return fenced("sql", text)
