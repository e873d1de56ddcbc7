// A Newton step of every row in parts: the cells of a row may lie in several blocks. With the other side's
// factors q_j fixed, each block gives what it has of
//
//   H = sum over cells of curvature q q^T,   g = sum over cells of gradient q
//
// which are added up and solved once; then each block tells what the step does to its censored cells.
#pragma once

#include "row.hpp"

namespace {

// Blocks of cells of one row, with their factors gathered.
template <class T>
class Gathered {
    const Problem<T>& problem;
    Buffer<T> factors;

  public:
    explicit Gathered(const Problem<T>& problem) : problem(problem), factors(static_cast<long>(kGather) * problem.ld) {}

    // f(start, n, X): cells start .. start + n, whose factors are the n rows of X.
    template <class F>
    void over(const int32_t* idx, int64_t n_cells, F f) {
        const int ld = problem.ld;
        for (int64_t start = 0; start < n_cells; start += kGather) {
            const int n = n_cells - start < kGather ? static_cast<int>(n_cells - start) : kGather;
            for (int c = 0; c < n; ++c)
                std::memcpy(factors.get() + static_cast<long>(c) * ld,
                            problem.other + static_cast<int64_t>(idx[start + c]) * ld, sizeof(T) * ld);
            f(start, n, factors.get());
        }
    }
};

template <class T, class Loss>
class NewtonSums {
    const Problem<T>& problem;
    const Loss loss;
    const int ld;
    Gathered<T> gathered;
    Buffer<T> p, H, g, dotted, slope, bent;

    void exact_cells(const RowCells<T>& row) {
        gathered.over(row.exact_idx, row.n_exact, [&](int64_t start, int n, const T* X) {
            dots(X, n, ld, p.get(), slope.get());
            for (int c = 0; c < n; ++c)
                slope[c] += problem.offset[row.exact_idx[start + c]] - row.value[start + c];
            combine(X, n, ld, slope.get(), g.get());
            gram(X, X, n, ld, H.get(), [] {});
        });
    }
    void censored_cells(const RowCells<T>& row) {
        gathered.over(row.censored_idx, row.n_censored, [&](int64_t start, int n, const T* X) {
            dots(X, n, ld, p.get(), dotted.get());
            for (int c = 0; c < n; ++c) {
                const double x = static_cast<double>(dotted[c]) + problem.offset[row.censored_idx[start + c]];
                const CellLoss cell = loss(x, row.lower[start + c], row.upper[start + c]);
                slope[c] = static_cast<T>(cell.gradient);
                const T curvature = static_cast<T>(cell.curvature);
                for (int a = 0; a < ld; ++a) bent[static_cast<long>(c) * ld + a] = curvature * X[static_cast<long>(c) * ld + a];
            }
            combine(X, n, ld, slope.get(), g.get());
            gram(bent.get(), X, n, ld, H.get(), [] {});
        });
    }

  public:
    NewtonSums(const Problem<T>& problem, const Loss& loss)
        : problem(problem), loss(loss), ld(problem.ld), gathered(problem), p(ld), H(static_cast<long>(ld) * ld), g(ld),
          dotted(kGather), slope(kGather), bent(static_cast<long>(kGather) * ld) {}

    // out: the upper triangle of H, row by row, then g.
    void row(const RowCells<T>& cells, const T* own, T* out) {
        const int k = problem.k;
        std::memcpy(p.get(), own, sizeof(T) * k);
        H.clear();
        g.clear();
        exact_cells(cells);
        censored_cells(cells);
        for (int a = 0; a < k; out += k - a, ++a) std::memcpy(out, H.get() + static_cast<long>(a) * ld + a, sizeof(T) * (k - a));
        std::memcpy(out, g.get(), sizeof(T) * k);
    }
};

// What a step d does to the censored cells of a row, with x' = q d the change of a cell:
// sum gradient x', sum curvature x'^2, sum x'^2, and the change of the loss at each of some lengths t of the step.
template <class T, class Loss>
class StepTrial {
    const Problem<T>& problem;
    const Loss loss;
    Gathered<T> gathered;
    Buffer<T> p, d, dotted, moved;

  public:
    StepTrial(const Problem<T>& problem, const Loss& loss)
        : problem(problem), loss(loss), gathered(problem), p(problem.ld), d(problem.ld), dotted(kGather), moved(kGather) {}

