#pragma once
// Which library multiplies the tiles of a matrix product, and in which precision: libxsmm (kernels
// generated at run time) or, where it is missing or not wanted, loops of our own whose bits are the
// same on every processor; oneDNN or libxsmm for bfloat16.

#include <string>

namespace difftape {

/// What the operands of a product are rounded to first; products are summed as `real` in any case.
/// bfloat16 is multiplied by the processor's own units, or, if emulated, as `real`: the same
/// rounding on every machine.
enum class Precision {
  full,  ///< nothing
  bf16,  ///< bfloat16 (Micikevicius et al. 2018)
  bf16_emulated,
  bf16x3,  ///< the sum of two bfloat16s, of whose four products three are made (Henry et al. 2019)
  bf16x3_emulated,
  bf16x6,  ///< the sum of three, of whose nine products six are made: as exact as f32
  bf16x6_emulated,
};
/// How many bfloat16s stand for a number; 0: it stays as it is.
constexpr int parts_of(Precision precision) {
  switch (precision) {
    case Precision::full:
      return 0;
    case Precision::bf16:
    case Precision::bf16_emulated:
      return 1;
    case Precision::bf16x3:
    case Precision::bf16x3_emulated:
      return 2;
    case Precision::bf16x6:
    case Precision::bf16x6_emulated:
      return 3;
  }
  return 0;
}
constexpr bool is_emulated(Precision precision) {
  return precision == Precision::bf16_emulated || precision == Precision::bf16x3_emulated ||
         precision == Precision::bf16x6_emulated;
}
/// Why this machine or program does not support `precision`: one sentence, empty if it does.
std::string unsupported_reason(Precision precision);

/// What multiplies the tiles of `real`.
enum class Engine {
  fast,      ///< what is fastest here: libxsmm where it is built in
  portable,  ///< loops whose bits are the same on every processor with fused multiply-add
};
/// Why this program does not support `engine`: one sentence, empty if it does.
std::string unsupported_reason(Engine engine);

/// While one of Engine::portable lives, that multiplies, in all threads; those of Engine::fast
/// change nothing.
class EngineScope {
 public:
  explicit EngineScope(Engine engine);
  ~EngineScope();
  EngineScope(const EngineScope&) = delete;
  EngineScope& operator=(const EngineScope&) = delete;

 private:
  bool portable_;
};

/// What multiplies tiles here: "libxsmm 1.17 (cpx)" or "portable". Throws UsageError if
/// DIFFTAPE_GEMM in the environment names a backend that is not available; programs call it before
/// anything else.
const char* gemm_backend();

/// Chooses the backend by name, "libxsmm" or "portable"; DIFFTAPE_GEMM in the environment sets the
/// initial one. Throws UsageError for a backend that is not available here.
void set_gemm_backend(const char* name);

/// What multiplies tiles of bfloat16 here, "" if nothing does.
std::string bf16_backend_name();

}  // namespace difftape
