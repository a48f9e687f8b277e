"""Programs of JAX whose verdicts are the same with every version of JAX from 0.6 on."""
