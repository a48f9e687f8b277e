"""The comfortable forms that operators on values record; `xbuild` supplies its own namespace."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .builder import Value


class Forms:
    """The public functions of `xbuild` by name."""

    namespace: Any = None

    def __getattr__(self, name: str) -> Callable[..., Value]:
        return getattr(self.namespace, name)  # type: ignore[no-any-return]


forms = Forms()
