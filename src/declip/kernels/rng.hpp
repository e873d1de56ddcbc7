// Random numbers by counter: Philox 4x32-10 (Salmon, Moraes, Dror and Shaw 2011). What a stream yields depends on its
// seed, sweep and row alone, so that draws do not depend on how the rows are shared out to threads.
#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace {

constexpr int kMostProposals = 1000;  // of a draw by rejection

struct PhiloxBlock {
    uint32_t word[4];
};

inline PhiloxBlock philox(PhiloxBlock counter, uint32_t key0, uint32_t key1) {
    uint32_t(&c)[4] = counter.word;
    for (int round = 0; round < 10; ++round) {
        const uint64_t even = uint64_t{0xD2511F53u} * c[0], odd = uint64_t{0xCD9E8D57u} * c[2];
        const uint32_t c1 = c[1], c3 = c[3];
        c[0] = static_cast<uint32_t>(odd >> 32) ^ c1 ^ key0;
        c[1] = static_cast<uint32_t>(odd);
        c[2] = static_cast<uint32_t>(even >> 32) ^ c3 ^ key1;
        c[3] = static_cast<uint32_t>(even);
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
    return counter;
}

class Stream {
    uint64_t seed_, sweep_;
    uint32_t row_, next_ = 0;
    PhiloxBlock block_{};
    int left_ = 0;  // pairs of words of the block that are not used yet
    double spare_ = 0;
    bool has_spare_ = false;

  public:
    Stream(uint64_t seed, uint64_t sweep, uint32_t row) : seed_(seed), sweep_(sweep), row_(row) {}

    // In the open interval (0, 1): never an end.
    double uniform() {
        if (left_ == 0) {
            const uint32_t low = static_cast<uint32_t>(sweep_), high = static_cast<uint32_t>(sweep_ >> 32);
            block_ = philox({{next_++, row_, low, high}}, static_cast<uint32_t>(seed_),
                            static_cast<uint32_t>(seed_ >> 32));
            left_ = 2;
        }
        --left_;
        const uint64_t bits = uint64_t{block_.word[2 * left_]} << 32 | block_.word[2 * left_ + 1];
        return (static_cast<double>(bits >> 12) + 0.5) * 0x1p-52;
    }

    // Box and Muller: two at a time.
    double normal() {
        if (has_spare_) {
            has_spare_ = false;
            return spare_;
        }
        const double radius = std::sqrt(-2 * std::log(uniform())), angle = 6.283185307179586477 * uniform();
        spare_ = radius * std::sin(angle);
        has_spare_ = true;
        return radius * std::cos(angle);
    }

    // Of the given shape >= 1 and rate 1 (Marsaglia and Tsang 2000), which takes more than 0.95 of all proposals; NaN
    // if the shape is no number.
    double gamma(double shape) {
        const double d = shape - 1.0 / 3, c = 1 / std::sqrt(9 * d);
        for (int proposal = 0; proposal < kMostProposals; ++proposal) {
            const double x = normal(), root = 1 + c * x;
            if (root <= 0) continue;
            const double v = root * root * root;
            if (std::log(uniform()) < 0.5 * x * x + d - d * v + d * std::log(v)) return d * v;
        }
        return std::numeric_limits<double>::quiet_NaN();
    }
};

}  // namespace
