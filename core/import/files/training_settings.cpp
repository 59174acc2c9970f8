// SPDX-License-Identifier: Apache-2.0
#include "core/import/files/training_settings.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <vector>

#include "core/base/json.h"
#include "core/base/text.h"

namespace turnpoint {

namespace {

constexpr std::size_t kMaxFile = std::size_t(1) << 20, kMaxKeys = 4096;
constexpr std::int64_t kMaxCount = std::int64_t(1) << 30;

/// Path of a key ("zero_optimization.stage", '-' as '_') to its text.
using Keys = std::map<std::string, std::string>;

std::string_view trim(std::string_view text) {
  const auto begin = text.find_first_not_of(" \t\r\n");
  if (begin == text.npos) return {};
  return text.substr(begin, text.find_last_not_of(" \t\r\n") - begin + 1);
}

std::string_view unquoted(std::string_view text) {
  text = trim(text);
  const bool quoted = text.size() >= 2 && (text[0] == '"' || text[0] == '\'') && text.back() == text[0];
  return quoted ? text.substr(1, text.size() - 2) : text;
}

std::string key_name(std::string_view text) {
  std::string name(unquoted(text));
  std::replace(name.begin(), name.end(), '-', '_');
  return name;
}

void add(Keys& keys, std::string name, std::string_view value) {
  if (keys.size() < kMaxKeys) keys.insert_or_assign(std::move(name), std::string(unquoted(value)));
}

std::string_view without_comment(std::string_view line) {
  char quote = 0;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (quote) {
      if (line[i] == quote) quote = 0;
    } else if (line[i] == '"' || line[i] == '\'') {
      quote = line[i];
    } else if (line[i] == '#' && (i == 0 || line[i - 1] == ' ' || line[i - 1] == '\t')) {
      return line.substr(0, i);
    }
  }
  return line;
}

void read_json(const nlohmann::json& value, const std::string& prefix, Keys& keys, int depth = 0) {
  if (depth > 8 || !value.is_object()) return;
  for (const auto& [name, inner] : value.items()) {
    const std::string path = prefix + key_name(name);
    if (inner.is_object())
      read_json(inner, path + ".", keys, depth + 1);
    else if (inner.is_number() || inner.is_boolean())
      add(keys, path, inner.dump());
    else if (inner.is_string())
      add(keys, path, inner.get_ref<const std::string&>());
  }
}

Keys read_toml(std::string_view text) {
  Keys keys;
  std::string section;
  for (const auto raw : split(text, '\n')) {
    const auto line = trim(without_comment(raw));
    if (line.size() > 2 && line.front() == '[' && line.back() == ']') {
      section = key_name(line.substr(1, line.size() - 2)) + ".";
    } else if (const auto equals = line.find('='); equals != line.npos) {
      add(keys, section + key_name(line.substr(0, equals)), line.substr(equals + 1));
    }
  }
  return keys;
}

Keys read_yaml(std::string_view text) {
  Keys keys;
  std::vector<std::pair<std::size_t, std::string>> open;  // indentation and path of the mappings around a line
  for (const auto raw : split(text, '\n')) {
    const auto whole = without_comment(raw);
    const auto line = trim(whole);
    const auto colon = line.find(':');
    if (line.empty() || line.front() == '-' || colon == line.npos) continue;
    if (colon + 1 < line.size() && line[colon + 1] != ' ' && line[colon + 1] != '\t') continue;
    const std::size_t indent = whole.find_first_not_of(" \t");
    while (!open.empty() && open.back().first >= indent) open.pop_back();
    if (open.size() > 32) continue;
    const std::string path = (open.empty() ? "" : open.back().second) + key_name(line.substr(0, colon));
    const auto value = trim(line.substr(colon + 1));
    if (value.empty())
      open.emplace_back(indent, path + ".");
    else
      add(keys, path, value);
  }
  return keys;
}

/// "8" of "${TP:-8}"; other texts as they are.
std::string_view or_default(std::string_view text) {
  const auto colon = text.find(":-");
  if (!text.starts_with("${") || !text.ends_with("}") || colon == text.npos) return text;
  return text.substr(colon + 2, text.size() - colon - 3);
}

/// "--name value", "--name=value" and "--switch" of a script, with the script's own plain variables filled in.
Keys read_arguments(std::string_view text) {
  Keys keys;
  std::map<std::string, std::string, std::less<>> variables;
  std::vector<std::string_view> words;
  for (const auto raw : split(text, '\n')) {
    auto line = trim(without_comment(raw));
    if (line.starts_with("export ")) line = trim(line.substr(7));
    if (const auto equals = line.find('='); equals != line.npos && equals > 0 && !line.starts_with("-")) {
      const auto name = line.substr(0, equals);
      const bool plain =
          std::all_of(name.begin(), name.end(), [](unsigned char c) { return std::isalnum(c) || c == '_'; });
      if (plain && variables.size() < kMaxKeys)
        variables.insert_or_assign(std::string(name), std::string(or_default(unquoted(line.substr(equals + 1)))));
    }
    for (std::size_t at = 0; at < line.size();) {
      const auto begin = line.find_first_not_of(" \t()\"'\\", at);
      if (begin == line.npos) break;
      at = std::min(line.find_first_of(" \t()\"'\\", begin), line.size());
      words.push_back(line.substr(begin, at - begin));
    }
  }
  const auto filled = [&](std::string_view word) {
    auto name = word;
    if (!name.starts_with("$")) return std::string(word);
    name.remove_prefix(1);
    if (name.starts_with("{") && name.ends_with("}")) name = name.substr(1, name.size() - 2);
    const auto colon = name.find(":-");  // ${TP:-8}
    const auto found = variables.find(name.substr(0, colon));
    if (found != variables.end() && !found->second.starts_with("$")) return found->second;
    return std::string(colon == name.npos ? std::string_view() : name.substr(colon + 2));
  };
  for (std::size_t i = 0; i < words.size(); ++i) {
    if (!words[i].starts_with("--")) continue;
    const auto name = words[i].substr(2);
    if (const auto equals = name.find('='); equals != name.npos)
      add(keys, key_name(name.substr(0, equals)), filled(name.substr(equals + 1)));
    else if (i + 1 < words.size() && !words[i + 1].starts_with("-"))
      add(keys, key_name(name), filled(words[i + 1]));
    else
      add(keys, key_name(name), "true");
  }
  return keys;
}

std::string_view last_part(std::string_view path) {
  const auto dot = path.rfind('.');
  return dot == path.npos ? path : path.substr(dot + 1);
}

bool has_key(const Keys& keys, std::initializer_list<std::string_view> names) {
  return std::any_of(keys.begin(), keys.end(), [&](const auto& entry) {
    return std::find(names.begin(), names.end(), last_part(entry.first)) != names.end();
  });
}

std::string framework_of(const Keys& keys, bool json, bool arguments) {
  if (json)
    return has_key(keys, {"train_micro_batch_size_per_gpu", "zero_optimization"}) ||
                   keys.count("zero_optimization.stage") || (keys.count("train_batch_size") && keys.size() > 1)
               ? "DeepSpeed"
               : "";
  if (arguments)
    return has_key(keys, {"tensor_model_parallel_size", "pipeline_model_parallel_size"}) ? "Megatron-LM" : "";
  if (has_key(keys, {"tensor_parallel_degree", "data_parallel_shard_degree", "pipeline_parallel_degree"}))
    return "torchtitan";
  if (has_key(keys, {"ici_tensor_parallelism", "ici_fsdp_parallelism", "per_device_batch_size"})) return "MaxText";
  if (has_key(keys, {"tensor_model_parallel_size", "pipeline_model_parallel_size"})) return "NeMo";
  return "";
}

struct Document {
  Keys keys;
  std::string framework;  ///< empty: none that is known
};

Document read_keys(std::string_view text) {
  Document out;
  if (text.starts_with("\xef\xbb\xbf")) text.remove_prefix(3);
  const auto begin = trim(text);
  if (text.size() > kMaxFile || begin.empty() || text.find('\0') != text.npos) return out;
  if (begin.front() == '{') {
    const auto document = parse_json(begin, "", 16);
    if (document) read_json(*document, "", out.keys);
    out.framework = framework_of(out.keys, true, false);
    return out;
  }
  if (text.find("--tensor-model-parallel-size") != text.npos ||
      text.find("--pipeline-model-parallel-size") != text.npos) {
    out.keys = read_arguments(text);
    out.framework = framework_of(out.keys, false, true);
    return out;
  }
  for (auto* reader : {&read_toml, &read_yaml}) {
    out.keys = reader(text);
    out.framework = framework_of(out.keys, false, false);
    if (!out.framework.empty()) return out;
  }
  return out;
}

class Filler {
 public:
  Filler(const Keys& keys, const std::string& path) : keys_(keys), path_(path) {}

