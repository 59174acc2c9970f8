// SPDX-License-Identifier: Apache-2.0
// Runs a fuzz target without libFuzzer: every file of its corpus folders, then seeded mutations of them, for a few
// seconds. Not coverage-guided, but every build runs it; the `fuzz` preset links the same targets with libFuzzer.
#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <iterator>
#include <random>

#include "fuzz/seed_corpus.h"

namespace {

constexpr std::uintmax_t kLargestSeed = 1u << 20;

}  // namespace

int main(int argc, char** argv) {
  double seconds = 5;
  std::uint64_t seed = 1;
  for (int i = 1; i + 1 < argc; i += 2) {
    if (!std::strcmp(argv[i], "--seconds")) seconds = std::atof(argv[i + 1]);
    if (!std::strcmp(argv[i], "--seed")) seed = std::strtoull(argv[i + 1], nullptr, 10);
  }
  std::vector<std::vector<std::uint8_t>> corpus;
  for (const auto& folder : turnpoint::test::seed_folders()) {
    std::vector<std::filesystem::path> files;
    for (const auto& entry : std::filesystem::recursive_directory_iterator(folder))
      if (entry.is_regular_file() && entry.file_size() <= kLargestSeed) files.push_back(entry.path());
    std::sort(files.begin(), files.end());  // so that a seed number means the same everywhere
    for (const auto& file : files) {
      std::ifstream in(file, std::ios::binary);
      corpus.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
    }
  }
  if (corpus.empty()) corpus.push_back({'{', '}'});

  for (const auto& input : corpus) LLVMFuzzerTestOneInput(input.data(), input.size());
  std::mt19937_64 random(seed);
  const auto deadline = std::chrono::steady_clock::now() + std::chrono::duration<double>(seconds);
  std::size_t runs = corpus.size();
  while (std::chrono::steady_clock::now() < deadline) {
    auto input = corpus[random() % corpus.size()];
    const int edits = 1 + static_cast<int>(random() % 8);
    for (int e = 0; e < edits && !input.empty(); ++e) {
      const std::size_t at = random() % input.size();
      switch (random() % 5) {
        case 0: input[at] = static_cast<std::uint8_t>(random()); break;
        case 1: input[at] ^= static_cast<std::uint8_t>(1u << (random() % 8)); break;
        case 2: input.resize(at); break;
        case 3:
          input.insert(input.begin() + static_cast<std::ptrdiff_t>(at), input.begin(),
                       input.begin() + static_cast<std::ptrdiff_t>(std::min<std::size_t>(at, 64)));
          break;
        default:
          for (std::size_t i = at; i < std::min(input.size(), at + 9); ++i) input[i] = 0xff;
      }
    }
    LLVMFuzzerTestOneInput(input.data(), input.size());
    ++runs;
  }
  std::printf("%zu inputs from %zu corpus files, seed %llu\n", runs, corpus.size(),
              static_cast<unsigned long long>(seed));
  return 0;
}
