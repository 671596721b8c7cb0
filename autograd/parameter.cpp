#include "autograd/parameter.h"

#include <fmt/format.h>

#include <stdexcept>

#include "core/random.h"

namespace difftape {

Parameter& ParameterSet::declare(std::string name, Shape shape, Role role, Init init,
                                 ModelPart part) {
  if (find(name) != nullptr) throw std::logic_error("parameter declared twice: " + name);
  Parameter& declared = parameters_.emplace_back(
      Parameter{std::move(name), shape, role, init, std::move(part), parameters_.size()});
  by_name_.emplace(declared.name, &declared);
  return declared;
}

Module Module::operator/(std::string_view child) const {
  Module below{parameters, fmt::format("{}.{}", name, child), part};
  if (part.name.empty()) below.part.name = child;
  return below;
}

Parameter& Module::declare(std::string_view suffix, Shape shape, Role role, Init init) const {
  Module self = *this / suffix;
  return parameters.declare(std::move(self.name), shape, role, init, std::move(self.part));
}

void ParameterSet::initialize(std::uint64_t seed) {
  for (Parameter& p : parameters_) {
    p.value = Tensor::empty(p.shape);
    p.grad = Tensor::empty(p.shape);
    p.has_gradient = false;
    if (p.init.kind == Init::Kind::constant) {
      p.value.fill(static_cast<real>(p.init.value));
    } else {
      fill_normal(p.value, RandomStream(seed, p.name), p.init.value);
    }
  }
}

Parameter* ParameterSet::find(std::string_view name) {
  const auto found = by_name_.find(name);
  return found == by_name_.end() ? nullptr : found->second;
}

Index ParameterSet::count() const {
  Index total = 0;
  for (const Parameter& p : parameters_) total += p.shape.size();
  return total;
}

}  // namespace difftape
