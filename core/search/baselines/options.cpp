// SPDX-License-Identifier: Apache-2.0
#include "core/search/baselines/options.h"

namespace turnpoint::search {

namespace {

constexpr int kMostParts = 1 << 20;
constexpr std::string_view kStages[] = {"0", "1", "2", "3"}, kShardedStages[] = {"1", "2", "3"};
constexpr std::string_view kCuts[] = {"layers", "time"}, kSchedules[] = {"1f1b", "gpipe"};
constexpr std::string_view kEverybody[] = {"all"};  // 0
constexpr std::string_view kGroups[] = {"all", "node"};
constexpr std::string_view kCores[] = {"none", "selective"}, kParts[] = {"none", "op", "selective"},
                           kRecompute[] = {"none", "op", "selective", "full"};

constexpr std::string_view kShardHelp =
    "Devices that share one copy of what is sharded, others holding further copies (hybrid sharding)";
constexpr std::string_view kGatherFirstHelp =
    "With zero=1 or 2 new weights come while the next forward runs (overlap-param-gather), not behind the update: the "
    "simulated clock tells these apart";
constexpr std::string_view kReduceLastHelp =
    "With zero=0 or 1 gradients are summed behind backward, not while it runs (Megatron-LM without "
    "overlap-grad-reduce): the simulated clock tells these apart";
constexpr std::string_view kTensorOverlapHelp =
    "Collectives of tensor groups run beside the products that they feed or follow, in as many steps as a group has "
    "devices (tp-comm-overlap of Transformer Engine)";
constexpr std::string_view kCoresHelp = "Compute the cores of attentions again in backward";
constexpr std::string_view kRecomputeHelp =
    "What backward computes again: operators but for every other product, the cores of attentions, or whole layers";
constexpr std::string_view kSequenceHelp =
    "What tensor groups hold whole is split over the sequence instead (Korthikanti et al. 2022)";

OptionRecord parts(std::string_view key, std::string_view text, std::string_view help, double otherwise) {
  return {key, text, "", OptionType::integer, otherwise, otherwise, kMostParts, {}, help};
}

OptionRecord micro_batches() {
  return parts("micro-batches", "Micro-batches", "Parts of the batch that go through one after the other", 1);
}

OptionRecord shard() {
  return {"shard", "Shards among", "", OptionType::integer, 0, 0, kMostParts, kEverybody, kShardHelp};
}

OptionRecord sequence_parallel() {
  return {"sequence-parallel", "Sequence parallel", "", OptionType::flag, 0, 0, 1, {}, kSequenceHelp};
}

OptionRecord tensor_overlap() {
  return {"tp-comm-overlap", "Tensor overlap", "", OptionType::flag, 0, 0, 1, {}, kTensorOverlapHelp};
}

}  // namespace

const std::vector<OptionRecord>& fsdp_options() {
  static const std::vector<OptionRecord> kOptions = {
      {"zero", "Sharded", "", OptionType::choice, 0, 2, 0, kShardedStages,
       "1: optimizer state; 2: gradients too; 3: weights too"},
      {"group", "Shards within", "", OptionType::choice, 0, 0, 0, kGroups,
       "All devices, or those of a node, nodes then holding copies (hybrid sharding)"},
      shard(),
      micro_batches(),
      {"recompute", "Recompute", "", OptionType::choice, 0, 0, 0, kParts, kRecomputeHelp},
  };
  return kOptions;
}

const std::vector<OptionRecord>& megatron_options() {
  static const std::vector<OptionRecord> kOptions = {
      sequence_parallel(),
      tensor_overlap(),
      micro_batches(),
      {"recompute", "Recompute", "", OptionType::choice, 0, 0, 0, kCores, kCoresHelp},
  };
  return kOptions;
}

const std::vector<OptionRecord>& manual_options() {
  static const std::vector<OptionRecord> kOptions = {
      parts("dp", "Data parallel", "Groups that share the batch; 0: what the others leave of the devices", 0),
      parts("tp", "Tensor parallel", "Devices that share each layer's matrices", 1),
      parts("cp", "Context parallel", "Devices that share each sequence, all with the same weights", 1),
      parts("ep", "Expert parallel", "Devices that share the experts, of those that share batch and sequence", 1),
      parts("pp", "Pipeline stages", "Stages that share the layers", 1),
      parts("vp", "Virtual stages", "Runs of layers that every stage takes in turn (interleaved schedule)", 1),
      {"cut", "Stages cut by", "", OptionType::choice, 0, 0, 0, kCuts,
       "layers: as many on each stage; time: where the slowest stage is fastest"},
      {"schedule", "Schedule", "", OptionType::choice, 0, 0, 0, kSchedules,
       "1f1b: a stage takes a micro-batch forward and one backward in turn; gpipe: all forward first"},
      micro_batches(),
      {"zero", "Sharded", "", OptionType::choice, 0, 0, 0, kStages,
       "0: nothing; 1: optimizer state; 2: gradients too; 3: weights too"},
      shard(),
      {"gather-first", "Gather first", "", OptionType::flag, 0, 0, 1, {}, kGatherFirstHelp},
      {"reduce-last", "Reduce last", "", OptionType::flag, 0, 0, 1, {}, kReduceLastHelp},
      {"recompute", "Recompute", "", OptionType::choice, 0, 0, 0, kRecompute, kRecomputeHelp},
      sequence_parallel(),
      tensor_overlap(),
  };
  return kOptions;
}

}  // namespace turnpoint::search
