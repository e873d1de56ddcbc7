// Rows shared out to threads in chunks of equal work. The calling thread works too, and between chunks
// lets Python handle signals, so that Ctrl-C stops a long sweep. Plain threads, started for one call:
// they survive a fork of the process, which a pool of OpenMP does not.
#pragma once

#include <nanobind/nanobind.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

namespace declip {

using Clock = std::chrono::steady_clock;

// Ends of chunks of rows, each of about the same work; work_before(i) is the work of rows [0, i).
template <class Work>
std::vector<int64_t> chunk_ends(int64_t n_rows, int64_t chunk_work, Work work_before) {
    std::vector<int64_t> ends;
    for (int64_t begin = 0; begin < n_rows;) {
        const int64_t target = work_before(begin) + chunk_work;
        int64_t low = begin + 1, high = n_rows;
        while (low < high) {  // the first row end at which the target is reached
            const int64_t middle = low + (high - low) / 2;
            if (work_before(middle) < target) low = middle + 1;
            else high = middle;
        }
        ends.push_back(low);
        begin = low;
    }
    return ends;
}

// Run body(begin, end) -> double on every chunk, with a body = make() for each thread; returns the sum in the order
// of the chunks, so that it does not depend on the number of threads. Call with the interpreter lock released.
template <class Make>
double over_chunks_with(const std::vector<int64_t>& ends, int threads, Make make) {
    std::vector<double> results(ends.size(), 0.0);
    std::atomic<size_t> next{0};
    std::atomic<bool> stop{false};
    std::exception_ptr failure;
    std::mutex failure_lock;
    auto guarded = [&](auto&& work) {
        try {
            work();
        } catch (...) {
            const std::lock_guard<std::mutex> hold(failure_lock);
            if (!failure) failure = std::current_exception();
            stop = true;
        }
    };
    auto work = [&](bool polls) {
        auto body = make();
        auto last = Clock::now();
        for (size_t c = next++; c < ends.size() && !stop; c = next++) {
            results[c] = body(c == 0 ? 0 : ends[c - 1], ends[c]);
            if (!polls || Clock::now() - last < std::chrono::milliseconds(50)) continue;
            const nanobind::gil_scoped_acquire hold;
            if (PyErr_CheckSignals() != 0) throw nanobind::python_error();
            last = Clock::now();
        }
    };
    std::vector<std::thread> helpers;
    const int useful = std::min<int64_t>(threads, ends.size());
    guarded([&] {
        for (int t = 1; t < useful; ++t) helpers.emplace_back([&] { guarded([&] { work(false); }); });
    });
    guarded([&] { work(true); });
    for (auto& helper : helpers) helper.join();
    if (failure) std::rethrow_exception(failure);
    double sum = 0;
    for (const double r : results) sum += r;
    return sum;
}
template <class Body>
double over_chunks(const std::vector<int64_t>& ends, int threads, Body body) {
    return over_chunks_with(ends, threads, [&] { return body; });
}

}  // namespace declip
