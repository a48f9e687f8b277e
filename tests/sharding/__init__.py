"""Shardings: records, texts, ops of the shard dialect, resharding."""
