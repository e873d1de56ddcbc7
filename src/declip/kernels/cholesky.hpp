// Cholesky factors of one small matrix, and the two triangular solves.
#pragma once

#include "vec.hpp"

namespace {

// U[i, b0 : b0 + W lanes] = A[i, .] - sum over j < i of U[j, i] U[j, .]
template <class T, int W>
inline void cholesky_strip(const T* A, T* U, int ld, int i, int b0) {
    Vec<T> acc[W];
    for (int w = 0; w < W; ++w) acc[w] = load(A + i * ld + b0 + w * kLanes<T>);
    for (int j = 0; j < i; ++j) {
        const T u = U[j * ld + i];
        for (int w = 0; w < W; ++w) acc[w] -= u * load(U + j * ld + b0 + w * kLanes<T>);
    }
    for (int w = 0; w < W; ++w) store(U + i * ld + b0 + w * kLanes<T>, acc[w]);
}

// A + jitter I = U^T U (upper triangles; what lies below the diagonal is never read); inv[i] = 1 / U[i, i].
// False if a pivot is not positive.
template <class T>
inline bool cholesky(const T* A, T jitter, T* U, T* inv, int ld) {
    constexpr int L = kLanes<T>;
    for (int i = 0; i < ld; ++i) {
        int b = i / L * L;
        for (; b + 4 * L <= ld; b += 4 * L) cholesky_strip<T, 4>(A, U, ld, i, b);
        if (b + 2 * L <= ld) {
            cholesky_strip<T, 2>(A, U, ld, i, b);
            b += 2 * L;
        }
        if (b + L <= ld) cholesky_strip<T, 1>(A, U, ld, i, b);
        const T pivot = U[i * ld + i] + jitter;
        if (!(pivot > 0)) return false;
        inv[i] = 1 / std::sqrt(pivot);
        for (int c = i / L * L; c < ld; c += L) store(U + i * ld + c, load(U + i * ld + c) * inv[i]);
    }
    return true;
}

// Solve U^T d = b; b is overwritten.
template <class T>
inline void forward_solve(const T* U, const T* inv, T* b, T* d, int ld) {
    constexpr int L = kLanes<T>;
    for (int j = 0; j < ld; ++j) {
        const T y = b[j] * inv[j];
        for (int c = j / L * L; c < ld; c += L) store(b + c, load(b + c) - y * load(U + j * ld + c));
        d[j] = y;
    }
}

// Solve U d = d in place, from the last row up.
template <class T>
inline void back_solve(const T* U, const T* inv, T* d, int ld) {
    constexpr int L = kLanes<T>;
    for (int i = ld - 1; i >= 0; --i) {
        T s = d[i];
        int c = i + 1;
        for (; c % L != 0; ++c) s -= U[i * ld + c] * d[c];
        if (c < ld) s -= dot(U + i * ld + c, d + c, ld - c);
        d[i] = s * inv[i];
    }
}

}  // namespace
