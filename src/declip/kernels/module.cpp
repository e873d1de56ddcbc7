// Python's view of the kernels: checks that shapes agree, releases the interpreter lock, shares out the rows.
#include <nanobind/nanobind.h>
#include <nanobind/ndarray.h>
#include <nanobind/stl/string.h>
#include <nanobind/stl/vector.h>

#include <cstdlib>
#include <cstring>
#include <iterator>
#include <memory>
#include <stdexcept>
#include <string>

#include "kernels.hpp"
#include "loss.hpp"
#include "parallel.hpp"
#include "room.hpp"
#include "truncated.hpp"

namespace nb = nanobind;

namespace declip {

template <class T>
using In = nb::ndarray<const T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Out = nb::ndarray<T, nb::ndim<1>, nb::c_contig, nb::device::cpu>;
template <class T>
using Matrix = nb::ndarray<const T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;
template <class T>
using OutMatrix = nb::ndarray<T, nb::ndim<2>, nb::c_contig, nb::device::cpu>;

void require(bool holds, const char* what) {
    if (!holds) throw std::invalid_argument(what);
}

// The instruction sets that were compiled in and that this processor has, best last.
std::vector<const IsaKernels*> usable_isas() {
    std::vector<const IsaKernels*> found = {&kernels_baseline};
#ifdef DECLIP_X86
    __builtin_cpu_init();
    if (__builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma")) found.push_back(&kernels_avx2);
#endif
    return found;
}

const IsaKernels* current_isa = usable_isas().back();

void use_isa(const std::string& name) {
    for (const IsaKernels* isa : usable_isas())
        if (name == isa->name) {
            current_isa = isa;
            return;
        }
    throw std::invalid_argument("no such instruction set here: " + name);
}

std::vector<std::string> isa_names() {
    std::vector<std::string> names;
    for (const IsaKernels* isa : usable_isas()) names.push_back(isa->name);
    return names;
}

template <class T>
const Kernels<T>& kernels() {
    if constexpr (sizeof(T) == 4) return current_isa->f32;
    else return current_isa->f64;
}

constexpr double kNearlyFull = 0.6;      // share of exact cells
constexpr int64_t kChunkWork = 1 << 14;  // cells: some milliseconds

template <class T>
std::vector<int64_t> chunks_of(const CellsView<T>& v, int k) {
    const int64_t row_work = 1 + k / 4;  // the solve of a row, counted in cells
    return chunk_ends(v.n_rows, kChunkWork,
                      [&](int64_t i) { return v.exact_ptr[i] + v.censored_ptr[i] + i * row_work; });
}

// The cells of a table by row, as Python hands them over: arrays that agree with each other.
template <class T>
struct Cells {
    In<int64_t> exact_ptr;
    In<int32_t> exact_idx;
    In<T> value;
    In<int64_t> censored_ptr;
    In<int32_t> censored_idx;
    In<T> lower, upper;
    In<T> exact_weight, censored_weight, censored_scale;  // or empty

    Cells(In<int64_t> exact_ptr, In<int32_t> exact_idx, In<T> value, In<int64_t> censored_ptr,
          In<int32_t> censored_idx, In<T> lower, In<T> upper, In<T> exact_weight, In<T> censored_weight,
          In<T> censored_scale)
        : exact_ptr(exact_ptr), exact_idx(exact_idx), value(value), censored_ptr(censored_ptr),
          censored_idx(censored_idx), lower(lower), upper(upper), exact_weight(exact_weight),
          censored_weight(censored_weight), censored_scale(censored_scale) {
        require(!weighted() || (exact_weight.shape(0) == value.shape(0) && censored_weight.shape(0) == lower.shape(0)),
                "weights disagree with the cells");
        require(censored_scale.shape(0) == 0 || (weighted() && censored_scale.shape(0) == lower.shape(0)),
                "noise scales disagree with the cells");
        const int64_t n = static_cast<int64_t>(exact_ptr.shape(0)) - 1;
        require(n >= 0 && censored_ptr.shape(0) == exact_ptr.shape(0), "row pointers disagree");
        require(exact_idx.shape(0) == value.shape(0) && exact_ptr.data()[n] == static_cast<int64_t>(value.shape(0)),
                "exact cells disagree with their pointers");
        require(censored_idx.shape(0) == lower.shape(0) && lower.shape(0) == upper.shape(0) &&
                    censored_ptr.data()[n] == static_cast<int64_t>(lower.shape(0)),
                "censored cells disagree with their pointers");
    }

    bool weighted() const { return exact_weight.shape(0) + censored_weight.shape(0) > 0; }
    CellsView<T> view() const {
        return {static_cast<int64_t>(exact_ptr.shape(0)) - 1, exact_ptr.data(), exact_idx.data(), value.data(),
                censored_ptr.data(), censored_idx.data(), lower.data(), upper.data(), weighted(), exact_weight.data(),
                censored_weight.data(), censored_scale.shape(0) > 0 ? censored_scale.data() : nullptr};
    }
};

// What the rows of a table are fitted to: their cells at other[j] . p + offset[j], and the ridge on p (or none), which
// may draw each row to a centre of its own, with a strength of its own.
template <class T>
struct RowProblem {
    Cells<T> cells;
    Matrix<T> other;
    In<T> offset, ridge;
    LossSpec loss;
    Matrix<T> centre;    // or empty
    In<T> row_ridge;     // or empty

    RowProblem(const Cells<T>& cells, Matrix<T> other, In<T> offset, In<T> ridge, const LossSpec& loss, Matrix<T> centre,
               In<T> row_ridge)
        : cells(cells), other(other), offset(offset), ridge(ridge), loss(loss), centre(centre), row_ridge(row_ridge) {
        require(offset.shape(0) == other.shape(0) && (ridge.shape(0) == 0 || ridge.shape(0) == other.shape(1)),
                "factor shapes disagree");
        require(centre.shape(0) == 0 || fits(centre), "centres disagree with the factors");
        require(row_ridge.shape(0) == 0 || row_ridge.shape(0) + 1 == cells.exact_ptr.shape(0),
                "strengths of rows disagree with the rows");
    }

    int k() const { return static_cast<int>(other.shape(1)); }
    template <class Factors>
    bool fits(const Factors& own) const {
        return own.shape(0) + 1 == cells.exact_ptr.shape(0) && own.shape(1) == other.shape(1);
    }
};

// The other side's factors and the ridge, padded with zeros (the ridge with ones, so that H stays regular). In half
// precision, if that is asked for and the processor has it.
template <class T>
struct Padded {
    Room<T> other;
    Room<uint16_t> half;
    std::vector<T> ridge;
    Padded(Matrix<T> factors, const T* ridge_in, int ld, bool as_half = false) : ridge(ld, T(1)) {
        const size_t n = factors.shape(0), k = factors.shape(1);
        const bool narrow = as_half && kernels<T>().narrow != nullptr;
        if (narrow) half = room_for<uint16_t>(n * ld);
        else other = room_for<T>(n * ld);
        std::vector<T> one(ld, T(0));
        for (size_t j = 0; j < n; ++j) {
            T* const row = narrow ? one.data() : other.get() + j * ld;
            std::memcpy(row, factors.data() + j * k, sizeof(T) * k);
            std::memset(row + k, 0, sizeof(T) * (ld - k));
            if (narrow) kernels<T>().narrow(row, ld, half.get() + j * ld);
        }
        if (ridge_in) std::copy(ridge_in, ridge_in + k, ridge.begin());
    }
};

// The offsets, or null if they are all the same: then none need be fetched.
template <class T>
const T* unless_constant(In<T> offset) {
    const T* const first = offset.data();
    const T* const end = first + offset.shape(0);
    return std::all_of(first, end, [&](T x) { return x == *first; }) ? nullptr : first;
}

template <class T>
double update_rows(const RowProblem<T>& rows, OutMatrix<T> own, int inner_steps, int cg_steps, double inner_tol,
                   bool half, int threads) {
    require(rows.fits(own) && rows.ridge.shape(0) == rows.other.shape(1), "factor shapes disagree");
    const CellsView<T> cells = rows.cells.view();
    const nb::gil_scoped_release release;
    const int k = rows.k(), ld = kernels<T>().padded(k);
    const Padded<T> padded(rows.other, rows.ridge.data(), ld, half);
    const T shift = rows.offset.shape(0) > 0 ? *rows.offset.data() : T(0);
    const int64_t n_other = rows.other.shape(0);
    const bool nearly_full = !cells.weighted && rows.cells.value.shape(0) > kNearlyFull * cells.n_rows * n_other;
    const Problem<T> problem{padded.other.get(), padded.half.get(), unless_constant<T>(rows.offset), shift,
                             padded.ridge.data(), n_other, nearly_full, ld, k, rows.loss,
                             inner_steps, cg_steps, inner_tol,
                             rows.centre.shape(0) > 0 ? rows.centre.data() : nullptr,
                             rows.row_ridge.shape(0) > 0 ? rows.row_ridge.data() : nullptr};
    return over_chunks_with(chunks_of(cells, k), threads, [&] {
        std::unique_ptr<RowWorker> worker(kernels<T>().sweep_worker(problem, cells, own.data()));
        return [worker = std::move(worker)](int64_t begin, int64_t end) { return worker->rows(begin, end); };
    });
}

// Calls f(problem, cells, begin, end) on chunks of rows; the problem is looked at, not solved: no ridge and no steps.
template <class T, class F>
double over_rows(const RowProblem<T>& rows, int threads, F f) {
    const nb::gil_scoped_release release;
    const CellsView<T> cells = rows.cells.view();
    const int k = rows.k(), ld = kernels<T>().padded(k);
    const Padded<T> padded(rows.other, nullptr, ld);
    const Problem<T> problem{padded.other.get(), nullptr, rows.offset.data(), T(0), nullptr, 0, false, ld, k, rows.loss,
                             0, 0, 0.0, nullptr, nullptr};
    return over_chunks(chunks_of(cells, k), threads,
                       [&](int64_t begin, int64_t end) { return f(problem, cells, begin, end); });
}

template <class T>
double residuals(const RowProblem<T>& rows, Matrix<T> own, Out<T> exact_out, Out<T> censored_out, int threads) {
    const bool loss_only = exact_out.shape(0) + censored_out.shape(0) == 0;
    require(rows.fits(own) && (loss_only || (exact_out.shape(0) == rows.cells.value.shape(0) &&
                                             censored_out.shape(0) == rows.cells.lower.shape(0))),
            "factor shapes disagree");
    T *const exact = loss_only ? nullptr : exact_out.data(), *const censored = loss_only ? nullptr : censored_out.data();
    return over_rows(rows, threads, [&](const Problem<T>& problem, const CellsView<T>& cells, int64_t begin, int64_t end) {
        return kernels<T>().residual_rows(problem, cells, own.data(), problem.k, begin, end, exact, censored);
    });
}

// The sums of a Newton step over the cells of one block: upper triangle of H, then g, for each row.
template <class T>
void newton_sums(const RowProblem<T>& rows, Matrix<T> own, OutMatrix<T> out, int threads) {
    const int k = rows.k();
    require(rows.fits(own) && out.shape(0) == own.shape(0) && static_cast<int>(out.shape(1)) == k * (k + 3) / 2,
            "factor shapes disagree");
    over_rows(rows, threads, [&](const Problem<T>& problem, const CellsView<T>& cells, int64_t begin, int64_t end) {
        return kernels<T>().newton_sums(problem, cells, own.data(), begin, end, out.data());
    });
}

template <class T>
void step_trial(const RowProblem<T>& rows, Matrix<T> own, Matrix<T> step, In<double> lengths, OutMatrix<double> out,
                int threads) {
    require(rows.fits(own) && rows.fits(step) && out.shape(0) == own.shape(0) && out.shape(1) == 3 + lengths.shape(0),
            "factor shapes disagree");
    const int n_lengths = static_cast<int>(lengths.shape(0));
    over_rows(rows, threads, [&](const Problem<T>& problem, const CellsView<T>& cells, int64_t begin, int64_t end) {
        return kernels<T>().step_trial(problem, cells, own.data(), step.data(), lengths.data(), n_lengths, begin, end,
                                       out.data());
    });
}

template <class T>
void newton_solve(Matrix<T> sums, Matrix<T> own, In<T> ridge, OutMatrix<T> step, Out<double> slope, int threads) {
    const int64_t n = own.shape(0);
    const int k = static_cast<int>(own.shape(1));
    require(static_cast<int64_t>(sums.shape(0)) == n && static_cast<int>(sums.shape(1)) == k * (k + 3) / 2 &&
                static_cast<int>(ridge.shape(0)) == k && static_cast<int64_t>(step.shape(0)) == n &&
                static_cast<int>(step.shape(1)) == k && static_cast<int64_t>(slope.shape(0)) == n,
            "factor shapes disagree");
    const nb::gil_scoped_release release;
    const auto ends = chunk_ends(n, kChunkWork, [&](int64_t i) { return i * (1 + k); });
    over_chunks(ends, threads, [&](int64_t begin, int64_t end) {
        return kernels<T>().newton_solve(sums.data(), own.data(), ridge.data(), k, kernels<T>().padded(k), begin, end,
                                         step.data(), slope.data());
    });
}

// out[c] = own[rows[c]] . other[cols[c]]
template <class T>
void predict(In<int32_t> rows, In<int32_t> cols, Matrix<T> own, Matrix<T> other, Out<T> out, int threads) {
    const int64_t k = own.shape(1);
    require(rows.shape(0) == cols.shape(0) && rows.shape(0) == out.shape(0) && own.shape(1) == other.shape(1),
            "shapes disagree");
    const nb::gil_scoped_release release;
    const auto ends = chunk_ends(rows.shape(0), kChunkWork, [](int64_t i) { return i; });
    over_chunks(ends, threads, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
            const T* p = own.data() + rows.data()[c] * k;
            const T* q = other.data() + cols.data()[c] * k;
            double sum = 0;
            for (int64_t a = 0; a < k; ++a) sum += static_cast<double>(p[a]) * q[a];
            out.data()[c] = static_cast<T>(sum);
        }
        return 0.0;
    });
}

