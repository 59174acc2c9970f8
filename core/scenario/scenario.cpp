// SPDX-License-Identifier: Apache-2.0
#include "core/scenario/scenario.h"

#include <fmt/format.h>
#include <algorithm>
#include <cassert>
#include <cmath>
#include <mutex>

#include "core/model/fuse_attention.h"
#include "core/model/split_loss.h"

namespace turnpoint {

std::string words_of(const std::vector<TakenSetting>& taken) {
  std::string words;
  for (const auto& [key, value, reason, stated] : taken)
    words += (words.empty() ? "" : ", ") + key + " " + value + " (" + reason + ")";
  return words;
}

namespace {

constexpr std::string_view kPrecisions[] = {"fp32", "bf16", "fp8"};
constexpr std::string_view kGradients[] = {"weights", "fp32"};
constexpr std::string_view kOptimizerStates[] = {"fp32", "bf16"};
constexpr std::string_view kGathers[] = {"as-read", "bf16"};
constexpr std::string_view kKernels[] = {"fused", "eager"};
constexpr std::string_view kAttentions[] = {"auto", "fused", "unfused"};
constexpr std::string_view kLosses[] = {"fp32", "activations"};
constexpr std::string_view kOptimizers[] = {"sgd", "momentum", "adam", "lars", "lamb", "adafactor"};
constexpr std::string_view kAccountings[] = {"full", "paper"};
constexpr std::string_view kCollectives[] = {"library", "rings"};

// Doubles carry every option, so whole numbers stay below 2^53.
constexpr double kLargestSeed = 9007199254740991.0, kLargestBytes = 4503599627370496.0;

constexpr double kMostSteps = 1e9;  // more than any training has

constexpr Settings kDefaults;

/// A record together with how it reads and writes the settings.
struct Entry {
  OptionRecord record;
  double (*get)(const Settings&);
  void (*set)(Settings&, double);
};

OptionRecord scale(std::string_view key, std::string_view text, std::string_view help) {
  return {key, text, "\u00d7", OptionType::real, 1e-3, 1, 1e3, {}, help};
}

OptionRecord every(std::string_view key, std::string_view text, std::string_view help) {
  return {key, text, "steps", OptionType::integer, 0, 0, kMostSteps, {}, help};
}

OptionRecord switch_record(std::string_view key, std::string_view text, std::string_view help) {
  return {key, text, "", OptionType::flag, 0, 1, 1, {}, help};
}

const std::vector<Entry>& entries() {
  static const std::vector<Entry> table = {
      {{"batch",
        "Batch",
        "samples",
        OptionType::integer,
        1,
        double(kDefaults.batch),
        1 << 24,
        {},
        "Samples in one iteration, over all devices"},
       [](const Settings& s) { return double(s.batch); },
       [](Settings& s, double v) { s.batch = std::int64_t(v); }},
      {{"sequence",
        "Sequence",
        "tokens",
        OptionType::integer,
        0,
        0,
        1 << 24,
        {},
        "Tokens per sample; 0: the model's default"},
       [](const Settings& s) { return double(s.sequence); },
       [](Settings& s, double v) { s.sequence = std::int64_t(v); }},
      {{"devices", "Devices", "", OptionType::integer, 0, 0, 65536, {}, "Devices used; 0: all of the hardware"},
       [](const Settings& s) { return double(s.devices); },
       [](Settings& s, double v) { s.devices = int(v); }},
      {{"precision", "Precision", "", OptionType::choice, 0, double(kDefaults.precision), 2, kPrecisions,
        "Number format of activations and matrix products; fp8: bf16 with 8-bit products of weights"},
       [](const Settings& s) { return double(s.precision); },
       [](Settings& s, double v) { s.precision = Precision(int(v)); }},
      {{"gradients", "Gradients", "", OptionType::choice, 0, double(kDefaults.gradients), 1, kGradients,
        "Number format in which gradients are kept and summed: that of the weights, or fp32"},
       [](const Settings& s) { return double(s.gradients); },
       [](Settings& s, double v) { s.gradients = Gradients(int(v)); }},
      {{"attention", "Attention", "", OptionType::choice, 0, double(kDefaults.attention), 2, kAttentions,
        "Attention as one kernel that never writes the scores, or operator by operator; auto: fused in 16 bits"},
       [](const Settings& s) { return double(s.attention); },
       [](Settings& s, double v) { s.attention = Attention(int(v)); }},
      {{"loss", "Loss", "", OptionType::choice, 0, double(kDefaults.loss), 1, kLosses,
        "Number format in which a loss over classes computes and keeps probabilities: fp32, or that of activations"},
       [](const Settings& s) { return double(s.loss); },
       [](Settings& s, double v) { s.loss = LossPrecision(int(v)); }},
      {{"kernels", "Kernels", "", OptionType::choice, 0, double(kDefaults.kernels), 1, kKernels,
        "Whether norms, activations, rotary positions and losses run as one kernel each, or as PyTorch runs them "
        "uncompiled"},
       [](const Settings& s) { return double(s.kernels); },
       [](Settings& s, double v) { s.kernels = Kernels(int(v)); }},
      {{"optimizer", "Optimizer", "", OptionType::choice, 0, double(kDefaults.optimizer), 5, kOptimizers,
        "Decides the optimizer state kept for every parameter"},
       [](const Settings& s) { return double(s.optimizer); },
       [](Settings& s, double v) { s.optimizer = Optimizer(int(v)); }},
      {{"optimizer-state", "Optimizer state", "", OptionType::choice, 0, double(kDefaults.optimizer_state), 1,
        kOptimizerStates, "Number format of the optimizer's moments; a master copy of 16-bit weights stays fp32"},
       [](const Settings& s) { return double(s.optimizer_state); },
       [](Settings& s, double v) { s.optimizer_state = OptimizerState(int(v)); }},
      {{"gathers", "Weight gathers", "", OptionType::choice, 0, double(kDefaults.gathers), 1, kGathers,
        "Number format in which new weights of shared out updates are gathered: as read, or bf16 where only products "
        "read fp32 weights"},
       [](const Settings& s) { return double(s.gathers); },
       [](Settings& s, double v) { s.gathers = Gathers(int(v)); }},
      {every("checkpoint-every", "Checkpoint every",
             "Steps between checkpoints, which need weights and optimizer state whole; 0: never"),
       [](const Settings& s) { return double(s.checkpoint_every); },
       [](Settings& s, double v) { s.checkpoint_every = std::int64_t(v); }},
      {every("summary-every", "Summary every", "Steps between summaries, which need the weights whole; 0: never"),
       [](const Settings& s) { return double(s.summary_every); },
       [](Settings& s, double v) { s.summary_every = std::int64_t(v); }},
      {every("evaluation-every", "Evaluation every", "Steps between evaluations, which read the weights; 0: never"),
       [](const Settings& s) { return double(s.evaluation_every); },
       [](Settings& s, double v) { s.evaluation_every = std::int64_t(v); }},
      {{"accounting", "Accounting", "", OptionType::choice, 0, double(kDefaults.accounting), 1, kAccountings,
        "What memory counts: full, or parameters and kept tensors only (paper)"},
       [](const Settings& s) { return double(s.accounting); },
       [](Settings& s, double v) { s.accounting = Accounting(int(v)); }},
      {{"collectives", "Collectives", "", OptionType::choice, 0, double(kDefaults.collectives), 1, kCollectives,
        "What collectives cost: as the hardware's library makes them, or rings, every operator's by itself"},
       [](const Settings& s) { return double(s.collectives); },
       [](Settings& s, double v) { s.collectives = Collectives(int(v)); }},
      {{"bucket",
        "Gradient bucket",
        "bytes",
        OptionType::bytes,
        0,
        double(kDefaults.bucket_bytes),
        kLargestBytes,
        {},
        "Bytes that gradients travel together in, such as 25MiB; 0: those of every operator by themselves"},
       [](const Settings& s) { return double(s.bucket_bytes); },
       [](Settings& s, double v) { s.bucket_bytes = std::int64_t(v); }},
      {scale("intra-bandwidth-scale", "Intra-node bandwidth", "Factor on the bandwidth between devices of a node"),
       [](const Settings& s) { return s.factors.intra_bandwidth; },
       [](Settings& s, double v) { s.factors.intra_bandwidth = v; }},
      {scale("inter-bandwidth-scale", "Inter-node bandwidth", "Factor on the bandwidth between nodes"),
       [](const Settings& s) { return s.factors.inter_bandwidth; },
       [](Settings& s, double v) { s.factors.inter_bandwidth = v; }},
      {scale("latency-scale", "Latency", "Factor on the latency of every link"),
       [](const Settings& s) { return s.factors.latency; }, [](Settings& s, double v) { s.factors.latency = v; }},
      {scale("device-memory-scale", "Device memory", "Factor on the memory of every device"),
       [](const Settings& s) { return s.factors.device_memory; },
       [](Settings& s, double v) { s.factors.device_memory = v; }},
      {scale("device-speed-scale", "Device speed", "Factor on the speed of every device"),
       [](const Settings& s) { return s.factors.device_speed; },
       [](Settings& s, double v) { s.factors.device_speed = v; }},
      {{"memory-limit",
        "Memory limit",
        "bytes",
        OptionType::bytes,
        0,
        0,
        kLargestBytes,
        {},
        "What must fit on one device, such as 14.5GiB; 0: the device's memory less the reserve"},
       [](const Settings& s) { return double(s.memory_limit); },
       [](Settings& s, double v) { s.memory_limit = std::int64_t(v); }},
      {{"reserve",
        "Reserve",
        "bytes",
        OptionType::bytes,
        0,
        0,
        kLargestBytes,
        {},
        "Device memory that context, communication library and allocator take, such as 1.2GiB; 0: as the hardware "
        "says"},
       [](const Settings& s) { return double(s.reserve_bytes); },
       [](Settings& s, double v) { s.reserve_bytes = std::int64_t(v); }},
      {{"price-per-hour",
        "Price per device-hour",
        "",
        OptionType::real,
        0,
        0,
        1e6,
        {},
        "Price of one device for an hour, in any currency; 0: the hardware's, where it has one"},
       [](const Settings& s) { return s.price_per_hour; },
       [](Settings& s, double v) { s.price_per_hour = v; }},
      {{"seed",
        "Seed",
        "",
        OptionType::integer,
        0,
        double(kDefaults.seed),
        kLargestSeed,
        {},
        "Seed of every random choice"},
       [](const Settings& s) { return double(s.seed); },
       [](Settings& s, double v) { s.seed = std::uint64_t(v); }},
      {{"split-windows",
        "Split windows",
        "",
        OptionType::flag,
        0,
        0,
        1,
        {},
        "Let heights, widths and the key sequence of attention be split"},
       [](const Settings& s) { return double(s.split_windows); },
       [](Settings& s, double v) { s.split_windows = v != 0; }},
      {switch_record("recompute", "Recompute", "Let operators compute activations again instead of keeping them"),
       [](const Settings& s) { return double(s.recompute); }, [](Settings& s, double v) { s.recompute = v != 0; }},
      {switch_record("offload", "Offload", "Let optimizer state live in the host's memory"),
       [](const Settings& s) { return double(s.offload); }, [](Settings& s, double v) { s.offload = v != 0; }},
      {switch_record("update-sharding", "Shard updates",
                     "Let devices with the same parameters share out their update, and the parameters themselves"),
       [](const Settings& s) { return double(s.update_sharding); },
       [](Settings& s, double v) { s.update_sharding = v != 0; }},
      {switch_record("split-loss", "Split loss", "Let a loss over a vocabulary be split by its words"),
       [](const Settings& s) { return double(s.split_loss); }, [](Settings& s, double v) { s.split_loss = v != 0; }},
  };
  return table;
}

const Entry* find(std::string_view key) {
  for (const auto& entry : entries())
    if (entry.record.key == key) return &entry;
  return nullptr;
}

}  // namespace

const char* to_string(Optimizer optimizer) { return kOptimizers[static_cast<std::size_t>(optimizer)].data(); }
const char* to_string(Accounting accounting) { return kAccountings[static_cast<std::size_t>(accounting)].data(); }

int optimizer_state_bytes(Optimizer optimizer) {
  switch (optimizer) {
    case Optimizer::sgd: return 0;
    case Optimizer::momentum:
    case Optimizer::lars: return 4;
    case Optimizer::adam:
    case Optimizer::lamb: return 8;
    // Second moments are kept as one row and one column of every matrix: next to nothing per element.
    case Optimizer::adafactor: return 0;
  }
  return 0;
}

std::span<const OptionRecord> scenario_options() {
  static const std::vector<OptionRecord> records = [] {
    std::vector<OptionRecord> list;
    for (const auto& entry : entries()) list.push_back(entry.record);
    return list;
  }();
  return records;
}

double get_option(const Settings& settings, std::string_view key) {
  const Entry* entry = find(key);
  assert(entry);
  return entry->get(settings);
}

void set_option(Settings& settings, std::string_view key, double value) {
  const Entry* entry = find(key);
  assert(entry);
  entry->set(settings, value);
}

bool Scenario::by_library() const {
  return settings.collectives == Collectives::library && settings.accounting == Accounting::full;
}

namespace {

std::int64_t limit_on(const Scenario& scenario, const DeviceType& device) {
  if (scenario.settings.memory_limit > 0) return scenario.settings.memory_limit;
  if (device.memory_bytes == kUnlimitedBytes) return kUnlimitedBytes;
  const auto memory = static_cast<std::int64_t>(
      std::floor(static_cast<double>(device.memory_bytes) * scenario.settings.factors.device_memory));
  return std::max<std::int64_t>(1, memory - scenario.reserved_bytes());
}

}  // namespace

std::int64_t Scenario::memory_limit() const { return limit_on(*this, cluster->device); }

std::int64_t Scenario::memory_limit_of(std::uint32_t device) const {
  return limit_on(*this, device_of(*cluster, device));
}

std::int64_t Scenario::reserved_bytes() const {
  if (settings.memory_limit > 0 || settings.accounting == Accounting::paper ||
      cluster->device.memory_bytes == kUnlimitedBytes)
    return 0;
  return settings.reserve_bytes > 0 ? settings.reserve_bytes : cluster->device.reserve_bytes;
}

std::optional<double> Scenario::price_per_hour() const {
  if (settings.price_per_hour > 0) return settings.price_per_hour;
  return cluster->device.price_per_hour;
}

bool fuses_attention(const Settings& settings, const Cluster& cluster) {
  if (settings.accounting == Accounting::paper || settings.attention == Attention::unfused) return false;
  return settings.attention == Attention::fused ||
         (settings.precision != Precision::fp32 && cluster.library != Library::ring);
}

namespace {

/// Every edit makes a scenario of the same model: what was made of it last is kept as long as somebody uses it.
class Made {
 public:
  explicit Made(ModelPtr (*make)(const ModelPtr&)) : make_(make) {}

