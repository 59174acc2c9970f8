// SPDX-License-Identifier: Apache-2.0
#include "program.h"

#include "sanitized.h"

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>

namespace turnpoint::test {

namespace {
const Entry* first = nullptr;
}

Entry::Entry(const char* own_name, Main own_run) : name(own_name), run(own_run), next(first) { first = this; }

}  // namespace turnpoint::test

/// PROGRAM TEST [ARGUMENTS OF QTEST]
int main(int argc, char** argv) {
  using turnpoint::test::first;
  // QTest ends a function after five minutes by itself, less than long tests need under a sanitizer.
  setenv("QTEST_FUNCTION_TIMEOUT", std::to_string(300'000 * turnpoint::test::kSanitizerFactor).c_str(), 0);
  for (const auto* entry = first; entry && argc > 1; entry = entry->next) {
    if (std::strcmp(entry->name, argv[1]) != 0) continue;
    argv[1] = argv[0];
    return entry->run(argc - 1, argv + 1);
  }
  std::fprintf(stderr, "%s: %s; one of:\n", argv[0], argc > 1 ? "no such test" : "name a test");
  for (const auto* entry = first; entry; entry = entry->next) std::fprintf(stderr, "  %s\n", entry->name);
  return 2;
}
