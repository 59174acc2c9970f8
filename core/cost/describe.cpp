// SPDX-License-Identifier: Apache-2.0
// Layouts and configurations in words.
#include <algorithm>
#include <bit>

#include "core/cost/layout.h"
#include "core/cost/memory_choice.h"

namespace turnpoint {

namespace {

std::string axis_letters(const Mesh& mesh, std::uint32_t mask) {
  std::string letters;
  for (int a = 0; a < mesh.count(); ++a)
    if (mask >> a & 1u) letters += mesh.axes[a].name;
  return letters;
}

}  // namespace

std::string describe(const Mesh& mesh, const Layout& layout, const std::vector<DimName>& dims) {
  std::string text;
  const auto add = [&](std::string_view word, std::uint32_t mask) {
    if (mask == 0) return;
    if (!text.empty()) text += ", ";
    text.append(word).append(" ").append(axis_letters(mesh, mask));
  };
  for (std::size_t d = 0; d < dims.size(); ++d) add(to_string(dims[d]), layout.mask(static_cast<std::int8_t>(d)));
  add("partial", layout.mask(Layout::kPartial));
  return text.empty() ? "replicated" : "(" + text + ")";
}

std::string describe(const Mesh& mesh, const Configuration& configuration, const Operator& op) {
  struct Part {
    std::size_t dim;
    std::uint32_t mask;
    std::int64_t share;
  };
  std::vector<Part> parts;
  for (std::size_t l = 0; l < op.dims.size(); ++l) {
    std::uint32_t mask = 0;
    for (int a = 0; a < mesh.count(); ++a)
      if (configuration.axis[a] == static_cast<int>(l)) mask |= 1u << a;
    if (mask != 0) parts.push_back({l, mask, mesh.size_of(mask)});
  }
  // Of equal shares the outermost axis first, which a plan's file tells as well as its model does.
  std::sort(parts.begin(), parts.end(), [](const Part& x, const Part& y) {
    return x.share != y.share ? x.share > y.share : std::countr_zero(x.mask) < std::countr_zero(y.mask);
  });
  std::string text;
  for (const auto& part : parts) {
    if (!text.empty()) text += " \u00b7 ";
    text.append(to_string(op.dims[part.dim].name)).append(" ").append(axis_letters(mesh, part.mask));
  }
  return text.empty() ? "repeated" : text;
}

std::string describe(const Mesh& mesh, const MemoryChoice& choice) {
  std::string text;
  const auto add = [&](std::string_view words) { text.append(text.empty() ? "" : " \u00b7 ").append(words); };
  if (choice.recompute) add("recompute");
  if (choice.update != Update::replicated) {
    add("shard ");
    text += axis_letters(mesh, choice.update_axes);
    if (choice.update == Update::sharded_weights) text += " with weights";
    if (choice.gathers_first()) text += ", gathered before forward";
    if (choice.gather == WeightGather::before_forward_bf16) text += " in bf16";
  }
  if (choice.offload) add("offload");
  return text;
}

}  // namespace turnpoint
