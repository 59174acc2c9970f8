// SPDX-License-Identifier: Apache-2.0
// Collectives through shared memory against sums and copies written out, on 1, 2, 3, 4 and 8 ranks (threads here, with
// the mapping that processes have), whole and in groups, sizes around the slots' edges.
#include <QTest>
#include <functional>
#include <thread>

#include "gpu_probe/transport/collectives.h"

using namespace turnpoint;
using namespace turnpoint::probe;

namespace {

/// Element i of rank r's data; small whole numbers, so that sums are exact in any order.
float value(int rank, std::int64_t i) { return static_cast<float>((rank * 31 + i * 7) % 64 - 20); }

std::vector<float> data(int rank, std::int64_t count) {
  std::vector<float> numbers(static_cast<std::size_t>(count));
  for (std::int64_t i = 0; i < count; ++i) numbers[static_cast<std::size_t>(i)] = value(rank, i);
  return numbers;
}

/// Runs body(communicator) on every rank at once; the number of ranks that were not satisfied.
int run_ranks(int ranks, const std::function<bool(Communicator&)>& body) {
  auto region = SharedRegion::create(ranks);
  if (!region) return -1;
  std::atomic<int> wrong = 0;
  std::vector<std::jthread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      SharedCommunicator me(*region, rank);
      if (body(me)) return;
      ++wrong;
      region->abort();  // the others would wait for this one until their limit
    });
  threads.clear();
  return wrong;
}

const std::int64_t kSlot = static_cast<std::int64_t>(SharedRegion::kSlotFloats);

}  // namespace

class CollectivesTest : public QObject {
  Q_OBJECT

 private slots:
  void against_plain_sums_data() {
    QTest::addColumn<int>("ranks");
    QTest::addColumn<int>("size");
    for (const int ranks : {1, 2, 3, 4, 8})
      for (int size = 1; size <= ranks; ++size)
        if (ranks % size == 0) QTest::addRow("%d ranks in groups of %d", ranks, size) << ranks << size;
  }
  void against_plain_sums() {
    QFETCH(int, ranks);
    QFETCH(int, size);
    for (const std::int64_t count :
         {std::int64_t(1), std::int64_t(5), std::int64_t(1000), kSlot, kSlot + 1, 2 * kSlot + 17}) {
      const int wrong = run_ranks(ranks, [&](Communicator& me) {
        const Group group = me.group_of(size);
        const auto index = static_cast<std::int64_t>(me.rank() % size);
        auto sum = data(me.rank(), count);
        if (!me.all_reduce(group, sum.data(), count)) return false;
        for (std::int64_t i = 0; i < count; ++i) {
          float wanted = 0;
          for (const int peer : group) wanted += value(peer, i);
          if (sum[static_cast<std::size_t>(i)] != wanted) return false;
        }
        const auto mine = data(me.rank(), count), wide = data(me.rank(), count * size);
        std::vector<float> all(wide.size(), -1000), part(mine.size(), -1000);
        if (!me.all_gather(group, mine.data(), all.data(), count)) return false;
        for (std::int64_t peer = 0; peer < size; ++peer)
          for (std::int64_t i = 0; i < count; ++i)
            if (all[static_cast<std::size_t>(peer * count + i)] != value(group[static_cast<std::size_t>(peer)], i))
              return false;
        if (!me.reduce_scatter(group, wide.data(), part.data(), count)) return false;
        for (std::int64_t i = 0; i < count; ++i) {
          float wanted = 0;
          for (const int peer : group) wanted += value(peer, index * count + i);
          if (part[static_cast<std::size_t>(i)] != wanted) return false;
        }
        if (!me.all_to_all(group, wide.data(), all.data(), count)) return false;
        for (std::int64_t peer = 0; peer < size; ++peer)
          for (std::int64_t i = 0; i < count; ++i)
            if (all[static_cast<std::size_t>(peer * count + i)] !=
                value(group[static_cast<std::size_t>(peer)], index * count + i))
              return false;
        auto told = data(me.rank(), count);
        const int root = group.back();
        if (!me.broadcast(group, told.data(), count, root)) return false;
        return told == data(root, count);
      });
      QCOMPARE(wrong, 0);
    }
  }

  // The ring: every rank sends to the next while it receives from the one before.
  void send_and_receive() {
    for (const std::int64_t count : {std::int64_t(1), kSlot, 2 * kSlot + 3})
      for (const int ranks : {2, 3, 4}) {
        const int wrong = run_ranks(ranks, [&](Communicator& me) {
          const auto mine = data(me.rank(), count);
          std::vector<float> got(mine.size());
          const int to = (me.rank() + 1) % ranks, from = (me.rank() + ranks - 1) % ranks;
          for (int round = 0; round < 3; ++round)
            if (!me.send_receive(to, mine.data(), from, got.data(), count) || got != data(from, count)) return false;
          // One way only: rank 0 to the last.
          if (me.rank() == 0 && !me.send_receive(ranks - 1, mine.data(), -1, nullptr, count)) return false;
          if (me.rank() == ranks - 1 && !me.send_receive(-1, nullptr, 0, got.data(), count)) return false;
          return me.rank() != ranks - 1 || got == data(0, count);
        });
        QCOMPARE(wrong, 0);
      }
  }

  // A rank is in one group now and in another next, while other groups are still busy.
  void changing_groups() {
    const int wrong = run_ranks(4, [](Communicator& me) {
      const Group rows = me.rank() < 2 ? Group{0, 1} : Group{2, 3},
                  columns = me.rank() % 2 == 0 ? Group{0, 2} : Group{1, 3};
      for (int round = 0; round < 200; ++round) {
        float x = static_cast<float>(me.rank() + round);
        if (!me.all_reduce(round % 3 == 0 ? columns : rows, &x, 1)) return false;
        if (!me.all_reduce(round % 3 == 0 ? rows : columns, &x, 1)) return false;
        if (x != static_cast<float>(6 + 4 * round)) return false;
      }
      return true;
    });
    QCOMPARE(wrong, 0);
  }

  // The bytes of a plan's prediction: ring steps of the full tensor.
  void bytes_sent_are_those_of_a_ring() {
    const int wrong = run_ranks(4, [](Communicator& me) {
      std::vector<float> x(1000), wide(4000);
      const Group all = me.all();
      if (!me.all_reduce(all, x.data(), 1000)) return false;
      const double reduced = me.sent_bytes();
      if (!me.all_gather(all, x.data(), wide.data(), 1000)) return false;
      return reduced == 2 * 4000 * 0.75 && me.sent_bytes() - reduced == 3 * 4000;
    });
    QCOMPARE(wrong, 0);
  }

  void a_dead_rank_lets_the_others_go() {
    auto region = SharedRegion::create(2);
    QVERIFY(region.has_value());
    bool ended = true;
    std::jthread waiting([&] {
      SharedCommunicator me(*region, 0);
      float x = 1;
      ended = !me.all_reduce(me.all(), &x, 1);
    });
    std::this_thread::sleep_for(std::chrono::milliseconds(50));
    region->abort();
    waiting.join();
    QVERIFY(ended);
  }
};

QTEST_APPLESS_MAIN(CollectivesTest)
#include "collectives_test.moc"
