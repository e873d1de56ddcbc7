// What the kernels read, and the table of entry points that each instruction set fills in.
#pragma once

#include <cstdint>

// The cells of one row: exact ones with a value, censored ones with an interval.
template <class T>
struct RowCells {
    int64_t exact_begin, n_exact, censored_begin, n_censored;
    const int32_t* exact_idx;
    const T* value;
    const int32_t* censored_idx;
    const T* lower;
    const T* upper;
    const T* exact_weight;  // read where cells are weighted
    const T* censored_weight;
    const T* censored_scale;  // of the noise of each cell, or null: that of the loss
};

// All rows, compressed: the cells of row i are [ptr[i], ptr[i + 1]).
template <class T>
struct CellsView {
    int64_t n_rows;
    const int64_t* exact_ptr;
    const int32_t* exact_idx;
    const T* value;
    const int64_t* censored_ptr;
    const int32_t* censored_idx;
    const T* lower;
    const T* upper;
    bool weighted = false;
    const T* exact_weight = nullptr;
    const T* censored_weight = nullptr;
    const T* censored_scale = nullptr;  // or null: the scale of the loss
};

// The loss of a censored cell, as it is named outside of the kernels; the kinds stand in loss.hpp.
enum class LossKind : int;
struct LossSpec {
    LossKind kind;
    double scale;  // of the noise; the hinge has none
};

// The other side's factors, padded to ld columns, and how to lower the objective of a row.
template <class T>
struct Problem {
    const T* other;
    const uint16_t* half;  // the same in half precision; where it is given, other is not read
    const T* offset;       // of the columns, or null: all are `shift`
    T shift;
    const T* ridge;
    int64_t n_other;       // rows of other
    bool nearly_full;      // most cells are exact: what is not costs less to count
    int ld;                // padded number of factors
    int k;                 // number of factors
    LossSpec loss;
    int inner_steps;       // Newton steps a row at most
    int cg_steps;          // 0: Cholesky
    double inner_tol;      // stop when a step can gain less than this share of the row's objective
    const T* centre = nullptr;     // of each row, k numbers: what the ridge draws its factors to; or null: 0
    const T* row_ridge = nullptr;  // by what the ridge of each row is multiplied, or null: 1
};

// Lowers the objective of rows, one chunk after the other, in scratch of its own: one for each thread.
struct RowWorker {
    virtual double rows(int64_t begin, int64_t end) = 0;  // returns the loss of their cells, without the ridge
    virtual ~RowWorker() {}
};

template <class T>
struct Kernels {
    int (*padded)(int k);
    void (*narrow)(const T* row, int ld, uint16_t* out);  // null where the processor has no half precision
    RowWorker* (*sweep_worker)(const Problem<T>&, const CellsView<T>&, T* own);
    double (*residual_rows)(const Problem<T>&, const CellsView<T>&, const T* own, int k, int64_t begin,
                            int64_t end, T* exact_out, T* censored_out);
    // A Newton step in parts (see partial.hpp).
    double (*newton_sums)(const Problem<T>&, const CellsView<T>&, const T* own, int64_t begin, int64_t end, T* out);
    double (*step_trial)(const Problem<T>&, const CellsView<T>&, const T* own, const T* step, const double* lengths,
                         int n_lengths, int64_t begin, int64_t end, double* out);
    double (*newton_solve)(const T* sums, const T* own, const T* ridge, int k, int ld, int64_t begin, int64_t end,
                           T* step, double* slope);
};

// The rows of one side to draw anew, given the other side's factors, padded to ld columns (see gibbs.hpp).
struct DrawProblem {
    const double* other;
    const double* offset;
    const double* own_precision;
    const double* other_precision;
    const double* prior_precision;    // ld x ld
    const double* prior_information;  // prior precision times prior mean: of all rows, or of each
    int64_t information_stride;       // from row to row: 0 or ld
    const double* prior_scale;        // by what the prior precision of each row is multiplied, or null: 1
    int ld, k;
    double df;  // of Student t noise, where there are weights
    uint64_t seed, sweep;
    bool same_stream;  // every row draws the same random numbers
    double* own;
    double* z;             // the censored cells
    double* exact_weight;  // or null: Gaussian noise
    double* censored_weight;
    double* squares;  // out: weighted squared residuals of each row over the other side's variance
};

// Rows from normal distributions of classes, whose unknown cells are drawn in place (see normal.hpp).
struct NormalProblem {
    const double* mean;       // of each class
    const double* precision;  // of each class: p rows padded to ld with zeros
    const int64_t* label;     // the classes of the rows
    const int64_t* ptr;       // the unknown cells of row i are [ptr[i], ptr[i + 1])
    const int32_t* idx;
    const double* lower;
    const double* upper;
    int p, ld;
    uint64_t seed, sweep;
    bool same_stream;  // every row draws the same random numbers
    double* rows;
};

struct IsaKernels {
    const char* name;
    Kernels<float> f32;
    Kernels<double> f64;
    double (*draw_rows)(const DrawProblem&, const CellsView<double>&, int64_t begin, int64_t end);
    double (*draw_normal_rows)(const NormalProblem&, int64_t begin, int64_t end);
};

extern const IsaKernels kernels_baseline;
#ifdef DECLIP_X86
extern const IsaKernels kernels_avx2;
#endif
