// Memory for rows that are read at random: in huge pages, if it is large and the system has them.
#pragma once

#include <cstdlib>
#include <memory>
#include <new>

#if defined(_WIN32)
#include <malloc.h>
#elif defined(__linux__)
#include <sys/mman.h>
#endif

namespace declip {

constexpr size_t kHugePage = 1 << 21;

struct FreeRoom {
    void operator()(void* room) const {
#ifdef _WIN32
        _aligned_free(room);
#else
        std::free(room);
#endif
    }
};

template <class T>
using Room = std::unique_ptr<T[], FreeRoom>;

inline void* aligned_room(size_t page, size_t bytes) {
#ifdef _WIN32
    return _aligned_malloc(bytes, page);
#else
    return std::aligned_alloc(page, bytes);
#endif
}

template <class T>
Room<T> room_for(size_t n) {
    const size_t page = sizeof(T) * n < 2 * kHugePage ? 64 : kHugePage;
    const size_t bytes = (sizeof(T) * n / page + 1) * page;
    Room<T> room(static_cast<T*>(aligned_room(page, bytes)));
    if (!room) throw std::bad_alloc();
#ifdef MADV_HUGEPAGE
    if (page == kHugePage) madvise(room.get(), bytes, MADV_HUGEPAGE);
#endif
    return room;
}

}  // namespace declip
