// SPDX-License-Identifier: Apache-2.0
// Gives libFuzzer the target's seeds, so that every target is run alike: TARGET OWN_CORPUS_FOLDER [OPTIONS], and every
// other mutation from fuzz/mutation.h, which keeps the structure that libFuzzer's own edits break.
#include <cstring>
#include <fstream>

#include "fuzz/mutation.h"
#include "fuzz/seed_corpus.h"

extern "C" std::size_t LLVMFuzzerMutate(std::uint8_t* data, std::size_t size, std::size_t max_size);

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  static std::vector<std::string> texts(*arguments, *arguments + *count);
  if (turnpoint_fuzz_seeds && *count > 1) {
    std::vector<std::string> seeds;
    turnpoint_fuzz_seeds(seeds);
    for (std::size_t i = 0; i < seeds.size(); ++i)
      std::ofstream(texts[1] + "/seed" + std::to_string(i), std::ios::binary) << seeds[i];
  }
  for (const auto& folder : turnpoint::test::seed_folders()) texts.push_back(folder.string());
  static std::vector<char*> pointers;
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  *count = static_cast<int>(texts.size());
  *arguments = pointers.data();
  return 0;
}

extern "C" std::size_t LLVMFuzzerCustomMutator(std::uint8_t* data, std::size_t size, std::size_t max_size,
                                               unsigned int seed) {
  if (seed % 2 || size == 0) return LLVMFuzzerMutate(data, size, max_size);
  turnpoint::test::Random random(seed);
  const auto taken = turnpoint::test::take_apart({reinterpret_cast<const char*>(data), size});
  const std::string text = taken->mutated(random);
  const std::size_t length = std::min(text.size(), max_size);
  std::memcpy(data, text.data(), length);
  return length;
}
