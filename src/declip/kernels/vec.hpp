// Vector lanes and the small dense algebra of one row: dot products, combinations, Gram matrix.
// Every vector has a padded length `ld`, a multiple of kAlign<T>; the padding holds zeros.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>
#include <new>
#include <utility>

#ifdef __SSE2__
#include <immintrin.h>
#endif

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

#if defined(__AVX2__)
constexpr int kBytes = 32;
#else
constexpr int kBytes = 16;
#endif
constexpr int kTileRows = 4;

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
// The same from numbers of half the precision, where the processor can widen and narrow them.
#if defined(__F16C__)
constexpr bool kHasHalf = true;
inline Vec<float> widened(const uint16_t* p) {
    return _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p)));
}
inline void narrowed(const float* p, uint16_t* out) {
    _mm_storeu_si128(reinterpret_cast<__m128i*>(out), _mm256_cvtps_ph(_mm256_loadu_ps(p), _MM_FROUND_TO_NEAREST_INT));
}
#else
constexpr bool kHasHalf = false;
inline Vec<float> widened(const uint16_t*) { return Vec<float>{}; }
inline void narrowed(const float*, uint16_t*) {}
#endif
template <class T>
inline Vec<T> wide(const T* p) {
    return load(p);
}
template <class T>
inline Vec<T> wide(const uint16_t* p) {
    if constexpr (sizeof(T) == sizeof(float)) return widened(p);
    else return Vec<T>{};  // double precision is never narrowed
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

// f.template run<W>(b) on panels of W <= 8 vectors that begin at column b and together make up ld columns.
template <class T, class F>
inline void over_panels(int ld, F f) {
    constexpr int L = kLanes<T>;
    int b = 0;
    for (; b + 8 * L <= ld; b += 8 * L) f.template run<8>(b);
    switch ((ld - b) / L) {
        case 1: return f.template run<1>(b);
        case 2: return f.template run<2>(b);
        case 3: return f.template run<3>(b);
        case 4: return f.template run<4>(b);
        case 5: return f.template run<5>(b);
        case 6: return f.template run<6>(b);
        case 7: return f.template run<7>(b);
    }
}

// The blocks of B lanes of x and y, added in pairs: the sums of x in the even blocks, those of y in the odd ones.
template <class T, int B, int... l>
inline Vec<T> folded(Vec<T> x, Vec<T> y, std::integer_sequence<int, l...>) {
    constexpr int L = kLanes<T>;
    return __builtin_shufflevector(x, y, (l / (2 * B) * 2 * B + l % B + l / B % 2 * L)...) +
           __builtin_shufflevector(x, y, (l / (2 * B) * 2 * B + l % B + l / B % 2 * L + B)...);
}
// The sums of the lanes of each of s[0 .. L / B), where blocks of B of them are summed already, as one vector.
template <class T, int B = 1>
inline Vec<T> totals(const Vec<T>* s) {
    if constexpr (B == kLanes<T>) return s[0];
    else {
        Vec<T> t[kLanes<T> / B / 2];
        for (int i = 0; i < kLanes<T> / B / 2; ++i)
            t[i] = folded<T, B>(s[2 * i], s[2 * i + 1], std::make_integer_sequence<int, kLanes<T>>());
        return totals<T, 2 * B>(t);
    }
}

// out[c] = X[c] . v for n rows of X; a panel of v stays in registers.
template <class T>
struct Dots {
    static constexpr int L = kLanes<T>;
    const T* const X;
    const int n, ld;
    const T* const v;
    T* const out;

    template <int W>
    void run(int b) const {
        Vec<T> r[W];
        for (int w = 0; w < W; ++w) r[w] = load(v + b + w * L);
        const T* x = X + b;
        int c = 0;
        for (; c + L <= n; c += L, x += L * ld) {
            Vec<T> s[L];
            for (int i = 0; i < L; ++i) s[i] = sum<W>(r, x + i * ld);
            const Vec<T> t = totals<T>(s);
            store(out + c, b == 0 ? t : load(out + c) + t);
        }
        for (; c < n; ++c, x += ld) out[c] = (b == 0 ? T(0) : out[c]) + total<T>(sum<W>(r, x));
    }
    template <int W>
    static Vec<T> sum(const Vec<T>* r, const T* x) {
        Vec<T> s = r[0] * load(x);
        for (int w = 1; w < W; ++w) s += r[w] * load(x + w * L);
        return s;
    }
};
template <class T>
inline void dots(const T* X, int n, int ld, const T* v, T* out) {
    over_panels<T>(ld, Dots<T>{X, n, ld, v, out});
}

// y += sum over n rows of s[c] X[c]; a panel of y stays in registers.
template <class T>
struct Combine {
    const T* X;
    int n, ld;
    const T* s;
    T* y;

    template <int W>
    void run(int b) const {
        Vec<T> even[W], odd[W] = {};
        for (int w = 0; w < W; ++w) even[w] = load(y + b + w * kLanes<T>);
        int c = 0;
        for (; c + 2 <= n; c += 2)
            for (int w = 0; w < W; ++w) {
                even[w] += s[c] * load(X + c * ld + b + w * kLanes<T>);
                odd[w] += s[c + 1] * load(X + (c + 1) * ld + b + w * kLanes<T>);
            }
        if (c < n)
            for (int w = 0; w < W; ++w) even[w] += s[c] * load(X + c * ld + b + w * kLanes<T>);
        for (int w = 0; w < W; ++w) store(y + b + w * kLanes<T>, even[w] + odd[w]);
    }
};
template <class T>
inline void combine(const T* X, int n, int ld, const T* s, T* y) {
    over_panels<T>(ld, Combine<T>{X, n, ld, s, y});
}

// y += sum over n rows of s[c] X[c]^2, elementwise; without s, of X[c]^2. A panel of y stays in registers.
template <class T>
struct Squares {
    const T* X;
    int n, ld;
    const T* s;
    T* y;

    template <int W>
    void run(int b) const {
        Vec<T> sum[W];
        for (int w = 0; w < W; ++w) sum[w] = load(y + b + w * kLanes<T>);
        for (int c = 0; c < n; ++c)
            for (int w = 0; w < W; ++w) {
                const Vec<T> x = load(X + c * ld + b + w * kLanes<T>);
                sum[w] += s == nullptr ? x * x : s[c] * x * x;
            }
        for (int w = 0; w < W; ++w) store(y + b + w * kLanes<T>, sum[w]);
    }
};
template <class T>
inline void add_squares(const T* X, int n, int ld, const T* s, T* y) {
    over_panels<T>(ld, Squares<T>{X, n, ld, s, y});
}

// A[a0 : a0 + R, b0 : b0 + W lanes] += sum over cells c of X[c, a] Y[c, b], in registers.
template <class T, int R, int W>
inline void gram_tile(const T* X, const T* Y, int n, int ld, T* A, int a0, int b0) {
    Vec<T> acc[R][W];
    for (int r = 0; r < R; ++r)
        for (int w = 0; w < W; ++w) acc[r][w] = Vec<T>{};
    for (int c = 0; c < n; ++c) {
        const T* x = X + c * ld + a0;
        Vec<T> y[W];  // R W + W + 1 registers in all
        for (int w = 0; w < W; ++w) y[w] = load(Y + c * ld + b0 + w * kLanes<T>);
        for (int r = 0; r < R; ++r)
            for (int w = 0; w < W; ++w) acc[r][w] += x[r] * y[w];
    }
    for (int r = 0; r < R; ++r)
        for (int w = 0; w < W; ++w) {
            T* out = A + (a0 + r) * ld + b0 + w * kLanes<T>;
            store(out, load(out) + acc[r][w]);
        }
}

// Upper triangle of A += X^T Y, for n cells of X and Y (with X = diag(w) Y the result is symmetric).
// meanwhile() is called once a strip, for memory to be fetched while the processor multiplies.
template <class T, class F>
inline void gram(const T* X, const T* Y, int n, int ld, T* A, F meanwhile) {
    constexpr int R = kTileRows, L = kLanes<T>, S = kAlign<T>;
    for (int a = 0; a < ld; a += S) {  // a strip of S rows, from its first diagonal element on
        int b = a;
        meanwhile();
        for (; b + 3 * L <= ld; b += 3 * L)
            for (int r = 0; r < S; r += R) gram_tile<T, R, 3>(X, Y, n, ld, A, a + r, b);
        if (b + 2 * L <= ld)
            for (int r = 0; r < S; r += R) gram_tile<T, R, 2>(X, Y, n, ld, A, a + r, b);
        else if (b + L <= ld) gram_tile<T, S, 1>(X, Y, n, ld, A, a, b);
    }
}

}  // namespace
