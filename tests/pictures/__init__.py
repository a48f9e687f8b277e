"""Tests of pictures: layout, views, data, formats, lanes."""
