"""Searches for a text that the reader of HLO text neither reads nor refuses: mutated at random, and led by coverage."""
