// SPDX-License-Identifier: Apache-2.0
// Plans of settings that people type, as files for engines, and the same settings read from these files again: by what
// an engine's argument means, not by the code that wrote it.
#pragma once

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <regex>

#include "core/export/format.h"
#include "core/search/baselines/pipeline.h"
#include "search/scenarios.h"

namespace turnpoint::test {

/// As `manual` is told.
struct TypedSplit {
  int dp = 1, tp = 1, pp = 1, vp = 1, micro_batches = 1, zero = 0, cp = 1, ep = 1;
  int shard = 0;  ///< 0: all that hold the same
  std::string recompute = "none";
  bool sequence_parallel = false, by_time = false, gather_first = false;
  bool reduce_last = false, tp_comm_overlap = false, gpipe = false;

  std::string text() const {
    std::string made =
        fmt::format("dp={}:tp={}:pp={}:vp={}:micro-batches={}:zero={}", dp, tp, pp, vp, micro_batches, zero);
    if (cp > 1) made += fmt::format(":cp={}", cp);
    if (ep > 1) made += fmt::format(":ep={}", ep);
    if (shard > 0) made += fmt::format(":shard={}", shard);
    if (by_time) made += ":cut=time";
    if (gpipe) made += ":schedule=gpipe";
    if (gather_first) made += ":gather-first";
    if (reduce_last) made += ":reduce-last";
    if (tp_comm_overlap) made += ":tp-comm-overlap";
    if (recompute != "none") made += ":recompute=" + recompute;
    return made + (sequence_parallel ? ":sequence-parallel" : "");
  }
  /// The same split, said as what differs nowhere: shards of one device, sequences of one.
  TypedSplit plainly() const {
    TypedSplit made = *this;
    if (dp * cp == 1 || shard == 1) made.zero = 0;
    if (made.zero == 0 || shard == dp * cp) made.shard = 0;
    if (made.zero == 0) made.gather_first = false;
    if (dp * cp == 1) made.reduce_last = false;
    if (tp == 1) made.sequence_parallel = false;
    return made;
  }
};

inline Expected<std::string> exported(const char* key, const ResultPtr& result, std::size_t point = 0) {
  return export_text(*find_format(key), {{}, result, point}, FormatNames::keys);
}

/// The words of the list of that name in a Python program.
inline std::vector<std::string> words_of_list(const std::string& program, const std::string& name) {
  const auto begin = program.find("\n" + name + " = [\n"), end = program.find("\n]", begin);
  if (begin == std::string::npos || end == std::string::npos) qFatal("no list %s", name.c_str());
  const std::string list = program.substr(begin, end - begin);
  const std::regex word("\"([^\"\\\\]*)\"");
  std::vector<std::string> words;
  for (std::sregex_iterator it(list.begin(), list.end(), word), last; it != last; ++it) words.push_back((*it)[1]);
  return words;
}

/// Options with the words behind each, up to the next option or the kind of checkpointing.
inline std::map<std::string, std::vector<std::string>> options_of(const std::vector<std::string>& words) {
  std::map<std::string, std::vector<std::string>> options;
  std::string last;
  for (const std::string& word : words) {
    if (word.starts_with("--") || word.starts_with("activation-checkpoint:")) {
      if (options.contains(word)) qFatal("%s stands twice", word.c_str());
      options[last = word];
    } else {
      options[last].push_back(word);
    }
  }
  return options;
}

inline int number_of(const std::map<std::string, std::vector<std::string>>& options, const std::string& name) {
  const auto found = options.find(name);
  if (found == options.end() || found->second.size() != 1) qFatal("%s has no number", name.c_str());
  return std::stoi(found->second.front());
}

/// Whether runs of these many layers are not the ones that every engine cuts by itself.
inline bool cut_otherwise(const std::vector<int>& layers) {
  const int all = std::accumulate(layers.begin(), layers.end(), 0);
  const std::vector<int> first = search::equal_stages(all, int(layers.size()));
  if (first.empty()) return true;
  int at = 0;
  for (std::size_t r = 0; r < layers.size(); at += layers[r++])
    if (first[r] != at) return true;
  return false;
}

inline TypedSplit read_megatron_file(const std::string& program, int devices) {
  const auto options = options_of(words_of_list(program, "ARGUMENTS"));
  const auto has = [&](const char* name) { return options.contains(name); };
  TypedSplit split;
  split.tp = number_of(options, "--tensor-model-parallel-size");
  split.pp = number_of(options, "--pipeline-model-parallel-size");
  split.cp = number_of(options, "--context-parallel-size");
  split.dp = devices / (split.tp * split.pp * split.cp);
  if (has("--num-experts")) split.ep = number_of(options, "--expert-model-parallel-size");
  split.micro_batches =
      number_of(options, "--global-batch-size") / (number_of(options, "--micro-batch-size") * split.dp);
  if (has("--num-layers-per-virtual-pipeline-stage"))
    split.vp =
        number_of(options, "--num-layers") / (split.pp * number_of(options, "--num-layers-per-virtual-pipeline-stage"));
  if (has("--pipeline-model-parallel-layout")) {
    const std::string layout = options.at("--pipeline-model-parallel-layout").front();
    const std::regex run("t\\*([0-9]+)");
    std::vector<int> layers;
    for (std::sregex_iterator it(layout.begin(), layout.end(), run), last; it != last; ++it)
      layers.push_back(std::stoi((*it)[1]));
    split.vp = int(layers.size()) / split.pp;
    split.by_time = cut_otherwise(layers);
  }
  if (has("--use-distributed-optimizer")) split.zero = 1;
  split.gather_first = has("--overlap-param-gather");
  split.reduce_last = split.dp * split.cp > 1 && !has("--overlap-grad-reduce");
  split.tp_comm_overlap = has("--tp-comm-overlap");
  if (has("--data-parallel-sharding-strategy"))
    split.zero = options.at("--data-parallel-sharding-strategy").front() == "optim_grads" ? 2 : 3;
  if (has("--num-distributed-optimizer-instances"))
    split.shard = split.dp * split.cp / number_of(options, "--num-distributed-optimizer-instances");
  if (split.zero == 3 && split.shard > 0 && options.at("--outer-dp-sharding-strategy").front() != "no_shard")
    qFatal("sharded among groups, too");
  if (has("--recompute-granularity")) split.recompute = options.at("--recompute-granularity").front();
  split.sequence_parallel = has("--sequence-parallel");
  return split;
}

inline TypedSplit read_torchtitan_file(const std::string& program, int devices) {
  const auto options = options_of(words_of_list(program, "OVERRIDES"));
  const auto number = [&](const std::string& name) { return number_of(options, "--" + name); };
  TypedSplit split;
  split.tp = number("parallelism.tensor_parallel_degree");
  split.pp = number("parallelism.pipeline_parallel_degree");
  const int shard = number("parallelism.data_parallel_shard_degree");
  split.dp = number("parallelism.data_parallel_replicate_degree") * shard;
  split.cp = number("parallelism.context_parallel_degree");
  split.ep = number("parallelism.expert_parallel_degree");
  if (split.dp * split.tp * split.pp * split.cp != devices) qFatal("not all devices");
  // Devices that share a sequence shard weights in any case.
  if (shard * split.cp > 1)
    split.zero = options.at("--parallelism.fsdp_reshard_after_forward").front() == "always" ? 3 : 2;
  if (shard > 0 && split.zero > 0 && shard < split.dp) split.shard = shard * split.cp;
  const int own = number("training.local_batch_size");
  if (split.pp > 1) {
    split.micro_batches = own / number("parallelism.pipeline_parallel_microbatch_size");
    std::vector<int> layers;
    for (const std::string& part : options.at("--parallelism.module_fqns_per_model_part")) {
      layers.push_back(0);
      for (std::size_t at = 0; (at = part.find("layers.", at)) != std::string::npos; ++at) ++layers.back();
    }
    split.vp = int(layers.size()) / split.pp;
    split.by_time = cut_otherwise(layers);
    split.gpipe = options.at("--parallelism.pipeline_parallel_schedule").front() == "GPipe";
  } else {
    split.micro_batches = number("training.global_batch_size") / (own * split.dp);
  }
  split.sequence_parallel = options.contains("--parallelism.enable_sequence_parallel");
  if (options.contains("activation-checkpoint:full")) split.recompute = "full";
  if (options.contains("activation-checkpoint:selective")) split.recompute = "op";
  return split;
}

inline TypedSplit read_deepspeed_file(const std::string& text) {
  const auto file = nlohmann::json::parse(text);
  TypedSplit split;
  split.micro_batches = file.at("gradient_accumulation_steps");
  split.dp = file.at("train_batch_size").get<int>() /
             (file.at("train_micro_batch_size_per_gpu").get<int>() * split.micro_batches);
  split.zero = file.at("zero_optimization").at("stage");
  if (file.contains("activation_checkpointing")) split.recompute = "full";
  return split;
}

/// A split of so many devices, legal or not.
inline TypedSplit drawn_split(std::mt19937_64& random, int devices) {
  const auto pick = [&](auto... of) {
    const std::common_type_t<decltype(of)...> all[] = {of...};
    return all[random() % sizeof...(of)];
  };
  TypedSplit split;
  split.tp = pick(1, 1, 2, 4), split.pp = pick(1, 1, 2, 4);
  split.cp = pick(1, 1, 1, 2, 4), split.ep = pick(1, 1, 1, 2, 4);
  split.dp = std::max(1, devices / (split.tp * split.pp * split.cp));
  split.micro_batches = pick(1, 2, 4, 8);
  if (split.pp > 1) split.vp = pick(1, 1, 2), split.by_time = pick(0, 0, 1) != 0;
  split.zero = pick(0, 1, 2, 3);
  if (split.zero > 0) split.shard = pick(0, 0, 1, 2, 4, 8);
  const char* recompute = pick("none", "op", "selective", "full");
  split.recompute = recompute;
  split.sequence_parallel = pick(0, 1) != 0;
  if (split.zero == 1 || split.zero == 2) split.gather_first = pick(0, 0, 1) != 0;
  split.reduce_last = split.zero < 2 && !split.gather_first && pick(0, 1) != 0;
  split.tp_comm_overlap = split.tp > 1 && split.sequence_parallel && pick(0, 1) != 0;
  split.gpipe = split.pp > 1 && pick(0, 0, 1) != 0;
  return split;
}

}  // namespace turnpoint::test