  /// The first of the names that the file has; "null", "auto" and ${...} count as absent.
  std::optional<std::string> text(std::initializer_list<std::string_view> names) const {
    for (const auto name : names)
      for (const auto& [path, value] : keys_) {
        // A name with its section may stand deeper: "optim.name" is also "model.optim.name".
        const bool deeper =
            path.size() > name.size() && path.ends_with(name) && path[path.size() - name.size() - 1] == '.';
        if (path != name && !deeper) continue;
        if (value == "null" || value == "auto" || value == "~" || value == "None" || value.starts_with("$")) continue;
        return value;
      }
    return std::nullopt;
  }
  bool on(std::initializer_list<std::string_view> names) const {
    const auto value = text(names);
    return value && (*value == "true" || *value == "True" || *value == "1");
  }
  std::int64_t count(std::initializer_list<std::string_view> names, std::int64_t otherwise, std::int64_t least = 1) {
    const auto value = text(names);
    if (!value) return otherwise;
    const auto number = parse_double(*value);
    if (number && *number >= double(least) && *number <= double(kMaxCount) && *number == double(std::int64_t(*number)))
      return std::int64_t(*number);
    refuse(fmt::format("{} must be a whole number from {} to 2^30, not '{}'", *names.begin(), least,
                       value->substr(0, 40)));
    return otherwise;
  }

