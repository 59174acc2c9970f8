// SPDX-License-Identifier: Apache-2.0
// A test program holds the tests of one folder; each runs by itself, by name, in a process of its own.
#pragma once

namespace turnpoint::test {

/// One test of this program, entered before main() by the source that join_tests.cmake writes.
struct Entry {
  using Main = int (*)(int, char**);
  Entry(const char* name, Main run);

  const char* name;
  Main run;
  const Entry* next;
};

}  // namespace turnpoint::test
