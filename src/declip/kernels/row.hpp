// One row of a half-sweep: with the other side's factors q_j fixed, lower the convex function of p
//
//   F(p) = sum over exact cells of (q_j p + o_j - m_j)^2 / 2 + sum over censored cells of loss(q_j p + o_j)
//          + sum over a of ridge_a (p_a - centre_a)^2 / 2
//
// (each cell times its weight, where there are weights; the centre is 0 unless one is given for each row)
//
// by Newton steps d with an exact line search, so that F never rises. Everything is kept as a step from
// the present p: rounding errors then scale with the step, not with the data.
#pragma once

#include <cstdint>
#include <limits>

#include "batch.hpp"
#include "kernels.hpp"
#include "loss.hpp"
#include "vec.hpp"

namespace {

constexpr int kGather = 64;             // cells gathered at a time: 64 x 40 floats are 10 kB
constexpr int64_t kKeptBytes = 1 << 21;  // factors of a row's cells kept for conjugate gradients: three passes over them cost less than H
constexpr int64_t kOpenBytes = 1 << 15;  // factors of its censored cells kept for the next Newton step

template <class T>
inline RowCells<T> row_cells(const CellsView<T>& v, int64_t i) {
    const int64_t e = v.exact_ptr[i], o = v.censored_ptr[i];
    return {e, v.exact_ptr[i + 1] - e, o, v.censored_ptr[i + 1] - o, v.exact_idx + e, v.value + e,
            v.censored_idx + o, v.lower + o, v.upper + o, v.weighted ? v.exact_weight + e : nullptr,
            v.weighted ? v.censored_weight + o : nullptr,
            v.censored_scale != nullptr ? v.censored_scale + o : nullptr};
}

template <class T>
inline T offset_of(const Problem<T>& problem, int32_t j) {
    return problem.offset != nullptr ? problem.offset[j] : problem.shift;
}

// Numbers x .. x + kWide in double precision.
constexpr int kWide = kLanes<double>;
template <class T>
inline Vec<double> widened64(const T* x) {
    typedef T Narrow __attribute__((vector_size(kWide * sizeof(T))));
    Narrow v;
    std::memcpy(&v, x, sizeof(v));
    return __builtin_convertvector(v, Vec<double>);
}
// Sum over a < ld of term(a), kWide terms at a time, in two sums that do not wait for each other; ld is a multiple of kAlign.
template <class F>
inline double sum64(int ld, F term) {
    Vec<double> s = {}, t = {};
    int a = 0;
    for (; a + 2 * kWide <= ld; a += 2 * kWide) {
        s += term(a);
        t += term(a + kWide);
    }
    if (a < ld) s += term(a);
    return total<double>(s + t);
}
template <class T>
inline double dot64(const T* x, const T* y, int ld) {
    return sum64(ld, [&](int a) { return widened64(x + a) * widened64(y + a); });
}

// Scratch that the rows of one thread share.
template <class T>
struct Scratch {
    Buffer<T> gathered, picked, weighted, weight, hd, residual, direction, inverse, kept, gram_of_all;
    Buffer<int32_t> rest;
    Buffer<char> is_exact;
    explicit Scratch(const Problem<T>& problem)
        : gathered(kGather * problem.ld), picked(kGather * problem.ld), weighted(kGather * problem.ld), weight(kGather),
          hd(problem.ld), residual(problem.ld), direction(problem.ld), inverse(problem.ld),
          kept(problem.cg_steps > 0 ? kKeptBytes / static_cast<int64_t>(sizeof(T)) : 0) {
        if (!problem.nearly_full) return;
        gram_of_all.resize(static_cast<long>(problem.ld) * problem.ld);
        rest.resize(problem.n_other);
        is_exact.resize(problem.n_other);
    }
};

// A row that is being solved. Its buffers serve one row after the other.
template <class T, class Loss>
class RowSolver {
    const Problem<T>* problem;
    const Loss* loss;
    Scratch<T>* scratch;
    int ld;
    RowCells<T> row;
    const T* ridge;      // of this row
    Buffer<T> own_ridge, centre;
    bool dense;          // H is formed and factored; else conjugate gradients
    bool complement;     // and most cells are exact
    bool free_at_one = false, free;  // a factor has no ridge: if that of the row is 1, and as it is
    int steps_left;
    double objective, censored_value;
    double drift;      // what rounding may have added to base, step by step
    double stiffest;   // largest entry that H has had: rounding of its updates scales with it
    Buffer<T> kept_own;  // factors of the censored cells, one after the other, until the next step
    const T *kept_exact, *kept_censored;
    Buffer<double> x, delta, slope, curvature, counted, next_slope, next_curvature;  // of the censored cells