  /// A number above 0, which may be a fraction; 0: not said.
  double positive(std::string_view name) {
    const auto value = text({name});
    if (!value) return 0;
    const auto number = parse_double(*value);
    if (number && *number > 0 && *number <= double(kMaxCount)) return *number;
    refuse(fmt::format("{} must be a number above 0 and up to 2^30, not '{}'", name, value->substr(0, 40)));
    return 0;
  }
  void refuse(const std::string& why) {
    if (!error) error = bad_input(why, path_);
  }

  std::optional<Error> error;

 private:
  const Keys& keys_;
  const std::string& path_;
};

/// A degree of which -1 means "what is left": 0 then.
std::int64_t degree(Filler& fill, std::initializer_list<std::string_view> names) {
  const auto value = fill.text(names);
  return value && *value == "-1" ? 0 : fill.count(names, 1);
}

/// Axes inside slices of a machine and between them. More than any machine has stays so.
std::int64_t product(std::initializer_list<std::int64_t> counts) {
  std::int64_t made = 1;
  for (const std::int64_t count : counts) made = std::min(made * std::min(count, kMaxCount), kMaxCount + 1);
  return made;
}

/// Its batch is counted by devices of the whole machine, whatever they share; a fraction is legal there. A pipeline
/// cuts a pass into micro-batches, as many as stages unless it is told otherwise (MaxText/pyconfig.py,
/// calculate_global_batch_sizes and set_and_validate_pipeline_config).
void fill_maxtext_batch(Filler& fill, TrainingSettings& s) {
  std::int64_t cuts = 1;
  if (s.stages > 1) {
    cuts = degree(fill, {"num_pipeline_microbatches"});
    if (cuts == 0 || !fill.text({"num_pipeline_microbatches"}))
      cuts = product({s.stages, fill.on({"pipeline_delay_activation_forwarding"}) ? 2 : 1});
  }
  const std::int64_t steps = fill.count({"gradient_accumulation_steps"}, 1);
  s.accumulation = product({steps, cuts});
  // Backward of the loop over all micro-batches comes behind it (MaxText/layers/pipeline.py). Of several such loops one
  // behind the other a split here knows nothing: in turn is nearer to what they hold.
  s.forwards_first = s.stages > 1 && steps == 1;
  const double per_device = fill.positive("per_device_batch_size");
  if (per_device == 0) return;
  const std::int64_t members = product({s.tensor, s.context, s.stages});
  const double samples = per_device * double(members) / double(cuts);
  if (samples > double(kMaxCount) || std::abs(samples - std::round(samples)) > 1e-9 * samples)
    return fill.refuse(
        fmt::format("per_device_batch_size of {} makes {:.6g} samples for the {} devices of a replica{}: must be a "
                    "whole number up to 2^30",
                    per_device, samples, members, cuts > 1 ? fmt::format(" in each of {} micro-batches", cuts) : ""));
  s.micro_batch = std::int64_t(std::round(samples));
}

/// Who says nothing of repeats has as many as layers make, with one layer in each run (MaxText/pyconfig.py).
void fill_maxtext_runs(Filler& fill, TrainingSettings& s) {
  if (s.stages == 1) return;
  s.layers_each = fill.count({"num_layers_per_pipeline_stage"}, 1);
  s.runs_each = fill.text({"num_pipeline_repeats"}) ? degree(fill, {"num_pipeline_repeats"}) : 0;
  s.layers_in_stages = fill.text({"pipeline_parallel_layers"}) ? degree(fill, {"pipeline_parallel_layers"}) : 0;
}

void fill_maxtext(Filler& fill, TrainingSettings& s) {
  s.tensor = product({fill.count({"ici_tensor_parallelism"}, 1), fill.count({"dcn_tensor_parallelism"}, 1)});
  s.context = product({fill.count({"ici_context_parallelism"}, 1), fill.count({"dcn_context_parallelism"}, 1)});
  s.stages = product({fill.count({"ici_pipeline_parallelism"}, 1), fill.count({"dcn_pipeline_parallelism"}, 1)});
  fill_maxtext_runs(fill, s);
  // Its axis of experts shares the batch as well.
  s.expert = product({fill.count({"ici_expert_parallelism"}, 1), fill.count({"dcn_expert_parallelism"}, 1)});
  const auto far = degree(fill, {"dcn_fsdp_parallelism"}), near = degree(fill, {"ici_data_parallelism"});
  const auto fsdp = product({degree(fill, {"ici_fsdp_parallelism"}), far});
  s.copies = product({near, degree(fill, {"dcn_data_parallelism"})});
  if (far != 1 && near != 1 && fsdp != 1)
    fill.refuse(
        "dcn_fsdp_parallelism beside ici_data_parallelism shards weights across slices and repeats them within "
        "one; a split here shards them among neighbours");
  s.sharding = product({fsdp, s.expert});
  s.data = product({s.copies, s.sharding});
  s.zero = fsdp == 1 ? 0 : 3;
  const auto remat = fill.text({"remat_policy"});
  s.recompute = remat && *remat != "none";
  s.selective = s.recompute && *remat != "full";
  const auto type = fill.text({"dtype"});
  s.precision = !type ? "" : *type == "bfloat16" ? "bf16" : *type == "float32" ? "fp32" : "";
  fill_maxtext_batch(fill, s);
}

/// MiCS (arXiv 2205.00119) is hybrid sharding. ZeRO++ (arXiv 2306.10209) is not: its shards lie on all devices, and
/// each node has a second copy of the weights.
void fill_deepspeed_shards(Filler& fill, TrainingSettings& s) {
  s.zero = fill.count({"zero_optimization.stage"}, 0, 0);
  if (s.zero != 3) return;
  if (fill.text({"zero_optimization.mics_shard_size"}))
    s.sharding = degree(fill, {"zero_optimization.mics_shard_size"});
  if (const auto second = fill.count({"zero_optimization.zero_hpz_partition_size"}, 1, 0); second > 1)
    fill.refuse(
        fmt::format("zero_hpz_partition_size of {} keeps a second copy of the weights on every {} devices, which "
                    "no split here has",
                    second, second));
}

/// PyTorch's fully sharded data parallelism under NeMo 1 (nemo/collections/nlp/parts/nlp_overrides.py).
void fill_nemo_fsdp(Filler& fill, TrainingSettings& s) {
  const auto strategy = fill.text({"fsdp_sharding_strategy"}).value_or("full");
  if (strategy == "full" || strategy == "grad") {
    s.zero = strategy == "full" ? 3 : 2;
  } else if (strategy == "hybrid") {
    fill.refuse(
        "fsdp_sharding_strategy hybrid shards within each node, and the file does not say how many devices a node "
        "has: type the split with shard=N");
  } else {
    fill.refuse(fmt::format("fsdp_sharding_strategy must be full, hybrid or grad, not '{}'", strategy.substr(0, 40)));
  }
}

void fill_megatron_shards(Filler& fill, TrainingSettings& s) {
  if (fill.on({"use_distributed_optimizer"}) || fill.text({"optim.name"}) == "distributed_fused_adam") s.zero = 1;
  if (s.framework == "NeMo" && fill.on({"model.fsdp"})) return fill_nemo_fsdp(fill, s);
  if (fill.on({"use_megatron_fsdp", "use_custom_fsdp"})) {
    const auto strategy = fill.text({"data_parallel_sharding_strategy"}).value_or("no_shard");
    constexpr std::array<std::string_view, 4> kStrategies{"no_shard", "optim", "optim_grads", "optim_grads_params"};
    const auto at = std::ranges::find(kStrategies, strategy);
    if (at == kStrategies.end())
      return fill.refuse(fmt::format("data_parallel_sharding_strategy must be one of {}, not '{}'",
                                     fmt::join(kStrategies, ", "), strategy.substr(0, 40)));
    s.zero = at - kStrategies.begin();
  }
  if (s.zero > 0) s.copies = fill.count({"num_distributed_optimizer_instances"}, 1);
  s.gather_first = (s.zero == 1 || s.zero == 2) && fill.on({"overlap_param_gather", "overlap_param_sync"});
  // Megatron-LM sums gradients behind backward unless told; NeMo's recipes do not leave it to that.
  const std::initializer_list<std::string_view> kMeanwhile = {"overlap_grad_reduce", "overlap_grad_sync",
                                                              "ddp_overlap"};
  const bool said = fill.text(kMeanwhile).has_value();
  s.reduce_last = s.zero < 2 && !s.gather_first && (said || s.framework == "Megatron-LM") && !fill.on(kMeanwhile);
  if (s.copies > 1 && fill.text({"outer_dp_sharding_strategy"}) == "optim")
    fill.refuse(
        "outer_dp_sharding_strategy optim shards the optimizer state among all devices and weights among some, "
        "which here are one number");
}

void fill_common(Filler& fill, TrainingSettings& s) {
  s.tensor = fill.count({"tensor_model_parallel_size", "tensor_parallel_degree", "autotp_size"}, 1);
  s.stages = fill.count({"pipeline_model_parallel_size", "pipeline_parallel_degree", "pipeline.stages"}, 1);
  s.context = fill.count({"context_parallel_size", "context_parallel_degree"}, 1);
  s.expert = fill.count({"expert_model_parallel_size", "expert_parallel_degree"}, 1);
  // torchtitan spreads experts over tensor groups, too, unless it is told to split each.
  s.expert_tensor =
      fill.count({"expert_tensor_parallel_size", "expert_tensor_parallel_degree"}, s.framework == "torchtitan" ? 1 : 0);
  s.runs_each = fill.count({"virtual_pipeline_model_parallel_size"}, 1);
  if (s.framework == "torchtitan") {
    // Who says nothing shards among all that is left.
    s.sharding = fill.text({"data_parallel_shard_degree"}) ? degree(fill, {"data_parallel_shard_degree"}) : 0;
    s.copies = fill.count({"data_parallel_replicate_degree"}, 1);
    s.data = s.sharding * s.copies;
    s.zero = s.sharding == 1 && s.context == 1 ? 0 : 3;  // devices that share a sequence always shard
  }
  if (s.framework == "DeepSpeed") fill_deepspeed_shards(fill, s);
  if (s.framework == "Megatron-LM" || s.framework == "NeMo") fill_megatron_shards(fill, s);
  const auto granularity =
      fill.text({"recompute_granularity", "activations_checkpoint_granularity", "activation_checkpoint.mode"});
  s.recompute = granularity && (*granularity == "full" || *granularity == "selective");
  s.selective = s.recompute && *granularity == "selective";
  s.by_operator = s.selective && fill.text({"activation_checkpoint.selective_ac_option"}) == "op";
  if (!granularity && fill.on({"recompute_activations"})) s.recompute = s.selective = true;
  s.micro_batch =
      fill.count({"micro_batch_size", "train_micro_batch_size_per_gpu", "local_batch_size", "training.batch_size"}, 0);
  s.accumulation = fill.count({"gradient_accumulation_steps"}, 0);
  s.sequence_parallel = s.tensor > 1 && fill.on({"sequence_parallel"});
  s.tensor_overlap = s.sequence_parallel && fill.on({"tp_comm_overlap", "ub_tp_comm_overlap"});
  if (s.framework == "torchtitan")
    s.forwards_first = s.stages > 1 && fill.text({"pipeline_parallel_schedule"}) == "GPipe";
  const bool half = fill.on({"bf16", "bf16.enabled"}) || fill.on({"fp16", "fp16.enabled"});
  const auto words = fill.text({"precision", "mixed_precision_param"});
  if (half || (words && (words->find("16") != std::string::npos))) s.precision = "bf16";
}

}  // namespace

