// SPDX-License-Identifier: Apache-2.0
// A network as AccPar sees it: layers with three lengths each and the tensors between them. Elements and lengths are
// real numbers, because a ratio may cut through a unit where whole units are not asked for.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/search/accpar/states.h"

namespace turnpoint::accpar {

enum class LayerKind : std::uint8_t { fully_connected, convolution, attention, embedding, experts, recurrent };
std::string_view to_string(LayerKind kind);

enum class Phase : std::uint8_t { forward, backward, gradient };
inline constexpr std::size_t kPhases = 3;

struct Layer {
  std::string name;
  LayerKind kind = LayerKind::fully_connected;
  std::array<double, kTypes> lengths{1, 1, 1};  ///< units that each type can cut; `output` counts those of one group
  double groups = 1;                            ///< while there are two or more, type III cuts between them
  double input = 0;                             ///< elements of F_l
  double input_error = 0;                       ///< elements of E_l; 0 where nobody wants the error of the input
  double output = 0;                            ///< elements of F_l+1 where it is summed (before a pooling)
  double weights = 0;                           ///< trainable elements; 0 for a product of two activations
  std::array<double, kPhases> products{};       ///< multiply-accumulates of each phase

  bool grouped() const { return groups >= 2; }
  double units(Type type) const {
    return type == Type::output && grouped() ? groups : lengths[static_cast<std::size_t>(type)];
  }
  /// Of one phase: every element of the result is a sum of products, one addition fewer than there are products
  /// (A(F_l+1) (2 D_i - 1) forward, and so on).
  double flop(Phase phase) const;
  double flop() const;
  /// Elements that both halves have partial sums of and exchange: W's gradient, F_l+1, E_l.
  double summed(Type type) const;
};

enum class Side : std::uint8_t { in, out };

/// A tensor that changes from the state at one end to that at the other; its error goes the other way.
/// Between a layer and the next: out of `from`, in to `to`. An identity shortcut goes from the *in* side of the first
/// layer of its block to the *out* side of the block's last layer, which is where it is added; a branch that is added
/// or concatenated goes from its own out side to that of the branch it joins.
struct Edge {
  std::uint32_t from = 0, to = 0;
  Side from_side = Side::out, to_side = Side::in;
  double forward = 0;   ///< elements of the tensor
  double backward = 0;  ///< of its error; 0 where nobody wants it

  bool is_input() const { return from_side == Side::out && to_side == Side::in; }
};

struct LayerGraph {
  std::vector<Layer> layers;  ///< producers before their consumers
  std::vector<Edge> edges;
};

Layer fully_connected(std::string name, double batch, double inputs, double outputs);
/// Maps and kernels as their numbers of positions (height x width). The map of the output is the one that is counted
/// as moved and summed; published tables give it after the pooling.
Layer convolution(std::string name, double batch, double inputs, double in_positions, double kernel_positions,
                  double outputs, double out_positions);

/// The next layer's input as it comes from `from`: all of it, both ways.
Edge edge_between(const LayerGraph& graph, std::uint32_t from, std::uint32_t to);
/// The identity around the layers `first` to `last`.
Edge shortcut_around(const LayerGraph& graph, std::uint32_t first, std::uint32_t last);
LayerGraph chain(std::vector<Layer> layers);

/// Errors: a layer or an edge with negative, infinite or missing numbers, named.
Expected<void> validate(const LayerGraph& graph);

/// What one half holds once the layer is cut: type I shrinks the batch of every tensor, II the reduction of input and
/// weights, III the output of weights and result (and the input where groups are cut).
void cut(Layer& layer, Type type, double share);
/// How much of a tensor at one side of the layer remains.
double remaining(const Layer& uncut, Side side, Type type, double share);
/// The whole graph by types and shares, one of each per layer. A tensor shrinks with the end that receives it: only
/// with this convention come the volumes of the authors' program out.
LayerGraph cut(const LayerGraph& graph, const std::vector<Type>& types, const std::vector<double>& shares);

/// Every layer's input comes from one layer: the chain of a chain, and of any other graph what is left when shortcuts
/// and all inputs but the one from the latest producer are dropped.
LayerGraph spine(const LayerGraph& graph);

/// For each layer the edge that brings its input (of several the one from the latest producer), or kNoEdge.
inline constexpr std::uint32_t kNoEdge = 0xffffffff;
std::vector<std::uint32_t> main_inputs(const LayerGraph& graph);

}  // namespace turnpoint::accpar