    void row(const RowCells<T>& row, const T* own, const T* step, const double* lengths, int n_lengths, double* out) {
        std::memcpy(p.get(), own, sizeof(T) * problem.k);
        std::memcpy(d.get(), step, sizeof(T) * problem.k);
        std::memset(out, 0, sizeof(double) * (3 + n_lengths));
        gathered.over(row.censored_idx, row.n_censored, [&](int64_t start, int n, const T* X) {
            dots(X, n, problem.ld, p.get(), dotted.get());
            dots(X, n, problem.ld, d.get(), moved.get());
            for (int c = 0; c < n; ++c) {
                const double x = static_cast<double>(dotted[c]) + problem.offset[row.censored_idx[start + c]];
                const double delta = moved[c], lower = row.lower[start + c], upper = row.upper[start + c];
                const CellLoss cell = loss(x, lower, upper);
                out[0] += cell.gradient * delta;
                out[1] += cell.curvature * delta * delta;
                out[2] += delta * delta;
                for (int t = 0; t < n_lengths; ++t)
                    out[3 + t] += loss(x + lengths[t] * delta, lower, upper).value - cell.value;
            }
        });
    }
};

// The steps d = -(H + R)^-1 (g + R p), with the ridge R, of several rows at once.
template <class T>
class NewtonSolve {
    static constexpr int L = kLanes<T>;
    const int k, ld;
    const T* ridge;
    BatchedCholesky<T> cholesky;
    Buffer<T> H, b, d;
    bool known[L];

    void unpack(const T* sums, const T* own, int l) {
        T *const A = H.get() + static_cast<long>(l) * ld * ld, *const rhs = b.get() + l * ld;
        known[l] = false;
        for (int a = 0; a < k; ++a)
            for (int c = a; c < k; ++c) {
                A[a * ld + c] = *sums++;
                known[l] |= A[a * ld + c] != 0;
            }
        for (int a = 0; a < k; ++a) {
            A[a * ld + a] += ridge[a];
            rhs[a] = sums[a] + ridge[a] * own[a];
        }
        for (int a = k; a < ld; ++a) A[a * ld + a] = 1;
    }
    T jitter(int l) const {
        T largest = 0;
        for (int a = 0; a < k; ++a) largest = larger(largest, H[static_cast<long>(l) * ld * ld + a * ld + a]);
        return 8 * std::numeric_limits<T>::epsilon() * largest;
    }
    // The step of lane l, and its slope (g + R p) d. Where no cell counts, p goes to the least norm.
    double pack(const T* own, int l, T* step) const {
        const T *const x = d.get() + l * ld, *const rhs = b.get() + l * ld;
        double slope = 0;
        for (int a = 0; a < k; ++a) {
            step[a] = known[l] ? -x[a] : -own[a];
            slope += static_cast<double>(rhs[a]) * step[a];
        }
        if (slope <= 0) return slope;  // false for NaN: H was not positive
        std::memset(step, 0, sizeof(T) * k);
        return 0;
    }

  public:
    NewtonSolve(const T* ridge, int k, int ld)
        : k(k), ld(ld), ridge(ridge), cholesky(ld), H(static_cast<long>(L) * ld * ld), b(L * ld), d(L * ld) {}

    void rows(const T* sums, const T* own, int64_t begin, int64_t end, T* step, double* slope) {
        const int64_t width = static_cast<int64_t>(k) * (k + 3) / 2;
        for (int64_t first = begin; first < end; first += L) {
            const int n = end - first < L ? static_cast<int>(end - first) : L;
            const T *matrix[L], *rhs[L];
            T shift[L], *out[L];
            for (int l = 0; l < L; ++l) {  // lanes to spare repeat the first row
                const int from = l < n ? l : 0;
                if (l < n) unpack(sums + (first + l) * width, own + (first + l) * k, l);
                matrix[l] = H.get() + static_cast<long>(from) * ld * ld;
                rhs[l] = b.get() + from * ld;
                out[l] = d.get() + l * ld;
                shift[l] = jitter(from);
            }
            cholesky.solve(matrix, shift, rhs, out);
            for (int l = 0; l < n; ++l) slope[first + l] = pack(own + (first + l) * k, l, step + (first + l) * k);
        }
    }
};

template <class T>
struct PartialImpl {
    static double sums(const Problem<T>& problem, const CellsView<T>& cells, const T* own, int64_t begin, int64_t end, T* out) {
        const int64_t k = problem.k, width = k * (k + 3) / 2;
        with_loss(problem.loss, [&](auto loss) {
            NewtonSums<T, decltype(loss)> sums(problem, loss);
            for (int64_t i = begin; i < end; ++i) sums.row(row_cells(cells, i), own + i * k, out + i * width);
        });
        return 0;
    }
    static double trial(const Problem<T>& problem, const CellsView<T>& cells, const T* own, const T* step,
                        const double* lengths, int n_lengths, int64_t begin, int64_t end, double* out) {
        const int64_t k = problem.k;
        with_loss(problem.loss, [&](auto loss) {
            StepTrial<T, decltype(loss)> trial(problem, loss);
            for (int64_t i = begin; i < end; ++i)
                trial.row(row_cells(cells, i), own + i * k, step + i * k, lengths, n_lengths, out + i * (3 + n_lengths));
        });
        return 0;
    }
    static double solve(const T* sums, const T* own, const T* ridge, int k, int ld, int64_t begin, int64_t end, T* step,
                        double* slope) {
        NewtonSolve<T>(ridge, k, ld).rows(sums, own, begin, end, step, slope);
        return 0;
    }
};

}  // namespace
