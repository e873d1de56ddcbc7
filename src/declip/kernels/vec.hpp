// Vector lanes and the small dense algebra of one row: dot, axpy, Gram matrix, Cholesky.
// Every vector has a padded length `ld`, a multiple of kAlign<T>; the padding holds zeros.
#pragma once

#include <cmath>
#include <cstring>
#include <new>

namespace {

// Zeroed, aligned scratch. The files compiled per instruction set use no standard containers: their
// templates would be merged by the linker across instruction sets.
template <class T>
class Buffer {
    T* data_ = nullptr;
    long size_ = 0;

  public:
    explicit Buffer(long size = 0) { resize(size); }
    Buffer(const Buffer&) = delete;
    Buffer& operator=(const Buffer&) = delete;
    ~Buffer() { ::operator delete(data_, std::align_val_t(64)); }
    void resize(long size) {
        ::operator delete(data_, std::align_val_t(64));
        data_ = nullptr;
        data_ = static_cast<T*>(::operator new(sizeof(T) * (size ? size : 1), std::align_val_t(64)));
        size_ = size;
        clear();
    }
    void swap(Buffer& other) {
        T* const data = data_;
        data_ = other.data_;
        other.data_ = data;
        const long size = size_;
        size_ = other.size_;
        other.size_ = size;
    }
    void clear() { std::memset(data_, 0, sizeof(T) * size_); }
    long size() const { return size_; }
    T* get() { return data_; }
    const T* get() const { return data_; }
    T& operator[](long i) { return data_[i]; }
    const T& operator[](long i) const { return data_[i]; }
};

template <class T>
inline T larger(T a, T b) {
    return a < b ? b : a;
}

#if defined(__AVX512F__)
constexpr int kBytes = 64;
constexpr int kTileRows = 8;
#elif defined(__AVX2__)
constexpr int kBytes = 32;
constexpr int kTileRows = 4;
#else
constexpr int kBytes = 16;
constexpr int kTileRows = 4;
#endif

template <class T>
struct Lanes {
    typedef T Vec __attribute__((vector_size(kBytes)));
    static constexpr int count = kBytes / static_cast<int>(sizeof(T));
};
template <class T>
constexpr int kLanes = Lanes<T>::count;
template <class T>
constexpr int kAlign = kLanes<T> > kTileRows ? kLanes<T> : kTileRows;
template <class T>
using Vec = typename Lanes<T>::Vec;

template <class T>
inline Vec<T> load(const T* p) {
    Vec<T> v;
    std::memcpy(&v, p, kBytes);
    return v;
}
template <class T>
inline void store(T* p, Vec<T> v) {
    std::memcpy(p, &v, kBytes);
}
// The sum of the lanes, by halves: a chain of log2(lanes) additions instead of lanes.
template <class T, int Bytes>
inline T total_of(const void* lanes) {
    if constexpr (Bytes <= static_cast<int>(2 * sizeof(T))) {
        T two[2];
        std::memcpy(two, lanes, sizeof(two));
        return two[0] + two[1];
    } else {
        typedef T Half __attribute__((vector_size(Bytes / 2)));
        Half low, high;
        std::memcpy(&low, lanes, Bytes / 2);
        std::memcpy(&high, static_cast<const char*>(lanes) + Bytes / 2, Bytes / 2);
        low += high;
        return total_of<T, Bytes / 2>(&low);
    }
}
template <class T>
inline T total(Vec<T> v) {
    return total_of<T, kBytes>(&v);
}

template <class T>
inline T dot(const T* x, const T* y, int ld) {
    Vec<T> s = {};
    for (int a = 0; a < ld; a += kLanes<T>) s += load(x + a) * load(y + a);
    return total<T>(s);
}
template <class T>
inline void axpy(T w, const T* x, T* y, int ld) {  // y += w x
    for (int a = 0; a < ld; a += kLanes<T>) store(y + a, load(y + a) + w * load(x + a));
}

// A[a0 : a0 + R, b0 : b0 + W lanes] += sum over cells c of X[c, a] Y[c, b], in registers.
template <class T, int R, int W>
inline void gram_tile(const T* X, const T* Y, int n, int ld, T* A, int a0, int b0) {
    Vec<T> acc[R][W] = {};
    for (int c = 0; c < n; ++c) {
        const T* x = X + c * ld + a0;
        const T* y = Y + c * ld + b0;
        for (int w = 0; w < W; ++w) {
            const Vec<T> v = load(y + w * kLanes<T>);
            for (int r = 0; r < R; ++r) acc[r][w] += x[r] * v;
        }
    }
    for (int r = 0; r < R; ++r)
        for (int w = 0; w < W; ++w) {
            T* out = A + (a0 + r) * ld + b0 + w * kLanes<T>;
            store(out, load(out) + acc[r][w]);
        }
}

// Upper triangle of A += X^T Y, for n cells of X and Y (with X = diag(w) Y the result is symmetric).
template <class T>
inline void gram(const T* X, const T* Y, int n, int ld, T* A) {
    constexpr int R = kTileRows, L = kLanes<T>;
    for (int a = 0; a < ld; a += R) {
        int b = a / L * L;
        for (; b + 3 * L <= ld; b += 3 * L) gram_tile<T, R, 3>(X, Y, n, ld, A, a, b);
        if (b + 2 * L <= ld) gram_tile<T, R, 2>(X, Y, n, ld, A, a, b);
        else if (b + L <= ld) gram_tile<T, R, 1>(X, Y, n, ld, A, a, b);
    }
}

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

// Solve U^T U d = b; b is overwritten.
template <class T>
inline void cholesky_solve(const T* U, const T* inv, T* b, T* d, int ld) {
    forward_solve(U, inv, b, d, ld);
    back_solve(U, inv, d, ld);
}

}  // namespace
