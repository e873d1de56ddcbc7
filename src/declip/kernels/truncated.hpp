// Draws from a normal that is known to lie in an interval, right however far the interval lies in the tail. What
// cannot be drawn (a mean, a deviation or an interval that is no number, or empty) comes out as NaN: each proposal
// below is taken with a probability of at least exp(-2), so that one of kMostProposals is, but for a chance of 1e-60.
#pragma once

#include <cmath>
#include <limits>

#include "rng.hpp"

namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr double kNotDrawn = std::numeric_limits<double>::quiet_NaN();

// N(0, 1) given [a, a + width], a >= 0: its distance from a. Exponential proposals of the rate that accepts most
// (Robert 1995), cut off at the width:
//   target exp(-a e - e^2/2), proposal exp(-rate e), so accept with exp((rate - a) e - e^2/2) over its largest value.
inline double tail_distance(double a, double width, Stream& random) {
    const double rate = 0.5 * (a + std::sqrt(a * a + 4)), best = 2 / (a + std::sqrt(a * a + 4));  // best = rate - a
    const double reach = -std::expm1(-rate * width), gap = width < best ? best - width : 0.0;
    for (int proposal = 0; proposal < kMostProposals; ++proposal) {
        const double e = -std::log1p(-random.uniform() * reach) / rate, off = e - best;
        if (std::log(random.uniform()) <= 0.5 * (gap * gap - off * off)) return e < width ? e : width;
    }
    return kNotDrawn;
}

// N(0, 1) given [a, b] with a < 0 < b.
inline double middle_draw(double a, double b, Stream& random) {
    for (int proposal = 0; proposal < kMostProposals; ++proposal)
        if (b - a < 2) {
            const double x = a + (b - a) * random.uniform();
            if (std::log(random.uniform()) <= -0.5 * x * x) return x;
        } else {
            const double x = random.normal();
            if (a <= x && x <= b) return x;
        }
    return kNotDrawn;
}

inline bool can_be_drawn(double mean, double sd, double lower, double upper) {
    return std::isfinite(mean) && std::isfinite(sd) && sd > 0 && lower <= upper && lower < kInfinity &&
           upper > -kInfinity;
}

// N(mean, sd^2) given [lower, upper]. In a tail the draw is kept as a distance from the near end, since
// mean + sd x would round it off.
inline double truncated_normal(double mean, double sd, double lower, double upper, Stream& random) {
    if (!can_be_drawn(mean, sd, lower, upper)) return kNotDrawn;
    if (lower == upper) return lower;
    const double a = (lower - mean) / sd, b = (upper - mean) / sd, width = (upper - lower) / sd;
    double z;
    if (a >= 0) z = lower + sd * tail_distance(a, width, random);
    else if (b <= 0) z = upper - sd * tail_distance(-b, width, random);
    else z = mean + sd * middle_draw(a, b, random);
    return z < lower ? lower : (z > upper ? upper : z);
}

}  // namespace
