#pragma once
// Products with few rows on the left, where packing the right operand would cost more than the
// product: a token at a time, as generation multiplies.

#include "core/gemm.h"

namespace difftape {

/// Returns true for such a product: up to 8 rows of A, whose elements lie side by side, as those of
/// the columns of B do.
bool are_few_rows(const Operand& a, const Operand& b);

/// C = start + A B, where `start` has the strides of C, or is null: 0. It may be C. Every element
/// is one sum, whose order depends on the inner size and the number of rows.
void multiply_few_rows(const real* start, const Operand& a, const Operand& b, real* c,
                       Index c_stride);

}  // namespace difftape