  ModelPtr of(const ModelPtr& model) {
    const std::scoped_lock lock(mutex_);
    std::erase_if(known_, [](const One& one) { return one.from.expired() || one.made.expired(); });
    for (const One& one : known_) {
      const ModelPtr made = one.made.lock();
      if (made && (made == model || one.from.lock() == model)) return made;
    }
    ModelPtr made = make_(model);
    known_.push_back({model, made});
    return made;
  }

 private:
  struct One {
    std::weak_ptr<const Model> from, made;
  };
  ModelPtr (*make_)(const ModelPtr&);
  std::mutex mutex_;
  std::vector<One> known_;
};

ModelPtr as_computed(ModelPtr model, const Settings& settings, const Cluster& cluster) {
  static Made fused(fuse_attention), split(split_loss),
      both([](const ModelPtr&whole) { return split_loss(fuse_attention(whole)); });
  if (!model) return model;
  const bool fuses = fuses_attention(settings, cluster),
             splits = settings.split_loss && settings.accounting != Accounting::paper;
  if (fuses && splits) return both.of(model);
  return fuses ? fused.of(model) : splits ? split.of(model) : model;
}

}  // namespace

Expected<ScenarioPtr> make_scenario(ModelPtr model, const ClusterPtr& cluster, std::string hardware,
                                    const Settings& settings) {
  auto scenario = std::make_shared<Scenario>();
  scenario->cluster = cluster;
  if (settings.devices > 0) {
    auto cut = with_devices(cluster, settings.devices);
    if (!cut) return cut.error();
    scenario->cluster = *cut;
  }
  if (settings.precision == Precision::fp8 && scenario->cluster->device.peak_fp8 <= 0)
    return usage_error(fmt::format("{} multiplies no 8-bit numbers: its hardware has no peak_flop_per_s for fp8",
                                   scenario->cluster->device.name));
  scenario->model = as_computed(std::move(model), settings, *scenario->cluster);
  scenario->hardware = std::move(hardware);
  scenario->settings = settings;
  return ScenarioPtr(std::move(scenario));
}

}  // namespace turnpoint
