// Compiled once for each instruction set (DECLIP_ISA); everything it includes has internal linkage.
#include "gibbs.hpp"
#include "normal.hpp"
#include "partial.hpp"
#include "sweep.hpp"

#define DECLIP_JOIN_(a, b) a##b
#define DECLIP_JOIN(a, b) DECLIP_JOIN_(a, b)
#define DECLIP_TEXT_(a) #a
#define DECLIP_TEXT(a) DECLIP_TEXT_(a)

extern const IsaKernels DECLIP_JOIN(kernels_, DECLIP_ISA);
const IsaKernels DECLIP_JOIN(kernels_, DECLIP_ISA) = {
    DECLIP_TEXT(DECLIP_ISA),
    {SweepImpl<float>::padded, SweepImpl<float>::narrow(), SweepImpl<float>::worker, SweepImpl<float>::residuals, PartialImpl<float>::sums,
     PartialImpl<float>::trial, PartialImpl<float>::solve},
    {SweepImpl<double>::padded, SweepImpl<double>::narrow(), SweepImpl<double>::worker, SweepImpl<double>::residuals, PartialImpl<double>::sums,
     PartialImpl<double>::trial, PartialImpl<double>::solve},
    draw_rows,
    draw_normal_rows,
};
