// SPDX-License-Identifier: Apache-2.0
// The frontier problem of a model on a mesh, without costs: which choices there are and which pairs of them interact.
// It depends on model, mesh and legality only, so a slider never rebuilds it. Equal operators (layers) share their
// configurations and equal pairs share one table, which is what keeps 96 layers as cheap as one.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/progress.h"
#include "core/cost/layout.h"
#include "core/cost/memory_choice.h"
#include "core/cost/tensor_use.h"
#include "core/scenario/scenario.h"

namespace turnpoint::search {

/// Distinct layouts of one access over the configurations of an operator.
struct LayoutClasses {
  std::vector<Layout> layouts;
  std::vector<std::uint32_t> of;  ///< configuration -> index into layouts
  std::vector<char> again;  ///< per class, of an operator that carries RunAgain: whether it runs again; else empty
};

/// What operators of equal shape have in common.
struct OperatorChoices {
  std::vector<Configuration> configurations;
  std::vector<char> again;            ///< per configuration, where the operator carries RunAgain: whether it runs again
  std::vector<LayoutClasses> inputs;  ///< gradient layouts; their forward layout is the same without partial axes
  std::vector<LayoutClasses> outputs;  ///< forward layouts, partial axes included; where the output may be computed
                                       ///< again, configurations of one class also have the same local sizes
};

/// One decision: the configuration of an operator, or the shared layout of a tensor with several consumers (its states
/// are input-like layouts: partial axes say that gradients are summed only after they have met there).
struct Variable {
  OperatorId op;                                   ///< invalid for a shared tensor
  std::uint32_t flow = 0;                          ///< of a shared tensor: index into TensorUses::flows
  std::shared_ptr<const OperatorChoices> choices;  ///< of an operator
  std::shared_ptr<const LayoutClasses> states;     ///< of a shared tensor
  std::uint32_t cost_group = 0;                    ///< operators with equal costs
  std::size_t size() const { return choices ? choices->configurations.size() : states->layouts.size(); }
};

enum class PairKind : std::uint8_t { direct, to_shared, from_shared, tie };
/// Only then may the `from` layout be partial in forward; elsewhere partial axes speak of gradients.
inline bool pair_starts_at_output(PairKind kind) { return kind == PairKind::direct || kind == PairKind::to_shared; }

/// Everything a pair's cost table depends on, apart from prices: pairs that are equal in these share one.
struct PairTraits {
  PairKind kind = PairKind::direct;
  std::vector<std::int64_t> shape;
  int element_bytes = 4;
  bool gradient = true;         ///< the tensor's gradient travels back
  bool before_is_kept = false;  ///< the copy before is there anyway (the producer is a view of a kept tensor)
  bool producer_reads = false;  ///< TensorFlow::producer_copy_is_here()
  bool restores = false;        ///< ... and backward may make that copy again from the one after
  bool stored_once = false;     ///< of a shared tensor no copy but the shared one is kept
  bool gathers_again = false;   ///< of a gathered tensor the smaller copy before is kept, never the one after
  bool consumer_saves = false;  ///< direct, from_shared: this consumer; to_shared: any consumer
  bool several_save = false;    ///< to_shared: backward of more than one consumer reads it
  bool producer_again = false;  ///< the producer may run again in backward, as RunAgain::folded has it
  bool always_again = false;    ///< ... and whenever it can, it does
  /// The producer keeps nothing of its own: a consumer that runs again needs it to run again, too.
  bool producer_must_agree = false;
  /// To be compared alone: equal operators share their lists, so that the addresses identify them.
  const LayoutClasses *from_classes = nullptr, *to_classes = nullptr;
  friend auto operator<=>(const PairTraits&, const PairTraits&) = default;
};

struct PairTable : PairTraits {
  OperatorId again;                                ///< where producer_again: that producer or its like
  std::vector<Configuration> from_configurations;  ///< where `again` is valid: one of each class of `from`
  std::vector<char> from_again, to_again;          ///< LayoutClasses::again of either end
  std::vector<Layout> from, to;
};

struct Pair {
  std::uint32_t from = 0, to = 0;  ///< variables
  std::uint32_t table = 0;
  std::uint32_t flow = 0;      ///< index into flows (or ties, for a tie)
  std::uint32_t consumer = 0;  ///< index into the flow's consumers (direct, from_shared)
  const LayoutClasses* from_classes = nullptr;
  const LayoutClasses* to_classes = nullptr;
};

struct ReshardQuestions;
struct Forced;

struct Structure {
  ModelPtr model;
  Mesh mesh;
  int merged_axes = 0;  ///< > 0: `mesh` is search_mesh() with so many axes, else make_mesh()
  Precision precision = Precision::fp32;
  bool split_windows = false;
  bool split_inputs = false;   ///< loaders hand every device samples of its own, as the papers count
  bool memory_choices = true;  ///< operators choose how they keep, update and recompute; else all do the plain thing
  std::optional<MemoryChoice> choice;  ///< of every operator, where the method says which
  std::vector<MemoryChoice> choices;   ///< [operator], where it says of each
  std::vector<char> again;  ///< [operator], where the method says which run again in backward, as far as they can
  std::vector<std::shared_ptr<const Forced>> forced;  ///< [operator], what a person asks of it (forced.h); else empty
  bool recompute = false;
  bool sharded_tensors = false;
  bool gathers_again = false;
  bool fewest_collectives = false;
  int micro_batches = 1;  ///< `model` is that of one of them
  TensorUses uses;
  std::vector<Variable> variables;  ///< operators first, in model order
  std::vector<Pair> pairs;
  std::vector<PairTable> tables;
  std::shared_ptr<const ReshardQuestions> questions;         ///< of the tables
  std::vector<std::shared_ptr<const LayoutClasses>> turned;  ///< layouts of tied weights that are used transposed
  std::uint32_t cost_groups = 0;
  std::vector<std::uint32_t> group_example;  ///< cost group -> a variable of it
};

/// Which configurations an operator may take, at least one (the comparison methods).
using ConfigurationFilter = std::function<std::vector<Configuration>(OperatorId, const Operator&, const Mesh&)>;
/// What a method searches over.
struct SearchSpace {
  ConfigurationFilter only;            ///< if given, restricts every operator
  bool memory_choices = true;          ///< as far as the scenario's switches allow
  std::optional<MemoryChoice> choice;  ///< if given, what every operator does; memory_choices then counts for nothing
  std::vector<MemoryChoice> choices;   ///< the same, [operator]; empty: not given
  /// With `choice`, [operator]: runs again in backward, as far as it can, instead of what it would keep.
  std::vector<char> again;
  /// Every tensor between operators is stored once, split over as many axes as divide it (ToFu): producers scatter into
  /// that layout, consumers gather from it, again in backward, and no other copy is kept.
  bool sharded_tensors = false;
  /// What readers have gathered is always kept as it lay before, and gathered again in backward (Megatron's sequence
  /// parallelism).
  bool gathers_again = false;
  /// A change of layout is as few collectives as will do it: what training engines call.
  bool fewest_collectives = false;
  /// The scenario is one micro-batch of so many that an iteration goes through.
  int micro_batches = 1;
};
Expected<std::shared_ptr<const Structure>> build_structure(const Scenario& scenario, const SearchSpace& space,
                                                           const RunContext& context);

/// True if the structure of `a` serves scenario `b` as well (only prices differ).
bool same_structure(const Structure& a, const Scenario& b);

}  // namespace turnpoint::search
