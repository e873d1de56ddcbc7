// One row of a half-sweep: with the other side's factors q_j fixed, lower the convex function of p
//
//   F(p) = sum over exact cells of (q_j p + o_j - m_j)^2 / 2 + sum over open cells of loss(q_j p + o_j)
//          + sum over a of ridge_a p_a^2 / 2
//
// by Newton steps d with an exact line search, so that F never rises. Everything is kept as a step from
// the present p: rounding errors then scale with the step, not with the data.
#pragma once

#include <cstdint>
#include <limits>

#include "kernels.hpp"
#include "loss.hpp"
#include "vec.hpp"

namespace {

constexpr int kGather = 64;  // cells gathered at a time: 64 x 40 floats are 10 kB

// Scratch of one thread.
template <class T>
struct Workspace {
    int ld;
    Buffer<T> H, U, buffer, weighted, base, grad, rhs, d, inv, hd, cg_r, cg_v;
    Buffer<double> x, delta, slope, curvature, counted, next_slope, next_curvature;
    explicit Workspace(int ld)
        : ld(ld), H(ld * ld), U(ld * ld), buffer(kGather * ld), weighted(kGather * ld), base(ld), grad(ld),
          rhs(ld), d(ld), inv(ld), hd(ld), cg_r(ld), cg_v(ld) {}
    void reserve_open(int64_t n) {
        if (x.size() >= n) return;
        Buffer<double>* const all[] = {&x, &delta, &slope, &curvature, &counted, &next_slope, &next_curvature};
        for (Buffer<double>* v : all) v->resize(n);
    }
};

template <class T>
inline RowCells<T> row_cells(const CellsView<T>& v, int64_t i) {
    const int64_t e = v.exact_ptr[i], o = v.open_ptr[i];
    return {e, v.exact_ptr[i + 1] - e, o, v.open_ptr[i + 1] - o, v.exact_idx + e, v.value + e,
            v.open_idx + o, v.lower + o, v.upper + o};
}

template <class T>
inline double dot64(const T* x, const T* y, int ld) {
    double s = 0;
    for (int a = 0; a < ld; ++a) s += static_cast<double>(x[a]) * y[a];
    return s;
}

template <class T, class Loss>
struct RowSolver {
    const Problem<T>& problem;
    const RowCells<T>& row;
    const Loss& loss;
    Workspace<T>& w;
    const int ld = problem.ld;

    const T* factor(int32_t j) const { return problem.other + static_cast<int64_t>(j) * ld; }
    bool dense() const { return problem.cg_steps == 0; }

    // base = sum (x - m) q, H = sum q q^T over the exact cells; returns their loss.
    double exact_cells(const T* p) {
        double value = 0;
        for (int64_t start = 0; start < row.n_exact; start += kGather) {
            const int n = row.n_exact - start < kGather ? static_cast<int>(row.n_exact - start) : kGather;
            for (int c = 0; c < n; ++c) {
                const int32_t j = row.exact_idx[start + c];
                const T* q = factor(j);
                const T r = dot(q, p, ld) + problem.offset[j] - row.value[start + c];
                value += 0.5 * static_cast<double>(r) * r;
                axpy(r, q, w.base.get(), ld);
                if (dense()) std::memcpy(w.buffer.get() + c * ld, q, sizeof(T) * ld);
            }
            if (dense()) gram(w.buffer.get(), w.buffer.get(), n, ld, w.H.get());
        }
        return value;
    }

    // The open cells at p + t d: their loss and its derivative in t. Slopes and curvatures are left in next_*.
    double open_cells(double t, double& derivative) {
        double value = 0;
        derivative = 0;
        for (int64_t c = 0; c < row.n_open; ++c) {
            const CellLoss cell = loss(w.x[c] + t * w.delta[c], row.lower[c], row.upper[c]);
            value += cell.value;
            derivative += cell.gradient * w.delta[c];
            w.next_slope[c] = cell.gradient;
            w.next_curvature[c] = cell.curvature;
        }
        return value;
    }
    void accept_open_cells() {
        w.slope.swap(w.next_slope);
        w.curvature.swap(w.next_curvature);
    }

