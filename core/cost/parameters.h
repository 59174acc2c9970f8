// SPDX-License-Identifier: Apache-2.0
// The parameters of one operator, in groups that lie alike on the mesh: what each group exchanges in one iteration to
// be read, summed and updated. Sources: resources/manual/costs.md, 5; Xu et al., arXiv 2004.13336 (sharded updates).
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "core/cost/layout.h"
#include "core/cost/memory_choice.h"
#include "core/cost/messages.h"
#include "core/cost/resharding.h"
#include "core/cost/tensor_use.h"
#include "core/model/model.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// Parameters of one operator that lie alike on the mesh: they are synchronised and updated as one.
struct ParameterGroup {
  std::uint32_t partial = 0;          ///< axes over which their gradient is a partial sum
  std::uint32_t whole = 0;            ///< axes that do not split them: partial, and those of repeated work
  std::vector<std::uint32_t> inputs;  ///< of the operator

  /// Axes among whose devices the update is shared out; 0: every holder updates all that it holds.
  std::uint32_t shards(const MemoryChoice& choice) const {
    return choice.update == Update::replicated ? 0 : choice.update_axes & whole;
  }
  friend bool operator==(const ParameterGroup&, const ParameterGroup&) = default;
};

/// Axes on which the gradient of the parameter at this input is partial, and on which the parameter is whole.
ParameterGroup parameter_group(const Operator& op, const Access& access, const Configuration& split, int axes);

/// The groups of those parameters that the operator owns (TensorUses::owns_parameter), by (partial, whole).
std::vector<ParameterGroup> parameter_groups(const Model& model, const TensorUses& uses, OperatorId id,
                                             const Configuration& split, int axes);

/// Among whom the update of an operator with these groups of parameters may be shared out: the sharing_groups() of
/// each, since what is near for one may be split for another; the most devices first.
std::vector<std::uint32_t> sharing_groups(const Mesh& mesh, const std::vector<ParameterGroup>& parameters);

/// Bytes of one group on one device, in the precision that travels.
struct ParameterTraffic {
  double gradient_bytes = 0, weight_bytes = 0;
  MessageSizes messages;
  std::vector<double> read_bytes;  ///< weights that forward and backward of all users read once, twice, ... or more
  std::vector<double> rerun_read_bytes;  ///< the same where the operator runs again
};

/// Bytes per parameter element. bf16 keeps weights, and gradients unless they are to be fp32, in 2 bytes and adds an
/// fp32 master copy to the optimizer state. `accounting` is that of the settings, or full for what travels and is read.
struct ParameterBytes {
  int weight = 4, gradient = 4, optimizer = 0;
};
ParameterBytes parameter_bytes(const Settings& settings, Accounting accounting);

/// The parameters of one group on one device, one by one.
class GroupElements {
 public:
  struct Parameter {
    std::int64_t elements = 0, rows = 1;   ///< here; rows of dimension 0
    int reads = 0, rerun_reads = 0;        ///< a gather each: in all, and in all where the operator runs again
    std::vector<std::int64_t> shape = {};  ///< here; for shards of tiles
    bool keeps_dimensions = false;         ///< sums over its rows or columns are made on shards (shard_format())
    bool products_alone = false;           ///< TensorUses::products_alone
  };
  void add(const Parameter& parameter);
  std::int64_t all() const { return all_; }
  bool any_for_products_alone() const;
  /// Elements of the largest shard among `shards` devices; of shards of whole rows or tiles every one, padding
  /// included.
  std::int64_t shard(const MemoryChoice& choice, std::int64_t shards) const;
  /// Bytes of weights that a device holds in a step: all or a shard, or the shard with what is gathered before forward.
  /// Where that has the precision of the weights, the shard is a part of it.
  std::int64_t held_bytes(const MemoryChoice& choice, std::int64_t shards, const ParameterBytes& bytes) const;
  /// What travels between so many shards, padding included; messages are left at 1.
  ParameterTraffic traffic(const MemoryChoice& choice, std::int64_t shards, const ParameterBytes& bytes) const;

 private:
  static std::int64_t padded(const Parameter& parameter, const MemoryChoice& choice, std::int64_t shards);

  std::int64_t all_ = 0;
  std::vector<Parameter> parameters_;
};

/// The parameter at an operator's input as it lies on one device, read as often as its owner is told.
GroupElements::Parameter local_parameter(const Model& model, const TensorUses& uses, OperatorId id, std::uint32_t input,
                                         const Mesh& mesh, const Layout& layout, Optimizer optimizer);

/// Bytes of one element of a weight as it is gathered for this choice.
int gathered_bytes(const MemoryChoice& choice, bool products_alone, const ParameterBytes& bytes);

/// Whether shards are of whole tiles on this hardware: of 8 x 128 elements, as TPUs hold tensors in.
bool holds_tiles(const Cluster& cluster);

/// What steps over a group of parameters are for, in the order of an iteration.
enum class ParameterRole : std::uint8_t { gather, sync, spread };
inline constexpr std::array kParameterRoles = {ParameterRole::gather, ParameterRole::sync, ParameterRole::spread};

/// The collectives of one iteration over one group, each over all its axes at once, as one call of a communication
/// library makes it, and priced as parts of the messages that they travel in.
struct ParameterSteps {
  ParameterGroup group;
  std::vector<ReshardStep> gather;  ///< of sharded weights: one all-gather per read, of all that is read so often
  std::vector<ReshardStep> sync;    ///< of the gradient: reduce-scatter over the sharded axes on which it is partial, a
                                    ///< free slice over those on which it is whole, all-reduce over the others
  std::vector<ReshardStep> spread;  ///< of the new weights behind a sharded update: one all-gather, or nothing

  const std::vector<ReshardStep>& steps(ParameterRole role) const;
  std::vector<ReshardStep>& steps(ParameterRole role);
};
/// `out` is written over, and its room used again.
void price_steps(StepPrices& prices, const ParameterGroup& group, const ParameterTraffic& traffic,
                 const MemoryChoice& choice, ParameterSteps& out);

/// All steps of an operator's groups, one after the other: as files hold them, and as reports number them.
std::vector<ReshardStep> all_steps(const std::vector<ParameterSteps>& parameters);
/// How often each of these is carried out in an iteration of so many micro-batches.
std::vector<int> times_an_iteration(const std::vector<ParameterSteps>& parameters, Update update, int micro_batches);
/// Gives the steps of such a list to the groups again. Steps that no group explains are the last group's sync, so that
/// whoever checks the plan finds them; without groups one is made for them.
std::vector<ParameterSteps> in_groups(std::vector<ParameterGroup> groups, const std::vector<ReshardStep>& steps,
                                      const MemoryChoice& choice);

}  // namespace turnpoint
