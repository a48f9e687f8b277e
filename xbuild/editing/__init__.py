"""Edits of programs, which return new programs checked by the shape rules; extraction, differences, repair."""

from ..properties.structure import fingerprint as fingerprint
from ..properties.structure import same_structure as same_structure
from .canonical import canonical as canonical
from .dead import eliminate_dead_code as eliminate_dead_code
from .difference import Diff as Diff
from .difference import diff as diff
from .editor import Editor as Editor
from .editor import edit as edit
from .extraction import extract as extract
from .repairing import repaired as repaired