    // H += sum over open cells of (curvature - counted) q q^T, where it changed.
    void update_curvature() {
        int n = 0;
        for (int64_t c = 0; c < row.n_open; ++c) {
            const T change = static_cast<T>(w.curvature[c] - w.counted[c]);
            if (change != 0) {
                w.counted[c] = w.curvature[c];
                const T* q = factor(row.open_idx[c]);
                for (int a = 0; a < ld; ++a) {
                    w.buffer[n * ld + a] = q[a];
                    w.weighted[n * ld + a] = change * q[a];
                }
                ++n;
            }
            if (n == kGather || (c + 1 == row.n_open && n > 0)) {
                gram(w.weighted.get(), w.buffer.get(), n, ld, w.H.get());
                n = 0;
            }
        }
    }

    // out = H v without H: ridge v + sum over cells of curvature (q v) q.
    void multiply(const T* v, T* out) {
        for (int a = 0; a < ld; ++a) out[a] = problem.ridge[a] * v[a];
        for (int64_t c = 0; c < row.n_exact; ++c) {
            const T* q = factor(row.exact_idx[c]);
            axpy(dot(q, v, ld), q, out, ld);
        }
        for (int64_t c = 0; c < row.n_open; ++c) {
            if (w.curvature[c] == 0) continue;
            const T* q = factor(row.open_idx[c]);
            axpy(static_cast<T>(w.curvature[c]) * dot(q, v, ld), q, out, ld);
        }
    }

    // d = -H^-1 grad, hd = H d.
    bool newton_direction() {
        T largest = 0;
        for (int a = 0; a < problem.k; ++a) largest = larger(largest, w.H[a * ld + a]);
        // A shift of the step, not of the solution: it keeps rank-deficient rows solvable at ridge 0.
        const T jitter = 8 * std::numeric_limits<T>::epsilon() * largest;
        if (!cholesky(w.H.get(), jitter, w.U.get(), w.inv.get(), ld)) return false;
        for (int a = 0; a < ld; ++a) w.rhs[a] = -w.grad[a];
        cholesky_solve(w.U.get(), w.inv.get(), w.rhs.get(), w.d.get(), ld);
        for (int a = 0; a < ld; ++a) w.hd[a] = -w.grad[a];
        return true;
    }

    // A few conjugate gradient steps on H d = -grad from d = 0.
    bool cg_direction() {
        for (int a = 0; a < ld; ++a) {
            w.d[a] = 0;
            w.hd[a] = 0;
            w.cg_r[a] = w.cg_v[a] = -w.grad[a];
        }
        double rr = dot64(w.cg_r.get(), w.cg_r.get(), ld);
        const double enough = rr * 1e-20;
        for (int step = 0; step < problem.cg_steps && rr > enough; ++step) {
            multiply(w.cg_v.get(), w.rhs.get());
            const double curvature = dot64(w.cg_v.get(), w.rhs.get(), ld);
            if (!(curvature > 0)) break;
            const T t = static_cast<T>(rr / curvature);
            axpy(t, w.cg_v.get(), w.d.get(), ld);
            axpy(t, w.rhs.get(), w.hd.get(), ld);
            axpy(-t, w.rhs.get(), w.cg_r.get(), ld);
            const double next = dot64(w.cg_r.get(), w.cg_r.get(), ld);
            const T beta = static_cast<T>(next / rr);
            for (int a = 0; a < ld; ++a) w.cg_v[a] = w.cg_r[a] + beta * w.cg_v[a];
            rr = next;
        }
        return true;
    }