LossSpec loss_of_name(const std::string& name, double scale) {
    for (size_t kind = 0; kind < std::size(kLossNames); ++kind)
        if (name == kLossNames[kind]) return {static_cast<LossKind>(kind), scale};
    throw std::invalid_argument("there is no loss " + name);
}

void interval_loss(In<double> x, In<double> lower, In<double> upper, const LossSpec& named, Out<double> value,
                   Out<double> gradient, Out<double> curvature, int threads) {
    const size_t n = x.shape(0);
    require(lower.shape(0) == n && upper.shape(0) == n && value.shape(0) == n && gradient.shape(0) == n &&
                curvature.shape(0) == n,
            "shapes disagree");
    const nb::gil_scoped_release release;
    const auto ends = chunk_ends(n, kChunkWork, [](int64_t i) { return i; });
    with_loss(named, [&](const auto& loss) {
        return over_chunks(ends, threads, [&](int64_t begin, int64_t end) {
            for (int64_t c = begin; c < end; ++c) {
                const CellLoss cell = loss(x.data()[c], lower.data()[c], upper.data()[c]);
                value.data()[c] = cell.value;
                gradient.data()[c] = cell.gradient;
                curvature.data()[c] = cell.curvature;
            }
            return 0.0;
        });
    });
}

// A square matrix padded with the identity, and a vector padded with zeros.
std::vector<double> padded_square(Matrix<double> A, int ld) {
    const int k = static_cast<int>(A.shape(0));
    std::vector<double> out(static_cast<size_t>(ld) * ld, 0.0);
    for (int a = 0; a < ld; ++a) out[a * ld + a] = 1;
    for (int a = 0; a < k; ++a) std::copy(A.data() + a * k, A.data() + (a + 1) * k, out.begin() + a * ld);
    return out;
}

