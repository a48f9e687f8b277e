"""Tests of programs and arrays from files and from JAX."""
