"""The engine `auto`: compiles parts of programs with jaxlib in this process, where measured runs are then faster."""

from xbuild.core.identifiers import public_names as _public_names

from .choosing import EngineChoice as EngineChoice
from .choosing import choice_of as choice_of


def __dir__() -> list[str]:
    return _public_names(globals())
