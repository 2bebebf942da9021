"""Seeded streams and low-variance draws, so that every seed of a generator meets its targets.

Plain sampling misses a trace's mean, tail or reuse for some seeds. A stratified draw puts one
value into each of n equally likely slices, in random order: the sample's distribution is then
nearly the same for every seed, and only who gets which value is random.
"""

from statistics import NormalDist
from typing import TypeAlias
from zlib import crc32

import numpy as np
from numpy.typing import NDArray

Floats: TypeAlias = NDArray[np.float64]
Integers: TypeAlias = NDArray[np.int64]


def stream(seed: int, purpose: str) -> np.random.Generator:
    """Return the random stream of one purpose; streams of a seed are independent of one another."""
    return np.random.Generator(np.random.PCG64([seed, crc32(purpose.encode())]))


def stratified(random: np.random.Generator, size: int) -> Floats:
    """Return *size* uniform draws in (0, 1), one in each slice of width 1 / size, shuffled."""
    return (random.permutation(size) + random.uniform(1e-6, 1 - 1e-6, size)) / max(size, 1)


def systematic(random: np.random.Generator, shares: Floats) -> Integers:
    """Return the ascending indices of a sample that takes item i with probability shares[i].

    The number taken among any consecutive items differs from its expectation by less than two.
    """
    reached = np.floor(np.cumsum(shares) + random.random())
    return np.flatnonzero(np.diff(reached, prepend=0.0))


def exponential(uniforms: Floats, mean: float) -> Floats:
    """Return the exponential quantiles of *uniforms*."""
    return -mean * np.log1p(-uniforms)


def lognormal(uniforms: Floats, mu: float, sigma: float) -> Floats:
    """Return the quantiles of exp(N(mu, sigma)) at *uniforms*."""
    quantiles: Floats = np.exp(mu + sigma * _normal(uniforms))
    return quantiles


def gamma(uniforms: Floats, shape: float, scale: float) -> Floats:
    """Return the gamma quantiles of *uniforms* by Wilson and Hilferty's cube of a normal."""
    spread = 1 / (9 * shape)
    root = 1 - spread + np.sqrt(spread) * _normal(uniforms)
    quantiles: Floats = shape * scale * np.maximum(root, 0.0) ** 3
    return quantiles


def _normal(uniforms: Floats) -> Floats:
    quantile = NormalDist().inv_cdf
    return np.array([quantile(uniform) for uniform in uniforms.tolist()], dtype=np.float64)
