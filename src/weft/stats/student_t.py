"""Student's t distribution in pure Python: SciPy is not needed to run weft."""

import functools
import math

TINY = 1e-300
PRECISION = 1e-14
MAX_TERMS = 10_000
MAX_STEPS = 60


def two_sided_p(t: float, freedom: float) -> float:
    """Return the probability of a value at least as far from zero as `t`."""
    if t == 0:
        return 1.0
    return _incomplete_beta(freedom / (freedom + t * t), t * t / (freedom + t * t), freedom / 2, 0.5)


@functools.lru_cache(maxsize=4096)
def student_t_quantile(freedom: float, share: float = 0.95) -> float:
    """Return the t between whose minus and plus lies this share of the distribution."""
    outside = 1 - share
    low = 0.0
    high = 1.0
    while two_sided_p(high, freedom) > outside:
        low = high
        high *= 2
    t = (low + high) / 2
    for _ in range(MAX_STEPS):
        excess = two_sided_p(t, freedom) - outside
        if excess > 0:
            low = t
        else:
            high = t
        step = excess / (2 * _density(t, freedom))
        t += step
        if not low <= t <= high:
            t = (low + high) / 2
        elif abs(step) < 1e-10 * t:
            break
    return t


def _density(t: float, freedom: float) -> float:
    log_scale = math.lgamma((freedom + 1) / 2) - math.lgamma(freedom / 2) - math.log(freedom * math.pi) / 2
    return math.exp(log_scale - (freedom + 1) / 2 * math.log1p(t * t / freedom))


def _incomplete_beta(x: float, rest: float, a: float, b: float) -> float:
    """Return the regularised incomplete beta function of `x`, where `rest` is 1 - x without its rounding error.

    It is computed on the side on which its continued fraction converges fast.
    """
    if x <= 0:
        return 0.0
    if rest <= 0:
        return 1.0
    log_front = math.lgamma(a + b) - math.lgamma(a) - math.lgamma(b) + a * math.log(x) + b * math.log(rest)
    if x < (a + 1) / (a + b + 2):
        return math.exp(log_front) * _beta_fraction(x, a, b) / a
    return 1 - math.exp(log_front) * _beta_fraction(rest, b, a) / b


def _beta_fraction(x: float, a: float, b: float) -> float:
    """Return the continued fraction of the incomplete beta function (DLMF 8.17.22), by Lentz's method."""
    numerator = 1.0
    denominator = 1 / _not_zero(1 - (a + b) * x / (a + 1))
    fraction = denominator
    for m in range(1, MAX_TERMS):
        even = m * (b - m) * x / ((a + 2 * m - 1) * (a + 2 * m))
        odd = -(a + m) * (a + b + m) * x / ((a + 2 * m) * (a + 2 * m + 1))
        for term in (even, odd):
            denominator = 1 / _not_zero(1 + term * denominator)
            numerator = _not_zero(1 + term / numerator)
            fraction *= numerator * denominator
        if abs(numerator * denominator - 1) < PRECISION:
            break
    return fraction


def _not_zero(value: float) -> float:
    if abs(value) < TINY:
        return TINY
    return value
