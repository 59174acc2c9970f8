// SPDX-License-Identifier: Apache-2.0
// Gives libFuzzer the target's seed folders, so that every target is run alike: TARGET OWN_CORPUS_FOLDER [OPTIONS].
#include "fuzz/seed_corpus.h"

extern "C" int LLVMFuzzerInitialize(int* count, char*** arguments) {
  static std::vector<std::string> texts(*arguments, *arguments + *count);
  for (const auto& folder : turnpoint::test::seed_folders()) texts.push_back(folder.string());
  static std::vector<char*> pointers;
  for (auto& text : texts) pointers.push_back(text.data());
  pointers.push_back(nullptr);
  *count = static_cast<int>(texts.size());
  *arguments = pointers.data();
  return 0;
}
