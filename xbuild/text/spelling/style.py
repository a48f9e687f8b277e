"""Styles of HLO text: which optional parts are printed."""

from __future__ import annotations

from attrs import evolve, frozen


@frozen
class Style:
    """The optional parts of HLO text that are printed.

    `percent`: `%` before names, and signatures of computations. `layouts`: the default layout for shapes without one.
    `metadata`: scopes and source lines. `entry_layout`: the entry's signature in the header of a module. `types`: types
    on a mesh behind the shapes that they belong to, as no other reader of HLO takes them; else they are attributes.
    """

    percent: bool = False
    layouts: bool = False
    metadata: bool = False
    entry_layout: bool = False
    types: bool = False


STYLES = {
    "short": Style(),
    "percent": Style(percent=True),
    "full": Style(percent=True, layouts=True, metadata=True, entry_layout=True),
    "typed": Style(types=True),
}


def chosen_style(named: str | Style = "short", **changes: bool | None) -> Style:
    """The style of this name, with the changes that are not None; ValueError where there is none.

    >>> chosen_style("short", layouts=True, metadata=None)
    Style(percent=False, layouts=True, metadata=False, entry_layout=False, types=False)
    """
    if isinstance(named, str) and named not in STYLES:
        raise ValueError(f"no style of HLO text is {named!r}; there are {', '.join(STYLES)}")
    chosen = STYLES[named] if isinstance(named, str) else named
    return evolve(chosen, **{key: value for key, value in changes.items() if value is not None})
