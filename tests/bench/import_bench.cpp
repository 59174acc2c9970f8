// SPDX-License-Identifier: Apache-2.0
// How long a model takes to open and to bind. The large file holds 1.9 GB of weights (sparse on disk): only its headers
// may be touched.
#include <benchmark/benchmark.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <string>

#include "core/import/source/model_source.h"
#include "import/onnx_writer.h"
#include "test_data.h"

namespace {

using turnpoint::test::Message;

constexpr std::int64_t kLayers = 58, kWidth = 2896;  // 58 matrices of 2896 x 2896 floats: 1.95 GB

/// Bytes of resident memory that belong to files and to the heap now.
std::int64_t resident_bytes() {
  std::ifstream in("/proc/self/statm");
  std::int64_t total = 0, resident = 0;
  in >> total >> resident;
  return resident * sysconf(_SC_PAGESIZE);
}

/// An ONNX file whose raw_data are holes: lengths are written, bytes are not.
std::string write_large_file() {
  const auto path =
      (std::filesystem::temp_directory_path() / ("turnpoint_large_" + std::to_string(getpid()) + ".onnx")).string();
  turnpoint::test::Model graph;
  graph.input("x", {"batch", std::to_string(kWidth)});
  for (int layer = 0; layer < kLayers; ++layer) {
    const auto name = [&](const char* prefix, int k) { return std::string(prefix).append(std::to_string(k)); };
    graph.node("MatMul", {layer == 0 ? std::string("x") : name("y", layer - 1), name("w", layer)}, {name("y", layer)});
  }
  graph.output(std::string("y").append(std::to_string(kLayers - 1)));
  const std::uint64_t weight_bytes = static_cast<std::uint64_t>(kWidth * kWidth * 4);
  std::uint64_t graph_size = graph.graph().bytes().size();
  std::vector<std::string> headers;
  for (int layer = 0; layer < kLayers; ++layer) {
    auto header = turnpoint::test::tensor(std::string("w").append(std::to_string(layer)), {kWidth, kWidth},
                                          turnpoint::test::kFloat);
    header.tag(9, 2).varint(weight_bytes);
    const auto field = Message().tag(5, 2).varint(header.bytes().size() + weight_bytes);
    headers.push_back(field.bytes() + header.bytes());
    graph_size += headers.back().size() + weight_bytes;
  }
  std::ofstream out(path, std::ios::binary);
  out << Message().number(1, 8).message(8, Message().text(1, "").number(2, 17)).tag(7, 2).varint(graph_size).bytes();
  out << graph.graph().bytes();
  for (const auto& header : headers) {
    out << header;
    out.seekp(static_cast<std::streamoff>(weight_bytes), std::ios::cur);
  }
  const auto size = out.tellp();
  out.close();
  std::filesystem::resize_file(path, static_cast<std::uintmax_t>(size));
  return path;
}

void large_file(benchmark::State& state) {
  const auto path = write_large_file();
  const auto before = resident_bytes();
  std::int64_t grown = 0;
  for (auto _ : state) {
    const auto source = turnpoint::open_onnx(path);
    if (!source) return state.SkipWithError(source.error().message().c_str());
    const auto model = (*source)->bind({1, 0});
    if (!model || (*model)->parameters != kLayers * kWidth * kWidth) return state.SkipWithError("wrong model");
    grown = std::max(grown, resident_bytes() - before);
  }
  state.counters["file_MB"] = static_cast<double>(std::filesystem::file_size(path)) / 1e6;
  state.counters["resident_MB"] = static_cast<double>(grown) / 1e6;
  std::filesystem::remove(path);
}
BENCHMARK(large_file)->Unit(benchmark::kMillisecond);

void real_file(benchmark::State& state, const char* name, std::int64_t batch) {
  const auto folder = turnpoint::test::data_folder();
  if (folder.empty()) return state.SkipWithError("data folder absent: set TURNPOINT_DATA");
  for (auto _ : state) {
    const auto source = turnpoint::open_onnx((folder / name).string());
    if (!source) return state.SkipWithError(source.error().message().c_str());
    const auto model = (*source)->bind({batch, 0});
    if (!model) return state.SkipWithError(model.error().message().c_str());
    benchmark::DoNotOptimize(model);
  }
}
BENCHMARK_CAPTURE(real_file, vit_b_16_rebound, "onnx/exported/vit_b_16_ext.onnx", 256)->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(real_file, resnet50_train, "onnx/exported/resnet50_train_inputs.onnx", 256)
    ->Unit(benchmark::kMillisecond);
BENCHMARK_CAPTURE(real_file, ultraface, "onnx/real/ultraface_rfb320.onnx", 64)->Unit(benchmark::kMillisecond);

}  // namespace

BENCHMARK_MAIN();
