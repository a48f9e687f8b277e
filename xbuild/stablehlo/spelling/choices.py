"""Words of attributes that choose one of several values; words that are the same in HLO are not listed."""

from __future__ import annotations

from collections.abc import Mapping


def _inverse(words: Mapping[str, str]) -> dict[str, str]:
    return {other: word for word, other in words.items()}


PRECISIONS = {"default": "DEFAULT", "high": "HIGH", "highest": "HIGHEST"}
PRECISIONS_READ = _inverse(PRECISIONS)

ALGORITHMS = {"rng_default": "DEFAULT", "rng_three_fry": "THREE_FRY", "rng_philox": "PHILOX"}
ALGORITHMS_READ = _inverse(ALGORITHMS)

DISTRIBUTIONS = {"rng_uniform": "UNIFORM", "rng_normal": "NORMAL"}
DISTRIBUTIONS_READ = _inverse(DISTRIBUTIONS)

API_VERSIONS = {
    "API_VERSION_ORIGINAL": 1,
    "API_VERSION_STATUS_RETURNING": 2,
    "API_VERSION_STATUS_RETURNING_UNIFIED": 3,
    "API_VERSION_TYPED_FFI": 4,
}
"""The api_version of a custom_call, a number in StableHLO."""
API_VERSIONS_READ = {number: word for word, number in API_VERSIONS.items()}

DEVICE_TO_DEVICE, DEVICE_TO_HOST, HOST_TO_DEVICE = 1, 2, 3
"""The types of channel handles of send and recv."""

DIRECTIONS = ("EQ", "NE", "LT", "LE", "GT", "GE")
COMPARE_TYPES = ("FLOAT", "TOTALORDER", "SIGNED", "UNSIGNED")
FFT_TYPES = ("FFT", "IFFT", "RFFT", "IRFFT")
TRANSPOSES = ("NO_TRANSPOSE", "TRANSPOSE", "ADJOINT")
"""Words that HLO and StableHLO spell alike."""
