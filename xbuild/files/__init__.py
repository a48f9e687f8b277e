"""Files and JAX functions: programs from targets, arrays from and into npz files, lowering of JAX functions."""
