// Newton directions of several rows at once, one row in each vector lane: the small systems are too short of
// independent work to fill a processor one by one.
#pragma once

#include <limits>

#include "vec.hpp"

namespace {

// H_l d_l = b_l in each lane l, by Cholesky: H = U^T U. Element (i, j) of all lanes is one vector; the
// right-hand side rides along as column ld, so that factoring also solves U^T y = b.
template <class T>
class BatchedCholesky {
    static constexpr int L = kLanes<T>;
    static constexpr int R = 4;  // rows factored together; ld is a multiple of it
    int ld_, width_;
    Buffer<T> U_, inv_, x_;

    T* at(int i, int j) { return U_.get() + (static_cast<long>(i) * width_ + j) * L; }

    // U[i0 : i0 + R, j : j + 2] -= sum over m < i0 of U[m, i0 : i0 + R]^T U[m, j : j + 2]
    void subtract_earlier_rows(int i0, int j) {
        Vec<T> acc[R][2];
        for (int r = 0; r < R; ++r)
            for (int c = 0; c < 2; ++c) acc[r][c] = load(at(i0 + r, j + c));
        for (int m = 0; m < i0; ++m) {
            const Vec<T> left = load(at(m, j)), right = load(at(m, j + 1));
            for (int r = 0; r < R; ++r) {
                const Vec<T> u = load(at(m, i0 + r));
                acc[r][0] -= u * left;
                acc[r][1] -= u * right;
            }
        }
        for (int r = 0; r < R; ++r)
            for (int c = 0; c < 2; ++c) store(at(i0 + r, j + c), acc[r][c]);
    }

    // Row i0 + r of U from what the rows before left of it.
    void finish_row(int i0, int r) {
        const int i = i0 + r;
        const Vec<T> pivot = load(at(i, i));
        Vec<T> inv;
        for (int l = 0; l < L; ++l) inv[l] = 1 / std::sqrt(pivot[l]);  // NaN where H is not positive
        store(inv_.get() + i * L, inv);
        for (int j = i; j <= ld_; ++j) store(at(i, j), load(at(i, j)) * inv);
        for (int below = i + 1; below < i0 + R; ++below) {
            const Vec<T> u = load(at(i, below));
            for (int j = below; j <= ld_; ++j) store(at(below, j), load(at(below, j)) - u * load(at(i, j)));
        }
    }

    // Element (i, j) of L matrices as one vector. The diagonal grows by a share of itself, which keeps matrices
    // of low rank positive whatever the units of their rows, and by the jitter where it is next to nothing.
    void interleave(const T* const* H, const T* jitter, const T* const* b) {
        constexpr T grown = 1 + 8 * std::numeric_limits<T>::epsilon();
        for (int i = 0; i < ld_; ++i) {
            Vec<T> v;
            for (int l = 0; l < L; ++l) v[l] = grown * H[l][i * ld_ + i] + jitter[l];
            store(at(i, i), v);
            for (int j = i + 1; j < ld_; ++j) {
                for (int l = 0; l < L; ++l) v[l] = H[l][i * ld_ + j];
                store(at(i, j), v);
            }
            for (int l = 0; l < L; ++l) v[l] = b[l][i];
            store(at(i, ld_), v);
        }
    }

    // U x = y, from the last row up.
    void solve_back() {
        for (int i = ld_ - 1; i >= 0; --i) {
            Vec<T> s = load(at(i, ld_)), t = {};
            int j = i + 1;
            for (; j + 2 <= ld_; j += 2) {
                s -= load(at(i, j)) * load(x_.get() + j * L);
                t -= load(at(i, j + 1)) * load(x_.get() + (j + 1) * L);
            }
            if (j < ld_) s -= load(at(i, j)) * load(x_.get() + j * L);
            store(x_.get() + i * L, (s + t) * load(inv_.get() + i * L));
        }
    }

  public:
    explicit BatchedCholesky(int ld)
        : ld_(ld), width_(ld + 2), U_(static_cast<long>(ld) * (ld + 2) * L), inv_(ld * L), x_(ld * L) {}

    // Solve L systems, of which the upper triangles are read; one that is not positive gives NaN.
    void solve(const T* const* H, const T* jitter, const T* const* b, T* const* d) {
        static_assert(kAlign<T> % R == 0);
        interleave(H, jitter, b);
        for (int i0 = 0; i0 < ld_; i0 += R) {
            for (int j = i0; j < ld_ + 2; j += 2) subtract_earlier_rows(i0, j);
            for (int r = 0; r < R; ++r) finish_row(i0, r);
        }
        solve_back();
        for (int l = 0; l < L; ++l)
            for (int i = 0; i < ld_; ++i) d[l][i] = x_[i * L + l];
    }
};

}  // namespace