double draw_rows(const Cells<double>& table, Out<double> z, Out<double> exact_weight, Out<double> censored_weight,
                 OutMatrix<double> own, Matrix<double> other, In<double> offset, Matrix<double> prior_precision,
                 Matrix<double> prior_information, In<double> prior_scale, In<double> own_precision,
                 In<double> other_precision, double df, uint64_t seed, uint64_t sweep, bool same_stream, Out<double> squares, int threads) {
    const CellsView<double> cells = table.view();
    const size_t n = own.shape(0), m = other.shape(0), k = own.shape(1);
    require(static_cast<int64_t>(n) == cells.n_rows && other.shape(1) == k && prior_precision.shape(0) == k &&
                prior_precision.shape(1) == k && prior_information.shape(1) == k &&
                (prior_information.shape(0) == 1 || prior_information.shape(0) == n) &&
                (prior_scale.shape(0) == 0 || prior_scale.shape(0) == n),
            "factor shapes disagree");
    require(offset.shape(0) == m && other_precision.shape(0) == m && own_precision.shape(0) == n &&
                squares.shape(0) == n && z.shape(0) == table.lower.shape(0),
            "shapes disagree");
    const bool weighted = exact_weight.shape(0) + censored_weight.shape(0) > 0;
    require(!weighted || (exact_weight.shape(0) == table.value.shape(0) &&
                          censored_weight.shape(0) == table.lower.shape(0)),
            "weights disagree with the cells");
    const nb::gil_scoped_release release;
    const int ld = kernels<double>().padded(static_cast<int>(k));
    const Padded<double> padded(other, nullptr, ld);
    const std::vector<double> precision = padded_square(prior_precision, ld);
    const size_t n_priors = prior_information.shape(0);
    std::vector<double> information(n_priors * ld, 0.0);
    for (size_t i = 0; i < n_priors; ++i)
        std::copy(prior_information.data() + i * k, prior_information.data() + (i + 1) * k, information.begin() + i * ld);
    const DrawProblem problem{padded.other.get(), offset.data(), own_precision.data(), other_precision.data(),
                              precision.data(), information.data(), n_priors > 1 ? ld : 0,
                              prior_scale.shape(0) > 0 ? prior_scale.data() : nullptr,
                              ld, static_cast<int>(k), df, seed, sweep,
                              same_stream, own.data(), z.data(), weighted ? exact_weight.data() : nullptr,
                              weighted ? censored_weight.data() : nullptr, squares.data()};
    return over_chunks(chunks_of(cells, static_cast<int>(k)), threads, [&](int64_t begin, int64_t end) {
        return current_isa->draw_rows(problem, cells, begin, end);
    });
}

