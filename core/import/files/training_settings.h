// SPDX-License-Identifier: Apache-2.0
// The split that somebody trains with today, from the settings file of their framework: DeepSpeed (JSON), Megatron-LM
// (a script or list of arguments), NeMo and MaxText (YAML), torchtitan (TOML). Only numbers, words and switches of
// known names are taken. YAML is read line by line, indentation and plain scalars: anchors, aliases and tags are never
// expanded, so that no file grows when it is read.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "core/base/expected.h"

namespace turnpoint {

struct TrainingSettings {
  std::string framework;  ///< "DeepSpeed", "Megatron-LM", "NeMo", "MaxText", "torchtitan"
  std::int64_t data = 0;  ///< 0: what is left of the devices
  std::int64_t tensor = 1, stages = 1, zero = 0;
  std::int64_t runs_each = 1;         ///< runs of layers on each stage; 0: as many as the model's layers make
  std::int64_t layers_each = 0;       ///< layers of each run; 0: not said
  std::int64_t layers_in_stages = 0;  ///< layers of the pipeline; 0: all
  std::int64_t context = 1;           ///< devices that share a sequence
  std::int64_t expert = 1;            ///< devices that share the experts, of those that share batch and sequence
  std::int64_t expert_tensor = 0;     ///< devices that share each expert's matrices; 0: as many as `tensor`
  /// Of hybrid sharding: groups that hold the same shards, each; 0: what is left beside `sharding`.
  std::int64_t copies = 1;
  std::int64_t sharding = 0;  ///< of `data`, those among which ZeRO shards; 0: what `copies` leave
  /// Samples of a data-parallel replica in one forward pass, and of all in one iteration; 0: not said. `accumulation`:
  /// forward passes of an iteration where the file says that instead.
  std::int64_t micro_batch = 0, global_batch = 0, accumulation = 0;
  std::int64_t sequence = 0;  ///< tokens; 0: not said
  bool recompute = false, selective = false, by_operator = false, sequence_parallel = false;
  bool gather_first = false;    ///< new weights of sharded updates come while the next forward runs
  bool reduce_last = false;     ///< gradients are summed behind backward, not while it runs
  bool tensor_overlap = false;  ///< collectives of tensor groups run beside products
  bool forwards_first = false;  ///< stages take all micro-batches forward before the first goes backward
  std::string precision;        ///< "bf16", "fp32" or empty: not said

  /// Samples of an iteration on this many devices; 0 where the file does not say; more than 2^30 stay 2^30 + 1.
  std::int64_t batch_on(std::int64_t devices) const;
  /// Parameters of the method `manual` on this many devices, of a model with this many layers (0: not known):
  /// "tp=2:cp=2:pp=4:micro-batches=8:zero=1:shard=4". Usage error where the file's own numbers contradict each other or
  /// the model's there, or where it splits each expert otherwise than the rest.
  Expected<std::string> split_on(std::int64_t devices, std::int64_t layers = 0) const;
};

/// Whether the text is settings of one of the frameworks; by its keys, not by the file's name.
bool is_training_settings(std::string_view text);
/// Bad input naming the file and the key whose value is out of range.
Expected<TrainingSettings> parse_training_settings(std::string_view text, const std::string& path);
/// At most 1 MiB.
Expected<TrainingSettings> open_training_settings(const std::string& path);

}  // namespace turnpoint
