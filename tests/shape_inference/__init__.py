"""Tests of shapes and of the rules that infer them."""
