"""The site: pages that are written by hand, and pages made from declarations, staged for Sphinx."""

from . import api_pages, command_pages, concept_pages, documents, game_pages, lesson_pages, moving_pages, op_pages

MAKERS = (documents, command_pages, api_pages, op_pages, concept_pages, game_pages, lesson_pages, moving_pages)
"""The modules that stage pages: each has a function `make`."""
