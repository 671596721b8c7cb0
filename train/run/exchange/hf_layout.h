#pragma once
// Where the numbers of a model are in Hugging Face transformers. Names and shapes are those of
// difftape; what differs is the order of rows and, of V1, the norm of each head:
//
//   rotation   turns feature j of a head with j + D/2, where difftape turns 2i with 2i + 1: rows
//              0, 2, 4, ... of a head of q_proj and k_proj come first, then rows 1, 3, 5, ...
//   maps       DiffLlama subtracts query head i + H/2 from i, where difftape subtracts 2i + 1 from
//              2i: heads 0, 2, 4, ... come first, those of keys likewise. Its wide value head is
//              v_proj's heads i and i + KV/2 of width D, in difftape 2i and 2i + 1
//   subln      DiffLlama has no weights there. They follow the norm and precede o_proj, whose
//              columns are multiplied by them

#include <vector>

#include "core/tensor.h"
#include "layers/model_config.h"

namespace difftape::run {

/// The row of difftape's parameter that each row of transformers' is; empty: the same one.
std::vector<Index> hf_rows(const std::string& parameter, const ModelConfig& model);

/// y[i] = x[rows[i]], for matrices (rows, columns); and the way back, y[rows[i]] = x[i].
Tensor reordered(const Tensor& x, const std::vector<Index>& rows, bool back);
inline Tensor in_hf_order(const Tensor& x, const std::vector<Index>& rows) {
  return reordered(x, rows, false);
}
inline Tensor in_own_order(const Tensor& x, const std::vector<Index>& rows) {
  return reordered(x, rows, true);
}

/// Whether o_proj there holds its product with the weights of subln.
bool folds_subln(const ModelConfig& model);

/// o_proj (C, heads * E) with each column multiplied by its weight of subln (E).
Tensor with_subln(const Tensor& o_proj, const Tensor& subln);
/// Whether `folded`, of numbers of that type, is this product, bit for bit.
bool is_product(const Tensor& folded, const Tensor& o_proj, const Tensor& subln,
                std::string_view dtype);

/// The names of the two parameters of a layer, and how the second one ends.
std::string o_proj_name(Index layer);
std::string subln_name(Index layer);
inline constexpr std::string_view kSublnSuffix = ".subln.weight";

}  // namespace difftape::run
