"""Searches for inputs that a reader neither reads nor refuses: HLO text, files of arrays, command lines."""
