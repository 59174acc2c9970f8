// SPDX-License-Identifier: Apache-2.0
// Any bytes as a safetensors file, as an index of several, and as one of the files that no importer reads: counts, a
// kind or a message that names the file.
#include "core/import/files/foreign_file.h"
#include "core/import/files/safetensors.h"
#include "fuzz/checks.h"
#include "fuzz/seed_corpus.h"

namespace {

std::string with_length(const std::string& header, std::size_t data) {
  std::string text;
  for (int i = 0; i < 8; ++i) text += static_cast<char>(header.size() >> (8 * i) & 0xff);
  return text + header + std::string(data, '\0');
}

}  // namespace

extern "C" const char* turnpoint_fuzz_corpus() { return "stored"; }

extern "C" void turnpoint_fuzz_seeds(std::vector<std::string>& seeds) {
  seeds.push_back(with_length(R"({"__metadata__": {"format": "pt"},
    "model.embed.weight": {"dtype": "BF16", "shape": [16, 4], "data_offsets": [0, 128]},
    "model.norm.weight": {"dtype": "F32", "shape": [4], "data_offsets": [128, 144]},
    "model.bn.running_mean": {"dtype": "F32", "shape": [4], "data_offsets": [144, 160]},
    "model.rotary.inv_freq": {"dtype": "F64", "shape": [], "data_offsets": [160, 168]},
    "model.q.qweight": {"dtype": "I32", "shape": [2, 2], "data_offsets": [168, 184]}})", 184));
  seeds.push_back(with_length(R"({"w": {"dtype": "F8_E4M3", "shape": [0, 7], "data_offsets": [0, 0]}})", 0));
  seeds.emplace_back(R"({"metadata": {"total_size": 184}, "weight_map": {"a": "none-1-of-2.safetensors",
    "b": "none-2-of-2.safetensors", "c": "none-1-of-2.safetensors"}})");
  seeds.emplace_back(std::string("GGUF\x03\0\0\0", 8) + std::string(64, '\1'));
  seeds.emplace_back(std::string("PK\x03\x04", 4) + std::string(26, '\0') + "model/data.pkl");
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  using namespace turnpoint;
  const std::string_view bytes(reinterpret_cast<const char*>(data), size);
  (void)is_safetensors(bytes);
  const auto header = read_safetensors_header(bytes, "fuzz.safetensors");
  if (header) {
    const StoredCount count = count_stored(*header);
    if (count.parameters < 0 || count.buffers < 0 || count.other < 0) std::abort();
  } else {
    test::check_message(header.error(), "fuzz.safetensors");
  }
  if (is_safetensors_index(bytes)) {
    // In a folder that is not there, so that no file of the machine is opened whatever the index says.
    const auto index = read_safetensors_index(bytes, "/nowhere/fuzz.index.json");
    if (!index) test::check_message(index.error());
  }
  if (const auto kind = foreign_kind(bytes)) test::check_message(foreign_error(*kind, "fuzz.bin"), "fuzz.bin");
  return 0;
}
