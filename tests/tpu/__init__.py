"""Replicated programs in the manner of TensorFlow's tpu module."""
