// SPDX-License-Identifier: Apache-2.0
// Measurements that other programs wrote down: collectives, operators, links and topologies, read into one structure as
// they stand. Nothing is smoothed; what is wrong with a file is listed with its line.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/base/expected.h"
#include "core/hardware/cluster.h"

namespace turnpoint {

enum class LogKind : std::uint8_t {
  nccl_tests,       ///< the table of all_reduce_perf and its sisters (also RCCL's), any age
  nccl_tests_json,  ///< its -J file
  nvbandwidth,      ///< nvbandwidth's matrices
  nvbandwidth_json,
  smi_topology,   ///< nvidia-smi topo -m
  nccl_topology,  ///< NCCL_TOPO_DUMP_FILE, NVIDIA's or AMD's
  galvatron,      ///< allreduce_bandwidth, p2p_bandwidth, sp_time, overlap_coefficient, computation_profiling
  nnscaler,       ///< intra_N.json
  vidur_collectives,
  vidur_compute,
  deepbench_gemm,
  aceso_operators,
  aceso_collectives,  ///< prim_*.csv
  aceso_p2p,
  kineto,         ///< a trace of the PyTorch profiler
  osu,            ///< OSU micro-benchmarks
  intel_mpi,      ///< Intel MPI Benchmarks
  perftest,       ///< ib_write_bw and its sisters
  rocm_topology,  ///< rocm-smi --showtopo
  param,          ///< PARAM's comms benchmark
  superbench,     ///< results of superbench: collectives, network cards, copies
  aiconfigurator, ///< nccl_perf and gemm_perf as text
  nsys,           ///< nsys stats, summaries of kernels as csv
  gpu_specs       ///< data-sheet figures of one device, nothing measured
};
const char* to_string(LogKind kind);  ///< "nccl-tests table", for people

/// What is wrong or noteworthy; line 0: the file as a whole.
struct LogProblem {
  enum class Severity : std::uint8_t { note, warning };
  Severity severity = Severity::warning;
  int line = 0;
  std::string what;
};

/// Spread of repeated measurements in seconds; 0 where not known.
struct RepeatSpread {
  double min_s = 0, q1_s = 0, q3_s = 0, max_s = 0;
};

/// `bytes` is the full logical tensor of one group, as in CollectiveSample, whatever the file counts.
struct MeasuredPoint {
  double bytes = 0;
  double time_s = 0;  ///< the median where the size was measured several times
  RepeatSpread spread;
  int repeats = 1;
  int line = 0;  ///< of its first row
};

/// Times of one collective on one shape of group, sizes rising and distinct.
struct MeasuredCurve {
  Collective kind = Collective::all_reduce;
  DeviceGroup group;
  std::string variant;  ///< "" or what tells it from others of this kind and group: "in-place", "strided"
  std::vector<MeasuredPoint> points;
  std::string path;
};

/// One number without a size.
enum class Figure : std::uint8_t {
  bus_bandwidth,     ///< bytes/s of a collective's ring, `kind` and `group` set; kind send: plain bandwidth
  host_to_device,    ///< bytes/s
  device_to_host,    ///< bytes/s
  device_to_device,  ///< bytes/s, one pair, one direction
  device_memory,     ///< bytes/s of a device's own memory
  host_latency,      ///< s
  node_network,      ///< bytes/s of all network cards of a node
  host_link_wire,    ///< bytes/s of the PCIe wire
  overlap_slowdown,  ///< factor on computing and communicating at once
  peak_16bit,        ///< FLOP/s, dense
  peak_32bit,        ///< FLOP/s, vector units
  intra_node_link,
  inter_node_link,  ///< bytes/s as a data sheet has them
  link_latency,     ///< s
  network_card,     ///< bytes/s of one card between two nodes, one direction
  card_latency      ///< s, one way between two nodes, one card
};
const char* to_string(Figure figure);
struct MeasuredFigure {
  Figure figure = Figure::bus_bandwidth;
  double value = 0;
  Collective kind = Collective::all_reduce;
  DeviceGroup group;
  std::string label;  ///< as the file names it
  int line = 0;
};

/// One operator's time as the file has it: names and dimensions are the file's, no mapping to our operators.
struct MeasuredOperator {
  std::string model;                                       ///< "gpt_350M", empty where the file does not say
  std::string kind;                                        ///< "enc-MLP-GEMM-1", "gemm", "mlp_up_proj", "layertype_0"
  std::vector<std::pair<std::string, std::int64_t>> dims;  ///< {"M", 1760}, {"num_tokens", 4096}
  int tensor_parallel = 1;
  int micro_batch = 0;                    ///< samples; 0: not given
  int variant = 0;                        ///< Aceso's algo: 0 row-split first, 1 column-split first
  Precision precision = Precision::fp32;  ///< bf16 stands for every 16-bit format
  std::string phase = "forward";          ///< forward | backward
  double time_s = 0;
  RepeatSpread spread;
  std::optional<double> input_mib, output_mib, weights_mib, activations_mib, reserved_mib;  ///< of one device
  int line = 0;
};

/// Devices of one node and what joins them, from `nvidia-smi topo -m` or an NCCL topology file.
struct Topology {
  int devices = 0;
  std::vector<std::string> nics;
  std::vector<std::vector<std::string>> links;  ///< devices x devices: "NV12", "PHB", "xGMI"; "X" on the diagonal
  int nvlinks_per_device = 0;                   ///< wires a device has; behind a switch those of one pair; 0: none
};

struct MeasuredLog {
  std::string path;
  LogKind kind = LogKind::nccl_tests;
  std::vector<MeasuredCurve> curves;
  std::vector<MeasuredFigure> figures;
  std::vector<MeasuredOperator> operators;
  std::optional<Topology> topology;
  std::string device_name;              ///< as the log names it; may be empty
  int nodes = 0, devices_per_node = 0;  ///< 0: the log does not say
  double memory_bytes = 0;              ///< of one device, where the log says
  std::vector<LogProblem> problems;     ///< by line; at most kMaximumProblems
  std::size_t problems_left_out = 0;
};
inline constexpr std::size_t kMaximumProblems = 200;

/// Tells the kind by the content and reads it. Sizes that a file encodes in its name only (Aceso's models, nnScaler's
/// group size, Galvatron's nodes) are taken from `path`. Bad input where nothing can be used: not a text, a kind nobody
/// knows, no usable row.
Expected<MeasuredLog> read_measured_log(const std::string& path);
Expected<MeasuredLog> parse_measured_log(std::string_view text, const std::string& path);

/// What a file begins with, gzip undone: all of it, or the first 32 MiB. A longer log is read from the file again, line
/// by line, so that its length does not matter.
struct FileStart {
  std::string text;
  bool whole = true;
};
Expected<FileStart> read_start(const std::string& path);
Expected<MeasuredLog> read_measured_log(const std::string& path, const FileStart& start);

}  // namespace turnpoint