    // f(start, n, X) on blocks of cells, whose factors are the n rows of X.
    template <class F>
    void over_blocks(const int32_t* idx, int64_t n_cells, const T* at_hand, F f) {
        for (int64_t start = 0; start < n_cells; start += kGather) {
            const int n = n_cells - start < kGather ? static_cast<int>(n_cells - start) : kGather;
            const T* X = at_hand + start * ld;
            if (at_hand == nullptr) {
                gather(idx + start, n, scratch->gathered.get());
                X = scratch->gathered.get();
            }
            f(start, n, X);
        }
    }
    template <class F>
    void over_exact(F f) {
        over_blocks(row.exact_idx, row.n_exact, kept_exact, f);
    }
    template <class F>
    void over_censored(F f) {
        over_blocks(row.censored_idx, row.n_censored, kept_censored, f);
    }
    const char* factor(int32_t j) const {  // the first byte of q_j, as it is stored
        const int64_t at = static_cast<int64_t>(j) * ld;
        if (problem->half != nullptr) return reinterpret_cast<const char*>(problem->half + at);
        return reinterpret_cast<const char*>(problem->other + at);
    }
    void gather(const int32_t* idx, int64_t n, T* out) const {
        if (problem->half != nullptr) return gather_as<uint16_t>(idx, n, out);
        gather_as<T>(idx, n, out);
    }
    template <class Stored>
    void gather_as(const int32_t* idx, int64_t n, T* out) const {
        for (int64_t c = 0; c < n; ++c) {
            const Stored* const q = reinterpret_cast<const Stored*>(factor(idx[c]));
            for (int a = 0; a < ld; a += kLanes<T>) store(out + c * ld + a, wide<T>(q + a));
        }
    }

    // Keep what will be read again: censored cells always, exact ones by conjugate gradients. Long rows have no
    // room for that; their H costs less than gathering their cells again and again.
    void keep_factors() {
        const int64_t bytes = ld * static_cast<int64_t>(sizeof(T));
        dense = problem->cg_steps == 0 || (row.n_exact + row.n_censored) * bytes > kKeptBytes;
        const int64_t n_exact = dense ? 0 : row.n_exact, n_censored = !dense || row.n_censored * bytes <= kOpenBytes ? row.n_censored : 0;
        Buffer<T>& kept = dense ? kept_own : scratch->kept;  // by conjugate gradients one row is solved at a time
        if (kept.size() < n_censored * ld) kept.resize(n_censored * ld);
        gather(row.exact_idx, n_exact, kept.get());
        gather(row.censored_idx, n_censored, kept.get() + n_exact * ld);
        kept_exact = n_exact > 0 ? kept.get() : nullptr;
        kept_censored = n_censored > 0 ? kept.get() + n_exact * ld : nullptr;
    }

    // Fetches the factors of the exact cells from `next` on into the cache, a few at each call.
    struct Ahead {
        const RowSolver& solver;
        int64_t next, few;
        void operator()() {
            const int bytes = solver.ld * static_cast<int>(sizeof(T)) / (solver.problem->half != nullptr ? 2 : 1);
            for (int64_t c = 0; c < few && next < solver.row.n_exact; ++c, ++next) {
                const char* const q = solver.factor(solver.row.exact_idx[next]);
                for (int b = 0; b < bytes; b += 64) __builtin_prefetch(q + b);
            }
        }
    };

