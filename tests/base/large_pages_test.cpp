// SPDX-License-Identifier: Apache-2.0
#include "core/base/large_pages.h"

#include <QtTest>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <fstream>
#include <numeric>
#include <sstream>
#include <string>
#include <vector>

using namespace turnpoint;

namespace {

/// The flags of the mapping that holds an address, as Linux lists them; empty where it does not.
std::string mapping_flags(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  const auto wanted = reinterpret_cast<std::uintptr_t>(address);
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    unsigned long long begin = 0, end = 0;
    if (std::sscanf(line.c_str(), "%llx-%llx ", &begin, &end) == 2) inside = begin <= wanted && wanted < end;
    if (inside && line.rfind("VmFlags:", 0) == 0) return line + " ";
  }
  return {};
}

}  // namespace

class LargePagesTest : public QObject {
  Q_OBJECT

 private slots:
  void whole_large_pages_are_asked_for() {
    constexpr std::size_t kLarge = std::size_t(1) << 21;
    std::vector<char> memory;
    memory.reserve(4 * kLarge);
    prefer_large_pages(memory.data(), memory.capacity());
    const std::string flags = mapping_flags(memory.data() + 2 * kLarge);
    if (flags.empty() || !std::ifstream("/sys/kernel/mm/transparent_hugepage/enabled")) QSKIP("no large pages here");
    QVERIFY2(flags.find(" hg ") != std::string::npos, flags.c_str());
  }

  void contents_stay() {
    std::vector<std::uint32_t> numbers(std::size_t(3) << 20);
    std::iota(numbers.begin(), numbers.end(), 7u);
    prefer_large_pages(numbers.data(), numbers.size() * sizeof(std::uint32_t));
    for (std::size_t i = 0; i < numbers.size(); ++i)
      if (numbers[i] != i + 7) QFAIL(qPrintable(QString::number(i)));
  }

  void small_and_empty_memory_is_left_alone() {
    prefer_large_pages(nullptr, 0);
    char few[100];
    std::memset(few, 42, sizeof few);
    prefer_large_pages(few, sizeof few);
    QCOMPARE(few[99], char(42));
  }
};

QTEST_APPLESS_MAIN(LargePagesTest)
#include "large_pages_test.moc"
