"""Texts of answers to questions about a trace."""
