"""The level stage of the check: runs all devices level by level, without values, until they end or are stuck."""