// The unknown cells of rows from normal distributions of classes, in place; one stream for each row.
double draw_normal_rows(OutMatrix<double> rows, In<int64_t> label, Matrix<double> mean, In<double> precision,
                        In<int64_t> ptr, In<int32_t> idx, In<double> lower, In<double> upper, uint64_t seed,
                        uint64_t sweep, bool same_stream, int threads) {
    const size_t n = rows.shape(0), p = rows.shape(1), n_classes = mean.shape(0);
    require(label.shape(0) == n && ptr.shape(0) == n + 1 && mean.shape(1) == p &&
                precision.shape(0) == n_classes * p * p,
            "shapes disagree");
    require(idx.shape(0) == static_cast<size_t>(ptr.data()[n]) && lower.shape(0) == idx.shape(0) &&
                upper.shape(0) == idx.shape(0),
            "unknown cells disagree with their pointers");
    const nb::gil_scoped_release release;
    const int ld = kernels<double>().padded(static_cast<int>(p));
    std::vector<double> padded(n_classes * p * ld, 0.0);
    for (size_t a = 0; a < n_classes * p; ++a)
        std::copy(precision.data() + a * p, precision.data() + (a + 1) * p, padded.begin() + a * ld);
    const NormalProblem problem{mean.data(), padded.data(), label.data(), ptr.data(), idx.data(), lower.data(),
                                upper.data(), static_cast<int>(p), ld, seed, sweep, same_stream, rows.data()};
    const auto ends = chunk_ends(n, kChunkWork, [&](int64_t i) { return ptr.data()[i] + i; });
    return over_chunks(ends, threads, [&](int64_t begin, int64_t end) {
        return current_isa->draw_normal_rows(problem, begin, end);
    });
}

