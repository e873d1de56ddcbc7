// Rows z ~ N(mu, P^-1), one mean and precision for each class of rows, whose unknown cells lie in intervals: they are
// drawn one after the other given the rest of their row,
//
//   z_j | the rest ~ N(z_j - (P r)_j / P_jj, 1 / P_jj),   r = z - mu.
#pragma once

#include "kernels.hpp"
#include "truncated.hpp"
#include "vec.hpp"

namespace {

// False if a cell cannot be drawn. The residuals r are scratch of the padded length.
inline bool draw_normal_row(const NormalProblem& problem, int64_t i, double* r) {
    const int p = problem.p, ld = problem.ld;
    const double* const mu = problem.mean + problem.label[i] * p;
    const double* const P = problem.precision + problem.label[i] * p * ld;
    double* const z = problem.rows + i * p;
    for (int a = 0; a < p; ++a) r[a] = z[a] - mu[a];
    Stream random(problem.seed, problem.sweep, problem.same_stream ? 0 : static_cast<uint32_t>(i));
    for (int64_t c = problem.ptr[i]; c < problem.ptr[i + 1]; ++c) {
        const int32_t j = problem.idx[c];
        const double variance = 1 / P[j * ld + j], mean = z[j] - dot(P + j * ld, r, ld) * variance;
        const double drawn = truncated_normal(mean, std::sqrt(variance), problem.lower[c], problem.upper[c], random);
        if (std::isnan(drawn)) return false;
        z[j] = drawn;
        r[j] = drawn - mu[j];
    }
    return true;
}

// Draw rows [begin, end); returns how many of them could not be drawn.
inline double draw_normal_rows(const NormalProblem& problem, int64_t begin, int64_t end) {
    Buffer<double> r(problem.ld);
    double failed = 0;
    for (int64_t i = begin; i < end; ++i)
        if (problem.ptr[i] < problem.ptr[i + 1]) failed += !draw_normal_row(problem, i, r.get());
    return failed;
}

}  // namespace
