"""The shape of a token."""

from __future__ import annotations

from attrs import frozen


@frozen(repr=False)
class TokenShape:
    """The shape of a token, a value without elements that orders side effects."""

    def __repr__(self) -> str:
        return "token[]"

    @property
    def bytes(self) -> int:
        return 0

    def plain(self) -> TokenShape:
        return self
