#pragma once
// Products of few rows, as in generation token by token, where packing the right operand would cost
// more than the product.

#include "core/gemm.h"

namespace difftape {

/// Returns true for up to 8 rows of A if rows of A and columns of B are contiguous.
bool are_few_rows(const Operand& a, const Operand& b);

/// Computes C = start + A B. `start` has the stride of C and may be C; null means 0. The order of a
/// sum depends on the inner size and the number of rows.
void multiply_few_rows(const real* start, const Operand& a, const Operand& b, real* c,
                       Index c_stride);

}  // namespace difftape