// Independent draws, one stream for each cell.
void truncated_normals(In<double> mean, In<double> sd, In<double> lower, In<double> upper, uint64_t seed,
                       uint64_t sweep, Out<double> out, int threads) {
    const size_t n = mean.shape(0);
    require(sd.shape(0) == n && lower.shape(0) == n && upper.shape(0) == n && out.shape(0) == n, "shapes disagree");
    const nb::gil_scoped_release release;
    const auto ends = chunk_ends(n, kChunkWork, [](int64_t i) { return i; });
    over_chunks(ends, threads, [&](int64_t begin, int64_t end) {
        for (int64_t c = begin; c < end; ++c) {
            Stream random(seed, sweep, static_cast<uint32_t>(c));
            out.data()[c] =
                truncated_normal(mean.data()[c], sd.data()[c], lower.data()[c], upper.data()[c], random);
        }
        return 0.0;
    });
}

std::vector<uint32_t> philox_words(std::vector<uint32_t> counter, std::vector<uint32_t> key) {
    require(counter.size() == 4 && key.size() == 2, "four words of counter and two of key");
    const PhiloxBlock block = philox({{counter[0], counter[1], counter[2], counter[3]}}, key[0], key[1]);
    return {block.word, block.word + 4};
}

}  // namespace declip

// An array argument that is never copied or cast on the way in: what is written must reach the caller.
auto as_is(const char* name) { return nb::arg(name).noconvert(); }