    // F along the line p + t d: quadratic but for the open cells, whose loss is kept apart.
    struct Line {
        double slope, quadratic, open_value;
    };
    struct Trial {
        double t, change, derivative, open_value;
    };
    Trial try_step(const Line& line, double t) {
        double derivative;
        const double open_value = open_cells(t, derivative);
        return {t, line.slope * t + 0.5 * line.quadratic * t * t + (open_value - line.open_value),
                line.slope + line.quadratic * t + derivative, open_value};
    }

    // A step with F(p + t d) < F(p): the full one if it lowers F well, else near the minimum along d.
    // F is convex along the line, so every t with a derivative <= 0 is a descent. t = 0 if none is found.
    Trial line_search(const Line& line, double initial_slope) {
        const Trial full = try_step(line, 1.0);
        if (full.change <= 0.25 * initial_slope || (full.derivative <= 0 && full.change <= 0)) return full;
        Trial low{0, 0, initial_slope, line.open_value}, high = full;
        for (int step = 0; step < 40 && (low.t == 0 || low.derivative < 0.3 * initial_slope); ++step) {
            double t = low.t - low.derivative * (high.t - low.t) / (high.derivative - low.derivative);
            if (!(t > low.t && t < high.t) || step % 3 == 2) t = 0.5 * (low.t + high.t);
            const Trial trial = try_step(line, t);
            (trial.derivative <= 0 ? low : high) = trial;
        }
        return low.change < 0 ? try_step(line, low.t) : Trial{0, 0, initial_slope, line.open_value};
    }

    // What a step of one coordinate at a time would gain: sum of grad_a^2 / (2 H_aa).
    double jacobi_gain() const {
        double gain = 0;
        for (int a = 0; a < ld; ++a)
            if (w.H[a * ld + a] > 0) gain += 0.5 * static_cast<double>(w.grad[a]) * w.grad[a] / w.H[a * ld + a];
        return gain;
    }

    // One Newton step from p; returns by how much F fell, or a negative number if there was nothing to gain.
    double step(T* p, double& open_value, double objective) {
        std::memcpy(w.grad.get(), w.base.get(), sizeof(T) * ld);
        for (int64_t c = 0; c < row.n_open; ++c)
            if (w.slope[c] != 0) axpy(static_cast<T>(w.slope[c]), factor(row.open_idx[c]), w.grad.get(), ld);
        if (dense()) {
            update_curvature();
            if (jacobi_gain() <= problem.inner_tol * objective) return -1;
        }
        if (!(dense() ? newton_direction() : cg_direction())) return -1;

        const double slope = dot64(w.grad.get(), w.d.get(), ld);
        if (!(slope < -problem.inner_tol * objective) || std::isinf(slope)) return -1;
        Line line{dot64(w.base.get(), w.d.get(), ld), dot64(w.hd.get(), w.d.get(), ld), open_value};
        for (int64_t c = 0; c < row.n_open; ++c) {
            w.delta[c] = dot(factor(row.open_idx[c]), w.d.get(), ld);
            line.quadratic -= w.curvature[c] * w.delta[c] * w.delta[c];
        }
        line.quadratic = larger(line.quadratic, 0.0);
        const Trial best = line_search(line, slope);
        if (best.t == 0) return -1;
        // base moves by t (H d - sum over open cells of curvature (q d) q)
        axpy(static_cast<T>(best.t), w.d.get(), p, ld);
        axpy(static_cast<T>(best.t), w.hd.get(), w.base.get(), ld);
        for (int64_t c = 0; c < row.n_open; ++c) {
            const double moved = best.t * w.curvature[c] * w.delta[c];
            if (moved != 0) axpy(static_cast<T>(-moved), factor(row.open_idx[c]), w.base.get(), ld);
            w.x[c] += best.t * w.delta[c];
        }
        accept_open_cells();
        open_value = best.open_value;
        return -best.change;
    }

    double ridge_value(const T* p) const {
        double value = 0;
        for (int a = 0; a < ld; ++a) value += 0.5 * static_cast<double>(problem.ridge[a]) * p[a] * p[a];
        return value;
    }

