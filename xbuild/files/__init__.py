"""Programs and arrays from files and from functions of JAX, and back into files: targets, npz files, lowering."""
