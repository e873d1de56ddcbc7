// Half a sweep: the rows of a table, solved one after the other by the workers of its threads.
#pragma once

#include <cstdint>

#include "kernels.hpp"
#include "row.hpp"
#include "vec.hpp"

namespace {

// The rows of a chunk, a lane's worth at a time: a row that is solved makes room for the next.
template <class T, class Loss>
class RowQueue final : public RowWorker {
    static constexpr int L = kLanes<T>;
    using Solver = RowSolver<T, Loss>;
    const Loss loss;
    const CellsView<T>& cells;
    T* own;
    int k;
    const T* centre;
    int64_t next = 0, end = 0;
    Scratch<T> scratch;
    BatchedCholesky<T> cholesky;
    Buffer<char> room;
    int64_t index[L];
    bool busy[L] = {};
    double total;

    Solver& slot(int l) { return reinterpret_cast<Solver*>(room.get())[l]; }

    void finish(int l) {
        std::memcpy(own + index[l] * k, slot(l).p.get(), sizeof(T) * k);
        total += slot(l).loss_without_ridge();
        busy[l] = false;
    }

    // Start the next row that needs a factored H; rows on the way that do not are solved here.
    void refill(int l) {
        for (; next < end && !busy[l]; ++next) {
            const RowCells<T> row = row_cells(cells, next);
            if (row.n_exact + row.n_censored == 0) {  // nothing is known: the least norm
                if (centre == nullptr) std::memset(own + next * k, 0, sizeof(T) * k);
                else std::memcpy(own + next * k, centre + next * k, sizeof(T) * k);
                continue;
            }
            index[l] = next;
            slot(l).begin(next, row, own + next * k, k);
            if (slot(l).factors_H()) {
                busy[l] = true;
                continue;
            }
            while (slot(l).prepare()) {
                slot(l).conjugate_gradients();
                slot(l).advance();
            }
            finish(l);
        }
    }

    // One Newton step of the rows in some slots.
    void step(const int* slots, int n) {
        const T *H[L], *b[L];
        T jitter[L], *d[L];
        for (int i = 0; i < L; ++i) {  // lanes to spare repeat the first row
            Solver& row = slot(slots[i < n ? i : 0]);
            H[i] = row.H.get();
            b[i] = row.grad.get();
            d[i] = row.d.get();
            jitter[i] = row.jitter();
        }
        cholesky.solve(H, jitter, b, d);
        for (int i = 0; i < n; ++i) {
            slot(slots[i]).take_solution();
            slot(slots[i]).advance();
        }
    }

  public:
    RowQueue(const Problem<T>& problem, const Loss& loss, const CellsView<T>& cells, T* own)
        : loss(loss), cells(cells), own(own), k(problem.k), centre(problem.centre), scratch(problem), cholesky(problem.ld),
          room(sizeof(Solver) * L) {
        for (int l = 0; l < L; ++l) new (&slot(l)) Solver(problem, this->loss, scratch);
        if (problem.nearly_full) slot(0).count_all();
    }
    RowQueue(const RowQueue&) = delete;
    RowQueue& operator=(const RowQueue&) = delete;
    ~RowQueue() override {
        for (int l = 0; l < L; ++l) slot(l).~Solver();
    }

    double rows(int64_t first, int64_t last) override {
        next = first;
        end = last;
        total = 0;
        for (;;) {
            int slots[L], n = 0;
            for (int l = 0; l < L; ++l) {
                if (!busy[l]) refill(l);
                while (busy[l] && !slot(l).prepare()) {
                    finish(l);
                    refill(l);
                }
                if (busy[l]) slots[n++] = l;
            }
            if (n == 0) return total;
            step(slots, n);
        }
    }
};

template <class T>
struct SweepImpl {
    static int padded(int k) { return (k + kAlign<T> - 1) / kAlign<T> * kAlign<T>; }

    static auto narrow() -> void (*)(const T*, int, uint16_t*) {
        if constexpr (kHasHalf && sizeof(T) == sizeof(float))
            return [](const T* row, int ld, uint16_t* out) {
                for (int a = 0; a < ld; a += kLanes<T>) narrowed(row + a, out + a);
            };
        else return nullptr;
    }

    // own is (n_rows, k) row-major, not padded.
    static RowWorker* worker(const Problem<T>& problem, const CellsView<T>& cells, T* own) {
        return with_loss_of(cells, problem.loss, [&](const auto& loss) -> RowWorker* {
            return new RowQueue<T, std::decay_t<decltype(loss)>>(problem, loss, cells, own);
        });
    }

    // Loss of the cells of rows [begin, end) and, unless null, its gradients; own is unpadded, other padded.
    static double residuals(const Problem<T>& problem, const CellsView<T>& cells, const T* own, int k,
                            int64_t begin, int64_t end, T* exact_out, T* censored_out) {
        return with_loss_of(cells, problem.loss, [&](const auto& loss) {
            return residuals_under(loss, problem, cells, own, k, begin, end, exact_out, censored_out);
        });
    }

  private:
    template <class Loss>
    static double residuals_under(const Loss& loss, const Problem<T>& problem, const CellsView<T>& cells, const T* own,
                                  int k, int64_t begin, int64_t end, T* exact_out, T* censored_out) {
        Buffer<T> p(problem.ld);
        double total = 0;
        for (int64_t i = begin; i < end; ++i) {
            const RowCells<T> row = row_cells(cells, i);
            std::memcpy(p.get(), own + i * k, sizeof(T) * k);
            for (int64_t c = 0; c < row.n_exact; ++c) {
                const int32_t j = row.exact_idx[c];
                const T* q = problem.other + static_cast<int64_t>(j) * problem.ld;
                const T r = dot(q, p.get(), problem.ld) + offset_of(problem, j) - row.value[c];
                const T weight = Loss::weighted ? row.exact_weight[c] : T(1);
                total += 0.5 * static_cast<double>(weight * r) * r;
                if (exact_out != nullptr) exact_out[row.exact_begin + c] = weight * r;
            }
            for (int64_t c = 0; c < row.n_censored; ++c) {
                const int32_t j = row.censored_idx[c];
                const T* q = problem.other + static_cast<int64_t>(j) * problem.ld;
                const double x = static_cast<double>(dot(q, p.get(), problem.ld)) + offset_of(problem, j);
                const CellLoss cell = loss_of_cell(loss, row, c, x);
                total += cell.value;
                if (censored_out != nullptr) censored_out[row.censored_begin + c] = static_cast<T>(cell.gradient);
            }
        }
        return total;
    }
};

}  // namespace
