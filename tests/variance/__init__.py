"""Tests of meshes, of types along their axes, of collectives by axis name, and of gradients by type."""
