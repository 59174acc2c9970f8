// SPDX-License-Identifier: Apache-2.0
#include "core/model/operator_kind.h"

#include <algorithm>

namespace turnpoint {

namespace {

using Kind = OperatorKind;

// Memory alone decides how long the kinds take that are timed as elementwise.
constexpr OperatorKindRecord kKinds[] = {
    {Kind::input, "input", "input", "elementwise"},
    {Kind::matmul, "matmul", "matmul", "matmul", true},
    {Kind::convolution, "convolution", "convolution", "convolution", true},
    {Kind::recurrent, "recurrent", "recurrent", "recurrent", true},
    {Kind::embedding, "embedding", "embedding", "embedding"},
    {Kind::scan, "scan", "scan", "scan", true},
    {Kind::elementwise, "elementwise", "elementwise", "elementwise"},
    {Kind::softmax, "softmax", "softmax", "softmax"},
    {Kind::attention, "attention", "fused attention", "attention", true},
    {Kind::normalisation, "normalisation", "normalisation", "normalisation"},
    {Kind::batch_normalisation, "batch-normalisation", "batch normalisation", "batch-normalisation"},
    {Kind::pooling, "pooling", "pooling", "pooling"},
    {Kind::reduction, "reduction", "reduction", "reduction"},
    {Kind::view, "view", "view", "elementwise"},
    {Kind::concat, "concat", "concat", "elementwise"},
    {Kind::slice, "slice", "slice", "elementwise"},
    {Kind::gather, "gather", "gather", "elementwise"},
    {Kind::loss_statistics, "loss-statistics", "statistics of a loss", "cross-entropy"},
    {Kind::cross_entropy, "cross-entropy", "cross entropy", "cross-entropy"},
    {Kind::opaque, "opaque", "unknown kind", "elementwise"},
};

constexpr bool in_order() {
  for (std::size_t i = 0; i < std::size(kKinds); ++i)
    if (static_cast<std::size_t>(kKinds[i].kind) != i) return false;
  return std::size(kKinds) == static_cast<std::size_t>(Kind::opaque) + 1;
}
static_assert(in_order(), "a kind is missing, or stands elsewhere than in the enumeration");

}  // namespace

std::span<const OperatorKindRecord> operator_kinds() { return kKinds; }

const OperatorKindRecord& record_of(OperatorKind kind) { return kKinds[static_cast<std::size_t>(kind)]; }

std::optional<OperatorKind> operator_kind(std::string_view name) {
  const auto found = std::find_if(std::begin(kKinds), std::end(kKinds), [&](const auto& one) { return one.name == name; });
  if (found == std::end(kKinds)) return std::nullopt;
  return found->kind;
}

}  // namespace turnpoint