    // base = sum (x - m) q, and H += sum q q^T unless it is known from its complement, over the exact cells; returns
    // their loss.
    double exact_cells() {
        double value = 0;
        T* const r = scratch->weight.get();
        over_exact([&](int64_t start, int n, const T* X) {
            dots(X, n, ld, p.get(), r);
            for (int c = 0; c < n; ++c) r[c] += offset_of(*problem, row.exact_idx[start + c]) - row.value[start + c];
            for (int c = n; c % 4 != 0; ++c) r[c] = 0;
            if constexpr (Loss::weighted) {
                value += weighted_cells(start, n, X, r);
                return;
            }
            value += 0.5 * dot64(r, r, (n + 3) / 4 * 4);
            combine(X, n, ld, r, base.get());
            // The cells of the next block, spread over the strips of this one.
            if (dense && !complement) gram(X, X, n, ld, H.get(), Ahead{*this, start + n, kGather * kAlign<T> / ld + 1});
        });
        return value;
    }

    // The same for exact cells with weights w: base += w r q, H += w q q^T; returns sum w r^2 / 2.
    double weighted_cells(int64_t start, int n, const T* X, T* r) {
        double value = 0;
        T* const WX = scratch->weighted.get();
        for (int c = 0; c < n; ++c) {
            const T weight = row.exact_weight[start + c];
            value += 0.5 * static_cast<double>(weight) * r[c] * r[c];
            r[c] *= weight;
            if (dense)
                for (int a = 0; a < ld; ++a) WX[c * ld + a] = weight * X[c * ld + a];
        }
        combine(X, n, ld, r, base.get());
        if (dense) gram(WX, X, n, ld, H.get(), [] {});
        return value;
    }

    // H = sum over all q q^T - sum over those without an exact cell.
    void start_from_complement() {
        std::memcpy(H.get(), scratch->gram_of_all.get(), sizeof(T) * ld * ld);
        char* const is_exact = scratch->is_exact.get();
        int32_t* const rest = scratch->rest.get();
        for (int64_t c = 0; c < row.n_exact; ++c) is_exact[row.exact_idx[c]] = 1;
        int64_t n_rest = 0;
        for (int64_t j = 0; j < problem->n_other; ++j)
            if (!is_exact[j]) rest[n_rest++] = static_cast<int32_t>(j);
        for (int64_t c = 0; c < row.n_exact; ++c) is_exact[row.exact_idx[c]] = 0;
        T* const minus = scratch->weighted.get();
        over_blocks(rest, n_rest, nullptr, [&](int64_t, int n, const T* X) {
            for (int64_t a = 0; a < static_cast<int64_t>(n) * ld; ++a) minus[a] = -X[a];
            gram(minus, X, n, ld, H.get(), [] {});
        });
    }

    // out[c] = q_c v over the censored cells.
    void censored_dots(const T* v, double* out) {
        T* const s = scratch->weight.get();
        over_censored([&](int64_t start, int n, const T* X) {
            dots(X, n, ld, v, s);
            for (int c = 0; c < n; ++c) out[start + c] = s[c];
        });
    }
    // out += sum over the censored cells of weight(c) q_c.
    template <class F>
    void add_censored(F weight, T* out) {
        T* const s = scratch->weight.get();
        over_censored([&](int64_t start, int n, const T* X) {
            for (int c = 0; c < n; ++c) s[c] = static_cast<T>(weight(start + c));
            combine(X, n, ld, s, out);
        });
    }

    // The censored cells at p + t d: their loss and its derivative in t. Slopes and curvatures are left in next_*.
    double censored_cells(double t, double& derivative) {
        double value = 0;
        derivative = 0;
        for (int64_t c = 0; c < row.n_censored; ++c) {
            const CellLoss cell = loss_of_cell(*loss, row, c, x[c] + t * delta[c]);
            value += cell.value;
            derivative += cell.gradient * delta[c];
            next_slope[c] = cell.gradient;
            next_curvature[c] = cell.curvature;
        }
        return value;
    }
    void accept_censored_cells() {
        slope.swap(next_slope);
        curvature.swap(next_curvature);
    }

