// The loss of one cell: value, gradient and curvature at x, for a cell known to lie in [lower, upper].
//
//   Hinge   half the squared distance to the interval
//   Tobit   -scale^2 log P(lower <= x + scale * N(0, 1) <= upper)
//
// Both are convex with a curvature between 0 and 1, and both tend to (x - m)^2 / 2 (up to a constant)
// as the interval shrinks to m; exact cells never come here.
#pragma once

#include <cmath>
#include <limits>
#include <type_traits>

#include "kernels.hpp"

// The losses, and their names outside of the kernels; `with_loss`, at the end, has the struct of each.
enum class LossKind : int { hinge, tobit };
constexpr const char* kLossNames[] = {"hinge", "tobit"};

namespace {

struct CellLoss {
    double value, gradient, curvature;
};

struct Hinge {
    static constexpr bool weighted = false;
    Hinge with_scale(double) const { return {}; }
    CellLoss operator()(double x, double lower, double upper) const {
        const double nearest = x < lower ? lower : (x > upper ? upper : x);
        const double r = x - nearest;
        return {0.5 * r * r, r, lower < x && x < upper ? 0.0 : 1.0};
    }
};

constexpr double kSqrt2 = 1.4142135623730950488;
constexpr double kSqrtPi = 1.7724538509055160273;
constexpr double kLogSqrt2Pi = 0.91893853320467274178;

// exp(x^2) erfc(x) for x >= 0.
inline double erfcx(double x) {
    if (x < 3.0) return std::exp(x * x) * std::erfc(x);
    if (x > 1e8) return 1.0 / (kSqrtPi * x);
    // Continued fraction sqrt(pi) erfcx(x) = 1 / (x + (1/2) / (x + 1 / (x + (3/2) / (x + ...)))) as the ratio of two
    // polynomials: A_j = x A_{j-1} + (j / 2) A_{j-2}, and the same for B, scaled by x at each step.
    const int terms = x < 4.0 ? 52 : (x < 6.0 ? 32 : (x < 10.0 ? 18 : 10));
    const double u = 1.0 / (x * x);
    double a0 = 0.0, a1 = 1.0, b0 = 1.0, b1 = 1.0;
    for (int j = 1; j <= terms; ++j) {
        const double c = 0.5 * j * u, a2 = a1 + c * a0, b2 = b1 + c * b0;
        a0 = a1;
        a1 = a2;
        b0 = b1;
        b1 = b2;
    }
    return a1 / (b1 * x * kSqrtPi);
}

// The interval (a, b) under a standard normal: log of its mass, and the densities at its ends over its mass.
struct NormalMass {
    double log_mass, ratio_a, ratio_b;
};

// 0 <= a < b = inf: mass = erfc(a / sqrt 2) / 2.
inline NormalMass tail_mass(double a) {
    const double e = erfcx(a / kSqrt2);
    return {std::log(0.5 * e) - 0.5 * a * a, std::sqrt(2.0) / (kSqrtPi * e), 0.0};
}

inline NormalMass normal_mass(double a, double b) {
    if (a + b < 0) {  // mirror, so that the heavy end is a
        const NormalMass mirrored = normal_mass(-b, -a);
        return {mirrored.log_mass, mirrored.ratio_b, mirrored.ratio_a};
    }
    const double density_a = std::isinf(a) ? 0.0 : std::exp(-0.5 * a * a - kLogSqrt2Pi);
    const double density_b = std::isinf(b) ? 0.0 : std::exp(-0.5 * b * b - kLogSqrt2Pi);
    if (a <= 0) {
        const double outside = 0.5 * (std::erfc(-a / kSqrt2) + std::erfc(b / kSqrt2));
        // 1 - outside loses digits once the ends are close; the difference of erf does not.
        const double mass = outside < 0.5 ? 1.0 - outside : 0.5 * (std::erf(b / kSqrt2) - std::erf(a / kSqrt2));
        const double log_mass = outside < 0.5 ? std::log1p(-outside) : std::log(mass);
        return {log_mass, density_a / mass, density_b / mass};
    }
    if (std::isinf(b)) return tail_mass(a);
    // mass = (erfcx(a') - exp(a'^2 - b'^2) erfcx(b')) exp(-a^2 / 2) / 2, with ' for / sqrt 2
    const double drop = std::exp(0.5 * (a - b) * (a + b));
    const double scaled = 0.5 * (erfcx(a / kSqrt2) - drop * erfcx(b / kSqrt2));
    const double unit = 1.0 / (kSqrt2 * kSqrtPi * scaled);
    return {std::log(scaled) - 0.5 * a * a, unit, drop * unit};
}

struct Tobit {
    static constexpr bool weighted = false;
    double scale;
    Tobit with_scale(double other) const { return {other}; }

    // A range so narrow that the density is exponential over it: mass = phi(m) 2 sinh(m h) / m, with its middle m and
    // half its width h in units of the scale. Taken from the bounds, since (lower - x) would round their difference off.
    CellLoss narrow(double x, double lower, double upper) const {
        const double m = (0.5 * (lower + upper) - x) / scale, h = 0.5 * (upper - lower) / scale;
        const double mh = std::fabs(m * h);
        const double log_width = std::log(2 * h) + (mh < 1e-5 ? 0.0 : mh + std::log(-std::expm1(-2 * mh)) - std::log(2 * mh));
        return {-scale * scale * (log_width - 0.5 * m * m - kLogSqrt2Pi), -scale * m, 1.0};
    }

    CellLoss operator()(double x, double lower, double upper) const {
        if (upper - lower < 1e-4 * scale) return narrow(x, lower, upper);
        const double a = (lower - x) / scale, b = (upper - x) / scale;
        const NormalMass m = normal_mass(a, b);
        const double g = m.ratio_b - m.ratio_a;  // minus the mean of N(0, 1) given (a, b)
        // 1 - variance of N(0, 1) given (a, b)
        const double a_term = std::isinf(a) ? 0.0 : a * m.ratio_a, b_term = std::isinf(b) ? 0.0 : b * m.ratio_b;
        const double h = g * g - a_term + b_term;
        return {-scale * scale * m.log_mass, scale * g, std::fmin(1.0, std::fmax(0.0, h))};
    }
};

// A loss of cells that have weights, and where their errors are known noise scales of their own.
template <class Loss>
struct Weighted {
    static constexpr bool weighted = true;
    Loss loss;
};

// The loss of the censored cell c of a row, predicted as x.
template <class Loss, class T>
CellLoss loss_of_cell(const Loss& loss, const RowCells<T>& row, int64_t c, double x) {
    if constexpr (Loss::weighted) {
        const auto own = row.censored_scale != nullptr ? loss.loss.with_scale(row.censored_scale[c]) : loss.loss;
        const CellLoss cell = own(x, row.lower[c], row.upper[c]);
        const double weight = row.censored_weight[c];
        return {weight * cell.value, weight * cell.gradient, weight * cell.curvature};
    } else {
        return loss(x, row.lower[c], row.upper[c]);
    }
}

// Returns f(loss) for the loss that is named: the one place where one is chosen.
template <class F>
auto with_loss(const LossSpec& named, F f) {
    switch (named.kind) {
        case LossKind::tobit: return f(Tobit{named.scale});
        default: return f(Hinge{});
    }
}

// The same for the cells of a table, which may have weights.
template <class T, class F>
auto with_loss_of(const CellsView<T>& cells, const LossSpec& named, F f) {
    return with_loss(named, [&](const auto& loss) {
        using Loss = std::decay_t<decltype(loss)>;
        return cells.weighted ? f(Weighted<Loss>{loss}) : f(loss);
    });
}

}  // namespace
