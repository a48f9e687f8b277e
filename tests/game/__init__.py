"""Tests of the game of schedules: its states against the check and runs, its pages in a browser, its command."""
