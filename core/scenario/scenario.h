// SPDX-License-Identifier: Apache-2.0
// Scenario: model x cluster x settings -- everything a search depends on. Same scenario and seed, same result.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/base/options.h"
#include "core/hardware/cluster.h"
#include "core/model/model.h"
#include "core/model/task_graph.h"

namespace turnpoint {

enum class Optimizer : std::uint8_t { sgd, momentum, adam, lars, lamb, adafactor };
const char* to_string(Optimizer optimizer);
/// Optimizer state per parameter element, bytes in fp32 (resources/manual/mathematics.md, 5.3): SGD 0, momentum and
/// LARS 4, Adam and LAMB 8.
int optimizer_state_bytes(Optimizer optimizer);

enum class Accounting : std::uint8_t {
  full,   ///< parameters, gradients, optimizer state, kept tensors, copies
  paper,  ///< parameters and kept tensors only, as the TensorOpt study counts
};
const char* to_string(Accounting accounting);

/// What collectives cost (resources/manual/costs.md, 4).
enum class Collectives : std::uint8_t {
  library,  ///< the least of what the hardware's library has; gradients in buckets, sharded weights by layer
  rings     ///< a ring, and every operator's by itself: what result files of before have
};

/// The number format in which gradients are kept, and summed between devices.
enum class Gradients : std::uint8_t {
  as_weights,  ///< that of the weights
  fp32         ///< whatever the weights have, as Megatron-LM accumulates them and as autocast leaves them
};

/// The number format of the optimizer's moments; a master copy of 16-bit weights is fp32 in both.
enum class OptimizerState : std::uint8_t { fp32, bf16 };

/// The number format in which the new weights of updates that are shared out are gathered.
enum class Gathers : std::uint8_t {
  as_read,  ///< that in which forward and backward read them
  bf16      ///< of fp32 weights that products alone read bf16, as on hardware that rounds their factors anyway
};

/// The number format in which a loss over classes computes its probabilities and keeps them for backward.
enum class LossPrecision : std::uint8_t {
  fp32,           ///< whatever the logits have, as autocast, Megatron-LM and torchtitan do
  as_activations  ///< that of the logits
};

/// How attention is computed.
enum class Attention : std::uint8_t {
  automatic,  ///< fused in 16 bits on hardware with a library of its own
  fused,      ///< as one kernel that never writes the scores (core/model/fuse_attention.h)
  unfused     ///< operator by operator
};

/// How operators that frameworks write as several kernels are carried out (core/cost/eager_kernels.h).
enum class Kernels : std::uint8_t {
  fused,  ///< as one kernel each, as compilers, Megatron-LM and Apex have them
  eager   ///< one after the other, as PyTorch runs a model that is not compiled
};

/// What the user sets. Names and bounds live in scenario_options(), from which command line and window are made.
struct Settings {
  std::int64_t batch = 256;
  std::int64_t sequence = 0;  ///< 0: the model's default
  int devices = 0;            ///< 0: all of the cluster
  Precision precision = Precision::fp32;
  Gradients gradients = Gradients::as_weights;
  Attention attention = Attention::automatic;
  LossPrecision loss = LossPrecision::fp32;
  Kernels kernels = Kernels::fused;
  Optimizer optimizer = Optimizer::adam;
  OptimizerState optimizer_state = OptimizerState::fp32;
  Gathers gathers = Gathers::as_read;
  // What the loop around the step hands on or reads, every so many steps (core/search/update_sharding); 0: never.
  std::int64_t checkpoint_every = 0;  ///< weights and optimizer state, whole
  std::int64_t summary_every = 0;     ///< the weights, whole
  std::int64_t evaluation_every = 0;  ///< the weights, by a forward of other data
  Accounting accounting = Accounting::full;
  Collectives collectives = Collectives::library;
  WhatIf factors;
  std::int64_t memory_limit = 0;   ///< 0: the device's memory x factors.device_memory, less the reserve
  std::int64_t reserve_bytes = 0;  ///< of a device's memory, for others than the plan; 0: what the hardware says
  double price_per_hour = 0;       ///< of one device, in any currency; 0: the hardware's, where it has one
  std::int64_t bucket_bytes = std::int64_t(25) << 20;  ///< gradients travel together in; 0: an operator's by themselves
  bool split_windows = false;                          ///< let window dimensions and the key sequence be split
  bool split_loss = true;  ///< let a loss over a vocabulary be split by its words (core/model/split_loss.h)
  // What methods that choose per operator may use (core/cost/memory_choice.h).
  bool recompute = true;        ///< compute activations again in backward instead of keeping them
  bool update_sharding = true;  ///< shard the weight update, and the weights, among devices that hold the same
  bool offload = true;          ///< keep optimizer state in the host's memory
  std::uint64_t seed = 1;
  friend bool operator==(const Settings&, const Settings&) = default;
};

/// One record per field of Settings; get/set work on the record's index.
std::span<const OptionRecord> scenario_options();
double get_option(const Settings& settings, std::string_view key);
void set_option(Settings& settings, std::string_view key, double value);  ///< value already validated by parse_option

/// A setting that nobody gave, as it was taken and why (resources/manual/costs.md, 9): {"sequence", "8192", "the
/// model's own maximum"}.
struct TakenSetting {
  std::string key, value, reason;
  bool stated = false;  ///< the model says so; false: a default
};
/// "batch 256 (the default), sequence 8192 (the model's own maximum)"
std::string words_of(const std::vector<TakenSetting>& taken);

/// Immutable; shared between threads.
struct Scenario {
  /// As it is computed: attention fused or not, losses in two operators or one. Of a task graph that was opened as it
  /// is: without operators, with the graph's name.
  ModelPtr model;
  TaskGraphPtr tasks;    ///< the task graph that was opened as it is; null: the model's training graph is made of it
  ClusterPtr cluster;    ///< already cut to `settings.devices`
  std::string hardware;  ///< as the user named it: preset or path
  Settings settings;
  std::vector<TakenSetting> taken;  ///< of batch, sequence and precision, those that were not given

  /// What `fits` compares with, bytes; kUnlimitedBytes where a task graph's file states no memory.
  std::int64_t memory_limit() const;
  /// The same of one device of a mixed cluster, counted from 0: its own memory counts, not that of the smallest.
  std::int64_t memory_limit_of(std::uint32_t device) const;
  /// What of the device's memory that leaves to context, communication library and allocator; 0 where the limit is the
  /// user's own, and in the papers' accounting.
  std::int64_t reserved_bytes() const;
  /// Whether collectives are the library's: rings otherwise, as the papers' accounting has them.
  bool by_library() const;
  std::optional<double> price_per_hour() const;  ///< of one device; nullopt: not known
};
/// Whether such a scenario fuses attention; the papers' accounting never does.
bool fuses_attention(const Settings& settings, const Cluster& cluster);
using ScenarioPtr = std::shared_ptr<const Scenario>;

/// Cuts or extends the cluster to settings.devices. Usage error where that many devices cannot be had, or where they do
/// not have the precision.
Expected<ScenarioPtr> make_scenario(ModelPtr model, const ClusterPtr& cluster, std::string hardware,
                                    const Settings& settings);

}  // namespace turnpoint
