"""From files and functions to programs and arrays, and back: targets, npz files, functions of JAX."""
