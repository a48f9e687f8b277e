"""Derivatives: each rule against numeric derivatives, and programs against those of JAX."""