std::int64_t TrainingSettings::batch_on(std::int64_t devices) const {
  if (global_batch > 0) return global_batch;
  const auto replicas =
      data > 0 ? data : std::max<std::int64_t>(1, devices / std::max<std::int64_t>(1, tensor * context * stages));
  return micro_batch > 0 ? product({micro_batch, replicas, std::max<std::int64_t>(1, accumulation)}) : 0;
}

bool is_training_settings(std::string_view text) { return !read_keys(text).framework.empty(); }

Expected<TrainingSettings> parse_training_settings(std::string_view text, const std::string& path) {
  const auto document = read_keys(text);
  if (document.framework.empty())
    return bad_input(
        "is no settings file that is known here: DeepSpeed JSON, Megatron-LM arguments, NeMo or MaxText YAML, "
        "torchtitan TOML",
        path);
  TrainingSettings s;
  s.framework = document.framework;
  Filler fill(document.keys, path);
  if (s.framework == "MaxText")
    fill_maxtext(fill, s);
  else
    fill_common(fill, s);
  s.global_batch = fill.count({"global_batch_size", "train_batch_size", "global_batch_size_to_train_on"}, 0);
  s.sequence = fill.count({"seq_length", "seq_len", "max_target_length", "encoder_seq_length"}, 0);
  const bool too_many = std::ranges::any_of(
      std::array{s.tensor, s.context, s.expert, s.stages, s.runs_each, s.expert_tensor, product({s.tensor, s.context})},
      [](std::int64_t count) { return count > 65536; });
  if (too_many || s.zero > 3 || s.data > kMaxCount)
    return bad_input("asks for more than 65,536 parts or an unknown stage of ZeRO", path);
  if (fill.error) return *fill.error;
  return s;
}

Expected<TrainingSettings> open_training_settings(const std::string& path) {
  const auto text = read_file(path, kMaxFile);
  if (!text) return text.error();
  return parse_training_settings(*text, path);
}

}  // namespace turnpoint
