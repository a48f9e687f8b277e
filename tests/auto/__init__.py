"""The engine `auto`."""