    // H += sum over censored cells of (curvature - counted) q q^T, where it changed.
    void update_curvature() {
        T *const Y = scratch->picked.get(), *const WY = scratch->weighted.get();
        over_censored([&](int64_t start, int n, const T* X) {
            int m = 0;
            for (int c = 0; c < n; ++c) {
                const T change = static_cast<T>(curvature[start + c] - counted[start + c]);
                if (change == 0) continue;
                counted[start + c] = curvature[start + c];
                for (int a = 0; a < ld; ++a) {
                    Y[m * ld + a] = X[c * ld + a];
                    WY[m * ld + a] = change * X[c * ld + a];
                }
                ++m;
            }
            gram(WY, Y, m, ld, H.get(), [] {});
        });
    }

    // out = H v without H: ridge v + sum over cells of curvature (q v) q.
    void multiply(const T* v, T* out) {
        T* const s = scratch->weight.get();
        for (int a = 0; a < ld; ++a) out[a] = ridge[a] * v[a];
        over_exact([&](int64_t start, int n, const T* X) {
            dots(X, n, ld, v, s);
            if constexpr (Loss::weighted)
                for (int c = 0; c < n; ++c) s[c] *= row.exact_weight[start + c];
            combine(X, n, ld, s, out);
        });
        over_censored([&](int64_t start, int n, const T* X) {
            dots(X, n, ld, v, s);
            for (int c = 0; c < n; ++c) s[c] *= static_cast<T>(curvature[start + c]);
            combine(X, n, ld, s, out);
        });
    }

    // F along the line p + t d: quadratic but for the censored cells, whose loss is kept apart.
    struct Line {
        double slope, quadratic, censored_value;
    };
    struct Trial {
        double t, change, derivative, censored_value;
    };
    Trial try_step(const Line& line, double t) {
        double derivative;
        const double value = censored_cells(t, derivative);
        return {t, line.slope * t + 0.5 * line.quadratic * t * t + (value - line.censored_value),
                line.slope + line.quadratic * t + derivative, value};
    }

    // A step with F(p + t d) < F(p): the full one if it lowers F well, else near the minimum along d.
    // F is convex along the line, so every t with a derivative <= 0 is a descent. t = 0 if none is found.
    Trial line_search(const Line& line, double initial_slope) {
        const Trial full = try_step(line, 1.0);
        if (full.change <= 0.25 * initial_slope || (full.derivative <= 0 && full.change <= 0)) return full;
        Trial low{0, 0, initial_slope, line.censored_value}, high = full;
        for (int step = 0; step < 40 && (low.t == 0 || low.derivative < 0.3 * initial_slope); ++step) {
            double t = low.t - low.derivative * (high.t - low.t) / (high.derivative - low.derivative);
            if (!(t > low.t && t < high.t) || step % 3 == 2) t = 0.5 * (low.t + high.t);
            const Trial trial = try_step(line, t);
            (trial.derivative <= 0 ? low : high) = trial;
        }
        return low.change < 0 ? try_step(line, low.t) : Trial{0, 0, initial_slope, line.censored_value};
    }

    // What a step of one coordinate at a time would gain: sum of grad_a^2 / (2 H_aa).
    double jacobi_gain() const {
        double gain = 0;
        for (int a = 0; a < problem->k; ++a) {
            const double h = H[a * ld + a];
            gain += h > 0 ? 0.5 * static_cast<double>(grad[a]) * grad[a] / h : 0.0;
        }
        return gain;
    }

    double ridge_value() const {
        return 0.5 * sum64(ld, [&](int a) {
            const Vec<double> away = widened64(p.get() + a) - widened64(centre.get() + a);
            return widened64(ridge + a) * away * away;
        });
    }

    // The ridge of row i, and what it draws to.
    void begin_ridge(int64_t i) {
        if (problem->centre != nullptr) std::memcpy(centre.get(), problem->centre + i * problem->k, sizeof(T) * problem->k);
        if (problem->row_ridge == nullptr) return;
        free = free_at_one || problem->row_ridge[i] == 0;
        for (int a = 0; a < problem->k; ++a) own_ridge[a] = problem->row_ridge[i] * problem->ridge[a];
        ridge = own_ridge.get();
    }

  public:
    Buffer<T> p, H, base, grad, d;

