// One half of a Gibbs sweep: with the other side's factors q_j fixed, draw the censored cells z_j of a row with its own
// factors p integrated out, then p itself, from
//
//   z_j = q_j p + o_j + N(0, 1 / w_j),   p ~ N(prior),   w_j = own precision * other precision_j * weight_j
//
// where z_j is the value of an exact cell, or known to lie in an interval. With H = U^T U the precision of p given
// the cells and g = U^-T r, r its information, a cell enters through y = U^-T q alone: its leverage is h = w |y|^2,
// and without it its mean and variance are (y g - h z) / (1 - h) and 1 / (w (1 - h)), in terms of z - o.
#pragma once

#include "cholesky.hpp"
#include "kernels.hpp"
#include "truncated.hpp"

namespace {

constexpr int kDrawGather = 64;

struct DrawScratch {
    int ld;
    Buffer<double> H, U, inv, r, g, y, buffer, weighted;
    int gathered = 0;
    explicit DrawScratch(int ld)
        : ld(ld), H(ld * ld), U(ld * ld), inv(ld), r(ld), g(ld), y(ld), buffer(kDrawGather * ld),
          weighted(kDrawGather * ld) {}
};

struct RowDraw {
    const DrawProblem& problem;
    const CellsView<double>& cells;
    const int64_t i;
    DrawScratch& w;
    Stream random;
    const int ld = problem.ld;

    const double* factor(int32_t j) const { return problem.other + static_cast<int64_t>(j) * ld; }
    double precision(int32_t j, const double* weight, int64_t c) const {
        return problem.own_precision[i] * problem.other_precision[j] * (weight ? weight[c] : 1.0);
    }

    void flush() {
        gram(w.weighted.get(), w.buffer.get(), w.gathered, ld, w.H.get(), [] {});
        w.gathered = 0;
    }

    // H += weight q q^T, r += weight z q
    void add(const double* q, double z, double weight) {
        double* const plain = w.buffer.get() + w.gathered * ld;
        double* const scaled = w.weighted.get() + w.gathered * ld;
        for (int a = 0; a < ld; a += kLanes<double>) {
            const Vec<double> v = load(q + a);
            store(plain + a, v);
            store(scaled + a, weight * v);
        }
        axpy(weight * z, q, w.r.get(), ld);
        if (++w.gathered == kDrawGather) flush();
    }

    // H and r of the prior and all cells, factored; g = U^-T r. False if H is not positive definite.
    bool gather() {
        std::memcpy(w.H.get(), problem.prior_precision, sizeof(double) * ld * ld);
        std::memcpy(w.r.get(), problem.prior_information + i * problem.information_stride, sizeof(double) * ld);
        if (problem.prior_scale != nullptr)
            for (int a = 0; a < problem.k; ++a)
                for (int b = 0; b < problem.k; ++b) w.H[a * ld + b] *= problem.prior_scale[i];
        for (int64_t c = cells.exact_ptr[i]; c < cells.exact_ptr[i + 1]; ++c) {
            const int32_t j = cells.exact_idx[c];
            add(factor(j), cells.value[c] - problem.offset[j], precision(j, problem.exact_weight, c));
        }
        for (int64_t c = cells.censored_ptr[i]; c < cells.censored_ptr[i + 1]; ++c) {
            const int32_t j = cells.censored_idx[c];
            add(factor(j), problem.z[c] - problem.offset[j], precision(j, problem.censored_weight, c));
        }
        flush();
        if (!cholesky(w.H.get(), 0.0, w.U.get(), w.inv.get(), ld)) return false;
        forward_solve(w.U.get(), w.inv.get(), w.r.get(), w.g.get(), ld);
        return true;
    }

    // False if a cell cannot be drawn.
    bool draw_censored_cells() {
        for (int64_t c = cells.censored_ptr[i]; c < cells.censored_ptr[i + 1]; ++c) {
            const int32_t j = cells.censored_idx[c];
            const double weight = precision(j, problem.censored_weight, c), offset = problem.offset[j];
            if (weight == 0) continue;  // nothing is known of it
            std::memcpy(w.r.get(), factor(j), sizeof(double) * ld);
            forward_solve(w.U.get(), w.inv.get(), w.r.get(), w.y.get(), ld);
            const double h = weight * dot(w.y.get(), w.y.get(), ld), without = larger(1 - h, 1e-12);
            const double old = problem.z[c] - offset;
            const double mean = (dot(w.y.get(), w.g.get(), ld) - h * old) / without;
            const double z = truncated_normal(mean + offset, 1 / std::sqrt(weight * without), cells.lower[c],
                                              cells.upper[c], random);
            if (std::isnan(z)) return false;
            axpy(weight * (z - offset - old), w.y.get(), w.g.get(), ld);
            problem.z[c] = z;
        }
        return true;
    }

    // p = U^-1 (g + N(0, I)), of covariance H^-1
    void draw_factors(double* p) {
        for (int a = 0; a < problem.k; ++a) w.g[a] += random.normal();
        back_solve(w.U.get(), w.inv.get(), w.g.get(), ld);
        std::memcpy(p, w.g.get(), sizeof(double) * problem.k);
    }

    // The squared residual over the other side's variance; Student t noise draws the weight of the cell anew,
    // without degrees of freedom weights are given.
    double cell_square(int32_t j, double z, double* weight, int64_t c) {
        const double r = z - problem.offset[j] - dot(factor(j), w.g.get(), ld);
        const double square = r * r * problem.other_precision[j];
        if (!weight) return square;
        const double df = problem.df;
        if (df > 0) weight[c] = random.gamma(0.5 * (df + 1)) / (0.5 * (df + square * problem.own_precision[i]));
        return weight[c] * square;
    }

    double squares() {
        double sum = 0;
        for (int64_t c = cells.exact_ptr[i]; c < cells.exact_ptr[i + 1]; ++c)
            sum += cell_square(cells.exact_idx[c], cells.value[c], problem.exact_weight, c);
        for (int64_t c = cells.censored_ptr[i]; c < cells.censored_ptr[i + 1]; ++c)
            sum += cell_square(cells.censored_idx[c], problem.z[c], problem.censored_weight, c);
        return sum;
    }

    // False if the row has no proper posterior.
    bool draw() {
        if (!gather() || !draw_censored_cells()) return false;
        draw_factors(problem.own + i * problem.k);
        problem.squares[i] = squares();
        return std::isfinite(problem.squares[i]) && std::isfinite(dot(w.g.get(), w.g.get(), ld));
    }
};

// Draw rows [begin, end); returns how many of them had no proper posterior.
inline double draw_rows(const DrawProblem& problem, const CellsView<double>& cells, int64_t begin, int64_t end) {
    DrawScratch scratch(problem.ld);
    double failed = 0;
    for (int64_t i = begin; i < end; ++i) {
        const uint32_t stream = problem.same_stream ? 0 : static_cast<uint32_t>(i);
        failed += !RowDraw{problem, cells, i, scratch, Stream(problem.seed, problem.sweep, stream)}.draw();
    }
    return failed;
}

}  // namespace