template <class T>
void define(nb::module_& m) {
    using namespace declip;
    const std::string suffix = sizeof(T) == 4 ? "32" : "64";
    nb::class_<Cells<T>>(m, ("Cells" + suffix).c_str());
    nb::class_<RowProblem<T>>(m, ("RowProblem" + suffix).c_str());
    m.def(
        "cells",
        [](In<int64_t> exact_ptr, In<int32_t> exact_idx, In<T> value, In<int64_t> censored_ptr,
           In<int32_t> censored_idx, In<T> lower, In<T> upper, In<T> exact_weight, In<T> censored_weight,
           In<T> censored_scale) {
            return Cells<T>(exact_ptr, exact_idx, value, censored_ptr, censored_idx, lower, upper, exact_weight,
                            censored_weight, censored_scale);
        },
        as_is("exact_ptr"), as_is("exact_idx"), as_is("value"), as_is("censored_ptr"), as_is("censored_idx"),
        as_is("lower"), as_is("upper"), as_is("exact_weight"), as_is("censored_weight"), as_is("censored_scale"));
    m.def(
        "row_problem",
        [](const Cells<T>& cells, Matrix<T> other, In<T> offset, In<T> ridge, const LossSpec& loss, Matrix<T> centre,
           In<T> row_ridge) { return RowProblem<T>(cells, other, offset, ridge, loss, centre, row_ridge); },
        nb::arg("cells"), as_is("other"), as_is("offset"), as_is("ridge"), nb::arg("loss"), as_is("centre"),
        as_is("row_ridge"));
    m.def("update_rows", &update_rows<T>, nb::arg("rows"), as_is("own"), nb::arg("inner_steps"), nb::arg("cg_steps"),
          nb::arg("inner_tol"), nb::arg("half"), nb::arg("threads"));
    m.def("residuals", &residuals<T>, nb::arg("rows"), as_is("own"), as_is("exact_out"), as_is("censored_out"),
          nb::arg("threads"));
    m.def("newton_sums", &newton_sums<T>, nb::arg("rows"), as_is("own"), as_is("out"), nb::arg("threads"));
    m.def("step_trial", &step_trial<T>, nb::arg("rows"), as_is("own"), as_is("step"), as_is("lengths"), as_is("out"),
          nb::arg("threads"));
    m.def("newton_solve", &newton_solve<T>, as_is("sums"), as_is("own"), as_is("ridge"), as_is("step"), as_is("slope"),
          nb::arg("threads"));
    m.def("predict", &predict<T>, as_is("rows"), as_is("cols"), as_is("own"), as_is("other"), as_is("out"),
          nb::arg("threads"));
}

NB_MODULE(_kernels, m) {
    using namespace declip;
#ifndef __SANITIZE_ADDRESS__
    // What a cache or a thread still holds when Python ends is no leak that a user should hear of.
    nb::set_leak_warnings(false);
#endif
    nb::class_<LossSpec>(m, "Loss");
    m.def("loss", &loss_of_name, nb::arg("name"), nb::arg("scale") = 0.0);
    define<float>(m);
    define<double>(m);
    m.def("interval_loss", &interval_loss, as_is("x"), as_is("lower"), as_is("upper"), nb::arg("loss"),
          as_is("value"), as_is("gradient"), as_is("curvature"), nb::arg("threads"));
    m.def("draw_rows", &draw_rows, nb::arg("cells"), as_is("z"), as_is("exact_weight"), as_is("censored_weight"),
          as_is("own"), as_is("other"), as_is("offset"), as_is("prior_precision"), as_is("prior_information"),
          as_is("prior_scale"), as_is("own_precision"), as_is("other_precision"), nb::arg("df"), nb::arg("seed"), nb::arg("sweep"),
          nb::arg("same_stream"), as_is("squares"), nb::arg("threads"));
    m.def("draw_normal_rows", &draw_normal_rows, as_is("rows"), as_is("label"), as_is("mean"), as_is("precision"),
          as_is("ptr"), as_is("idx"), as_is("lower"), as_is("upper"), nb::arg("seed"), nb::arg("sweep"),
          nb::arg("same_stream"), nb::arg("threads"));
    m.def("truncated_normals", &truncated_normals, as_is("mean"), as_is("sd"), as_is("lower"), as_is("upper"),
          nb::arg("seed"), nb::arg("sweep"), as_is("out"), nb::arg("threads"));
    m.def("philox", &philox_words);
    m.def("use_isa", &use_isa);
    m.def("isa_names", &isa_names);
    m.def("current_isa", [] { return std::string(current_isa->name); });
}