    RowSolver(const Problem<T>& problem, const Loss& loss, Scratch<T>& scratch)
        : problem(&problem), loss(&loss), scratch(&scratch), ld(problem.ld), ridge(problem.ridge), own_ridge(ld), centre(ld),
          p(ld), H(static_cast<long>(ld) * ld), base(ld), grad(ld), d(ld) {
        for (int a = problem.k; a < ld; ++a) own_ridge[a] = 1;
        for (int a = 0; a < problem.k; ++a) free_at_one = free_at_one || ridge[a] == 0;
        free = free_at_one;
    }

    bool factors_H() const { return dense; }

    // sum over all q q^T, which the rows of a nearly full table begin with.
    void count_all() {
        for (int64_t j = 0; j < problem->n_other; ++j) scratch->rest[j] = static_cast<int32_t>(j);
        over_blocks(scratch->rest.get(), problem->n_other, nullptr, [&](int64_t, int n, const T* X) {
            gram(X, X, n, ld, scratch->gram_of_all.get(), [] {});
        });
    }

    void begin(int64_t i, const RowCells<T>& cells, const T* start, int k) {
        row = cells;
        begin_ridge(i);
        steps_left = problem->inner_steps;
        drift = stiffest = 0;
        std::memcpy(p.get(), start, sizeof(T) * k);
        keep_factors();
        base.clear();
        complement = dense && problem->nearly_full && 2 * row.n_exact > problem->n_other;
        if (complement) start_from_complement();
        else if (dense) H.clear();
        if (x.size() < row.n_censored) {
            Buffer<double>* const all[] = {&x, &delta, &slope, &curvature, &counted, &next_slope, &next_curvature};
            for (Buffer<double>* v : all) v->resize(row.n_censored);
        }
        censored_dots(p.get(), x.get());
        for (int64_t c = 0; c < row.n_censored; ++c) {
            x[c] += offset_of(*problem, row.censored_idx[c]);
            counted[c] = delta[c] = 0;
        }
        objective = exact_cells() + ridge_value();
        for (int a = 0; a < ld; ++a) {
            base[a] += ridge[a] * (p[a] - centre[a]);
            if (dense) H[a * ld + a] += ridge[a];
        }
        double unused;
        censored_value = censored_cells(0, unused);
        accept_censored_cells();
        objective += censored_value;
    }

    // The gradient, and H where it changed, at p; false if there is nothing more to gain.
    bool prepare() {
        if (steps_left-- <= 0) return false;
        std::memcpy(grad.get(), base.get(), sizeof(T) * ld);
        add_censored([&](int64_t c) { return slope[c]; }, grad.get());
        if (!dense) return true;
        update_curvature();
        return jacobi_gain() > problem->inner_tol * objective;
    }

    // A shift of the step, not of the solution: it keeps factors that no cell sees solvable at ridge 0.
    T jitter() {
        T largest = 0;
        for (int a = 0; a < problem->k; ++a) largest = larger(largest, H[a * ld + a]);
        stiffest = larger(stiffest, static_cast<double>(largest));
        constexpr T share = 8 * std::numeric_limits<T>::epsilon();
        return share * share * largest;
    }

    // With H x = grad: d = -x, H d = -grad.
    void take_solution() {
        for (int a = 0; a < ld; ++a) {
            d[a] = -d[a];
            scratch->hd[a] = -grad[a];
        }
    }

    // The same for conjugate gradients, of the trace of H: without a ridge, rounding would run off along the
    // directions that no cell sees.
    T free_shift() {
        if (!free) return 0;
        double trace = 0;
        over_exact([&](int64_t start, int n, const T* X) {
            for (int c = 0; c < n; ++c) {
                const double weight = Loss::weighted ? row.exact_weight[start + c] : T(1);
                trace += weight * dot64(X + c * ld, X + c * ld, ld);
            }
        });
        over_censored([&](int64_t start, int n, const T* X) {
            for (int c = 0; c < n; ++c) trace += curvature[start + c] * dot64(X + c * ld, X + c * ld, ld);
        });
        return static_cast<T>(8 * std::numeric_limits<T>::epsilon() * trace);
    }

