"""Tests of every op: cases by family, the document's sections, real XLA, special functions, decompositions."""
