// SPDX-License-Identifier: Apache-2.0
#include <QtTest>
#include <vector>

#include "core/base/discard.h"

using namespace turnpoint;

class DiscardTest : public QObject {
  Q_OBJECT

 private slots:
  /// What assigning {} would not do.
  void freed_memory_is_free() {
    std::vector<double> numbers(1000);
    free_memory(numbers);
    QCOMPARE(numbers.size(), std::size_t(0));
    QCOMPARE(numbers.capacity(), std::size_t(0));
  }
};

QTEST_APPLESS_MAIN(DiscardTest)
#include "discard_test.moc"
