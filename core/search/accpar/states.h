// SPDX-License-Identifier: Apache-2.0
// The three ways to cut a layer in two and the rule by which tensors change hands between layers (AccPar: Song et al.,
// HPCA 2020, sections 3 and 4). A layer multiplies its input F_l (batch x reduction) by its weights W (reduction x
// output) to F_l+1 (batch x output). Exactly one of the three lengths is cut at a time:
//
//   type I    cuts the batch       W is whole on both halves, its gradient is summed
//   type II   cuts the reduction   F_l+1 is summed, its error is whole on both halves
//   type III  cuts the output      F_l is whole on both halves, its error E_l is summed
//
// What a half holds of a tensor is a state. All costs between layers follow from states, so the same rule prices
// chains, identity shortcuts and branches.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace turnpoint::accpar {

enum class Type : std::uint8_t { batch, reduction, output };
inline constexpr std::size_t kTypes = 3;
inline constexpr std::array<Type, kTypes> kAllTypes = {Type::batch, Type::reduction, Type::output};

inline std::string_view to_string(Type type) {
  constexpr std::array<std::string_view, kTypes> kNames = {"I", "II", "III"};
  return kNames[static_cast<std::size_t>(type)];
}

/// Which part of a tensor one half holds: a share of the samples, a share of the features, or all of it.
enum class State : std::uint8_t { rows, columns, whole };

/// State in which a layer takes its input (and gives its error back). `grouped`: the layer is made of independent
/// groups (heads of attention, groups of a convolution, experts), and its third type cuts between them. Then a half
/// needs only the features of its own groups, and no error is summed. The paper has dense layers only.
constexpr State in_state(Type type, bool grouped) {
  switch (type) {
    case Type::batch: return State::rows;
    case Type::reduction: return State::columns;
    case Type::output: break;
  }
  return grouped ? State::columns : State::whole;
}

/// State in which a layer leaves its output (and takes its error).
constexpr State out_state(Type type) {
  switch (type) {
    case Type::batch: return State::rows;
    case Type::reduction: return State::whole;
    case Type::output: break;
  }
  return State::columns;
}

/// Which part of a tensor a half fetches from the other one so that what it holds in state `from`, a share `had` of the
/// whole, becomes state `to` with a share `wanted`. Nothing where the states agree or all is there already; between
/// rows and columns wanted * (1 - had), to the whole 1 - had. With one ratio for both layers these are the entries
/// alpha * beta and beta of the paper's table; layers cut into whole units may have shares that differ a little.
constexpr double fetched(State from, double had, State to, double wanted) {
  if (from == State::whole) return 0;
  if (to == State::whole) return 1 - had;
  if (from == to) return std::max(0.0, wanted - had);
  return wanted * (1 - had);
}

}  // namespace turnpoint::accpar