    // 1 / H_aa: once the factors are balanced, H is nearly diagonal.
    void invert_diagonal(T shift, T* inverse) {
        for (int a = 0; a < ld; ++a) inverse[a] = ridge[a] + shift;
        over_exact([&](int64_t start, int n, const T* X) {
            add_squares(X, n, ld, Loss::weighted ? row.exact_weight + start : nullptr, inverse);
        });
        over_censored([&](int64_t start, int n, const T* X) {
            T* const s = scratch->weight.get();
            for (int c = 0; c < n; ++c) s[c] = static_cast<T>(curvature[start + c]);
            add_squares(X, n, ld, s, inverse);
        });
        for (int a = 0; a < ld; ++a) inverse[a] = inverse[a] > 0 ? 1 / inverse[a] : T(0);
    }

    // A few conjugate gradient steps on (H + shift) d = -grad from d = 0, preconditioned by the diagonal of H.
    void conjugate_gradients() {
        T *const r = scratch->residual.get(), *const v = scratch->direction.get(), *const Hv = scratch->picked.get();
        T* const inverse = scratch->inverse.get();
        const T shift = free_shift();
        invert_diagonal(shift, inverse);
        d.clear();
        scratch->hd.clear();
        for (int a = 0; a < ld; ++a) {
            r[a] = -grad[a];
            v[a] = inverse[a] * r[a];
        }
        double rr = dot64(r, v, ld);
        const double enough = rr * 1e-20;
        for (int step = 0; step < problem->cg_steps && rr > enough; ++step) {
            multiply(v, Hv);
            const double curved = dot64(v, Hv, ld) + (shift > 0 ? shift * dot64(v, v, ld) : 0.0);
            if (!(curved > 0)) break;
            const T t = static_cast<T>(rr / curved);
            axpy(t, v, d.get(), ld);
            axpy(t, Hv, scratch->hd.get(), ld);
            axpy(-t, Hv, r, ld);
            if (shift > 0) axpy(-t * shift, v, r, ld);
            const double next = sum64(ld, [&](int a) { return widened64(r + a) * widened64(r + a) * widened64(inverse + a); });
            const T beta = static_cast<T>(next / rr);
            for (int a = 0; a < ld; ++a) v[a] = inverse[a] * r[a] + beta * v[a];
            rr = next;
        }
    }

    // Move p along d, H d being known. If the row is solved by that, or cannot be, no steps are left.
    void advance() {
        if (!step_along()) steps_left = 0;
        if (row.n_censored == 0 && dense) steps_left = 0;
    }

    double loss_without_ridge() const { return objective - ridge_value(); }

  private:
    // What rounding adds to base by a step d: H d, less its part of censored cells, loses digits where they cancel.
    double rounding_of(double length) const {
        const double moved = std::sqrt(dot64(scratch->hd.get(), scratch->hd.get(), ld));
        return 4 * std::numeric_limits<T>::epsilon() * larger(moved, stiffest * length);
    }

    // A slope that the drift of base alone may have made is none: where no cell and no ridge resists, it would run off.
    bool step_along() {
        const double initial = dot64(grad.get(), d.get(), ld), length = std::sqrt(dot64(d.get(), d.get(), ld));
        if (!(initial < -larger(problem->inner_tol * objective, drift * length)) || std::isinf(initial)) return false;
        Line line{dot64(base.get(), d.get(), ld), dot64(scratch->hd.get(), d.get(), ld), censored_value};
        censored_dots(d.get(), delta.get());
        for (int64_t c = 0; c < row.n_censored; ++c) line.quadratic -= curvature[c] * delta[c] * delta[c];
        line.quadratic = larger(line.quadratic, 0.0);
        const Trial best = line_search(line, initial);
        if (best.t == 0) return false;
        // base moves by t (H d - sum over censored cells of curvature (q d) q)
        axpy(static_cast<T>(best.t), d.get(), p.get(), ld);
        axpy(static_cast<T>(best.t), scratch->hd.get(), base.get(), ld);
        add_censored([&](int64_t c) { return -best.t * curvature[c] * delta[c]; }, base.get());
        for (int64_t c = 0; c < row.n_censored; ++c) x[c] += best.t * delta[c];
        accept_censored_cells();
        drift += best.t * rounding_of(length);
        censored_value = best.censored_value;
        objective += best.change;
        return true;
    }
};

}  // namespace
