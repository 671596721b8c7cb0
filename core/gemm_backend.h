#pragma once
// The choice of the library that multiplies the tiles of a matrix product: libxsmm, which generates
// kernels at run time, or portable loops with the same bits on every processor. Products in
// bfloat16 use pairs (core/tile.h).

#include <string>

#include "core/names.h"
#include "core/precision.h"

namespace difftape {

/// Returns one sentence on why this machine or program does not support `precision`, or "".
std::string unsupported_reason(Precision precision);

/// The code that multiplies the tiles of `real`.
enum class Engine {
  fast,      ///< the fastest available: libxsmm if built in
  portable,  ///< loops whose bits are the same on every processor with fused multiply-add
};
constexpr auto names_of(Engine) {
  return std::to_array<Named<Engine>>({{"auto", Engine::fast}, {"portable", Engine::portable}});
}
/// Returns one sentence on why this program does not support `engine`, or "".
std::string unsupported_reason(Engine engine);

/// Makes all threads use Engine::portable while it lives; has no effect with Engine::fast.
class EngineScope {
 public:
  explicit EngineScope(Engine engine);
  ~EngineScope();
  EngineScope(const EngineScope&) = delete;
  EngineScope& operator=(const EngineScope&) = delete;

 private:
  bool portable_;
};

/// Returns the name of the backend in use, "libxsmm 1.17 (cpx)" or "portable". Throws UsageError if
/// the environment variable DIFFTAPE_GEMM names an unavailable one; programs call it first.
const char* gemm_backend();

/// Returns the name of the units for bfloat16, "" if there are none.
std::string bf16_backend_name();

}  // namespace difftape