    // Lower F from p in place; returns the loss of the row's cells at the new p (without the ridge).
    double solve(T* p) {
        w.base.clear();
        if (dense()) w.H.clear();
        w.reserve_open(row.n_open);
        for (int64_t c = 0; c < row.n_open; ++c) {
            const int32_t j = row.open_idx[c];
            w.x[c] = static_cast<double>(dot(factor(j), p, ld)) + problem.offset[j];
            w.counted[c] = w.delta[c] = 0;
        }
        double objective = exact_cells(p) + ridge_value(p);
        for (int a = 0; a < ld; ++a) {
            w.base[a] += problem.ridge[a] * p[a];
            if (dense()) w.H[a * ld + a] += problem.ridge[a];
        }
        double unused;
        double open_value = open_cells(0, unused);
        accept_open_cells();
        objective += open_value;
        for (int inner = 0; inner < problem.inner_steps; ++inner) {
            const double fall = step(p, open_value, objective);
            if (fall < 0) break;
            objective -= fall;
            if (row.n_open == 0 && dense()) break;  // solved
        }
        return objective - ridge_value(p);
    }
};

template <class T>
struct SweepImpl {
    static int padded(int k) { return (k + kAlign<T> - 1) / kAlign<T> * kAlign<T>; }

    // own is (n_rows, k) row-major; each row is copied to padded scratch, solved and copied back.
    static double rows(const Problem<T>& problem, const CellsView<T>& cells, T* own, int k, int64_t begin, int64_t end) {
        Workspace<T> w(problem.ld);
        Buffer<T> p(problem.ld);
        double total = 0;
        for (int64_t i = begin; i < end; ++i) {
            const RowCells<T> row = row_cells(cells, i);
            if (row.n_exact + row.n_open == 0) {  // nothing is known: the least norm
                std::memset(own + i * k, 0, sizeof(T) * k);
                continue;
            }
            std::memcpy(p.get(), own + i * k, sizeof(T) * k);
            if (problem.scale > 0) {
                const Tobit loss{problem.scale};
                total += RowSolver<T, Tobit>{problem, row, loss, w}.solve(p.get());
            } else {
                const Hinge loss{};
                total += RowSolver<T, Hinge>{problem, row, loss, w}.solve(p.get());
            }
            std::memcpy(own + i * k, p.get(), sizeof(T) * k);
        }
        return total;
    }

    // Predictions, gradients and loss of the cells of rows [begin, end); own is unpadded, other padded.
    static double residuals(const Problem<T>& problem, const CellsView<T>& cells, const T* own, int k,
                            int64_t begin, int64_t end, T* exact_out, T* open_out) {
        Buffer<T> p(problem.ld);
        const Tobit tobit{problem.scale};
        const Hinge hinge{};
        double total = 0;
        for (int64_t i = begin; i < end; ++i) {
            const RowCells<T> row = row_cells(cells, i);
            std::memcpy(p.get(), own + i * k, sizeof(T) * k);
            for (int64_t c = 0; c < row.n_exact; ++c) {
                const int32_t j = row.exact_idx[c];
                const T* q = problem.other + static_cast<int64_t>(j) * problem.ld;
                const T r = dot(q, p.get(), problem.ld) + problem.offset[j] - row.value[c];
                total += 0.5 * static_cast<double>(r) * r;
                exact_out[row.exact_begin + c] = r;
            }
            for (int64_t c = 0; c < row.n_open; ++c) {
                const int32_t j = row.open_idx[c];
                const T* q = problem.other + static_cast<int64_t>(j) * problem.ld;
                const double x = static_cast<double>(dot(q, p.get(), problem.ld)) + problem.offset[j];
                const CellLoss cell = problem.scale > 0 ? tobit(x, row.lower[c], row.upper[c])
                                                        : hinge(x, row.lower[c], row.upper[c]);
                total += cell.value;
                open_out[row.open_begin + c] = static_cast<T>(cell.gradient);
            }
        }
        return total;
    }
};

}  // namespace
