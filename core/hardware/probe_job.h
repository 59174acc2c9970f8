// SPDX-License-Identifier: Apache-2.0
// turnpoint/probe-job@1: what turnpoint-probe is asked to measure. The one who asks composes the whole list; the probe
// knows kernels ("calls") and nothing of models.
#pragma once

#include <array>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/hardware/cluster.h"

namespace turnpoint {

enum class ProbeBackend : std::uint8_t { automatic, cpu, cuda };
const char* to_string(ProbeBackend backend);  ///< "auto", "cpu", "cuda"

/// Matrix products and convolutions of CPU ranks: oneDNN where it is there (else OpenBLAS, else ours), oneDNN or
/// nothing, or our own loops.
enum class CpuKernels : std::uint8_t { automatic, onednn, own };
const char* to_string(CpuKernels kernels);  ///< "auto", "onednn", "own"
std::optional<CpuKernels> parse_cpu_kernels(std::string_view name);

/// fp32 with tf32 off; tf32 is fp32 data multiplied on the matrix units' reduced format.
enum class ProbePrecision : std::uint8_t { fp32, tf32, bf16 };
const char* to_string(ProbePrecision precision);

/// One kernel. The order of enumerators is that of call_records().
enum class CallKind : std::uint8_t {
  matmul,
  convolution,
  convolution_data,
  convolution_filter,
  elementwise,
  copy,
  softmax,
  softmax_backward,
  layer_norm,
  layer_norm_backward,
  batch_norm,
  batch_norm_backward,
  pooling,
  pooling_backward,
  embedding,
  embedding_backward,
  cross_entropy,
  cross_entropy_backward,
  row_sum,
  column_sum,
  adam,
  launch,
  host_to_device,
  device_to_host,
};

/// Name and sizes of a kind of call, as the files spell them.
struct CallRecord {
  CallKind kind;
  std::string_view name;
  std::span<const std::string_view> sizes;
};
std::span<const CallRecord> call_records();
const CallRecord& call_record(CallKind kind);

struct ProbeCall {
  CallKind kind = CallKind::launch;
  std::array<std::int64_t, 17> size{};  ///< in the order of call_record(kind).sizes
  std::int64_t count = 1;               ///< launches one after the other

  std::int64_t operator[](std::size_t index) const { return size[index]; }
  friend bool operator==(const ProbeCall&, const ProbeCall&) = default;
};
/// Elements of all buffers that one launch touches, and its FLOP (matrix products and convolutions: 2 per
/// multiply-accumulate; else 0). As doubles, so that absurd sizes do not overflow.
double call_elements(const ProbeCall& call);
double call_flop(const ProbeCall& call);

/// One time to measure: the calls of one phase of an operator, one after the other. `kind`, `dims`, `precision` and
/// `phase` are the signature under which a hardware profile keeps the time.
struct ProbeOperator {
  std::string kind;                ///< "matmul", as in a profile
  std::string fit;                 ///< the variety whose constants are fitted: "convolution 3x3 stride 2"
  std::vector<std::int64_t> dims;  ///< local sizes of the loop dimensions
  ProbePrecision precision = ProbePrecision::fp32;
  bool backward = false;
  double flop = 0, bytes = 0;  ///< as the cost model counts them; 0: the time serves no fit
  double launches = 1;         ///< of its kernels, one after the other, as the cost model counts them
  std::vector<ProbeCall> calls;
};

/// Kind of the items from which the size of the caches is read (core/hardware/cache_misses.h): sums of two tensors of
/// dims[0] elements, each of which moves so many bytes.
inline constexpr const char* kCachePass = "cache";
inline constexpr std::int64_t kCachePassBytes = 12;

/// A collective to measure, in equal groups that all run at once: ranks `stride` apart, 1 being neighbours.
struct ProbeCollective {
  Collective kind = Collective::all_reduce;
  int group_size = 2;
  std::int64_t bytes = 0;  ///< the full logical tensor of one group, fp32 elements
  int stride = 1;
};

/// Bytes of which the sizes of such a collective should be multiples: whole elements for every member.
std::int64_t collective_unit(const ProbeCollective& collective);

/// A time of one of these that is known already; serves the search for sizes between the listed ones.
struct KnownCollective {
  ProbeCollective collective;
  double time_s = 0, spread = 0;  ///< (q3 - q1) / median
};

struct ProbeJob {
  ProbeBackend backend = ProbeBackend::automatic;
  int device = 0;  ///< CUDA: which GPU, the first of several
  int ranks = 1;   ///< processes; asked for the backend cuda, each with the next GPU
  CpuKernels cpu_kernels = CpuKernels::automatic;
  double budget_s = 60;  ///< the whole run; what is left then is reported as skipped
  double item_s = 0.5;   ///< sampling time of one item
  double limit_s = 30;   ///< an item that takes longer than this is given up
  bool check = false;    ///< compare every kernel with the plain loops first (GPUs)
  bool hot = false;      ///< also time repetitions that find their numbers in the caches
  std::uint64_t seed = 1;
  /// Once all items are through, sizes between neighbours of a curve are measured too, where a point differs by more
  /// than this from the line between its neighbours (core/hardware/refine_curve.h). 0: not.
  double refine = 0;
  std::vector<ProbeOperator> operators;
  std::vector<ProbeCollective> collectives;
  std::vector<KnownCollective> known;

  std::size_t items() const { return operators.size() + collectives.size(); }
};

inline constexpr int kMaximumProbeRanks = 64;

/// Items in the order in which they are measured: collectives evenly among the operators, so that a budget that ends
/// early leaves some of both. Item numbers count operators first, then collectives.
std::vector<std::size_t> run_order(const ProbeJob& job);

/// Every number is checked; the message names the place.
Expected<ProbeJob> parse_probe_job(std::string_view text, const std::string& where);
std::string write_probe_job(const ProbeJob& job);

/// What is timed and nothing else: the calls and the precision of an operator, the kind, groups and bytes of a
/// collective. Times of items with one signature on one device stand for each other.
std::string time_signature(const ProbeOperator& op);
std::string time_signature(const ProbeCollective& collective);

/// The signature of an operator as the probe repeats it with every item, so that a recording explains itself.
nlohmann::json operator_header(const ProbeOperator& op);

}  // namespace turnpoint
