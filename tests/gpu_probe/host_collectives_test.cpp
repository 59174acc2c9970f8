// SPDX-License-Identifier: Apache-2.0
// Collectives between hosts (threads here, connected over loopback) against sums and copies written out, bit for bit
// what shared memory gives; strangers at the door, and a rank that goes.
#include <QTest>
#include <cstring>
#include <random>

#include "gpu_probe/host_ranks.h"

using namespace turnpoint;
using namespace turnpoint::probe;

namespace {

using Floats = std::vector<float>;

/// Rank r's data: no whole numbers, so that another order of summing shows.
Floats data(int rank, std::int64_t count, unsigned seed) {
  std::mt19937 random(seed * 64 + static_cast<unsigned>(rank));
  Floats numbers(static_cast<std::size_t>(count));
  for (float& number : numbers) number = static_cast<float>(random()) * 1e-9f - 2.0f;
  return numbers;
}

bool same(const Floats& a, const Floats& b) {
  return a.size() == b.size() && (a.empty() || std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0);
}

/// The sum over the group in its order, of elements [first, first + count).
Floats sum_of(const Group& group, std::int64_t whole, std::int64_t first, std::int64_t count, unsigned seed) {
  Floats sum;
  for (const int member : group) {
    const Floats all = data(member, whole, seed);
    for (std::int64_t i = 0; i < count; ++i) {
      const float value = all[static_cast<std::size_t>(first + i)];
      if (member == group.front())
        sum.push_back(value);
      else
        sum[static_cast<std::size_t>(i)] += value;
    }
  }
  return sum;
}

/// One collective of each kind over this rank's group.
bool all_kinds(Communicator& me, const Group& group, std::int64_t count, unsigned seed) {
  const auto size = static_cast<std::int64_t>(group.size());
  const auto index = std::find(group.begin(), group.end(), me.rank()) - group.begin();
  const std::size_t n = static_cast<std::size_t>(count);
  Floats sum = data(me.rank(), count, seed);
  if (!me.all_reduce(group, sum.data(), count) || !same(sum, sum_of(group, count, 0, count, seed))) return false;
  const Floats mine = data(me.rank(), count, seed), wide = data(me.rank(), count * size, seed);
  Floats all(wide.size(), -1), part(n, -1), wanted;
  if (!me.all_gather(group, mine.data(), all.data(), count)) return false;
  for (const int member : group) {
    const Floats its = data(member, count, seed);
    wanted.insert(wanted.end(), its.begin(), its.end());
  }
  if (!same(all, wanted)) return false;
  if (!me.reduce_scatter(group, wide.data(), part.data(), count)) return false;
  if (!same(part, sum_of(group, count * size, index * count, count, seed))) return false;
  if (!me.all_to_all(group, wide.data(), all.data(), count)) return false;
  wanted.clear();
  for (const int member : group) {
    const Floats its = data(member, count * size, seed);
    wanted.insert(wanted.end(), its.begin() + index * count, its.begin() + (index + 1) * count);
  }
  if (!same(all, wanted)) return false;
  for (const int root : {group.front(), group.back()}) {
    Floats told = data(me.rank(), count, seed);
    if (!me.broadcast(group, told.data(), count, root) || !same(told, data(root, count, seed))) return false;
  }
  if (size > 1) {
    const int to = group[static_cast<std::size_t>((index + 1) % size)],
              from = group[static_cast<std::size_t>((index + size - 1) % size)];
    if (!me.send_receive(to, mine.data(), from, part.data(), count) || !same(part, data(from, count, seed)))
      return false;
    if (me.rank() == group.front() && !me.send_receive(group.back(), mine.data(), -1, nullptr, count)) return false;
    if (me.rank() == group.back() && !me.send_receive(-1, nullptr, group.front(), part.data(), count)) return false;
    if (me.rank() == group.back() && !same(part, data(group.front(), count, seed))) return false;
  }
  return me.barrier(group);
}

}  // namespace

class HostCollectivesTest : public QObject {
  Q_OBJECT

 private slots:
  void against_plain_sums_data() {
    QTest::addColumn<QList<int>>("nodes");
    QTest::newRow("two hosts") << QList<int>{0, 1};
    QTest::newRow("three hosts") << QList<int>{0, 1, 2};
    QTest::newRow("two by two") << QList<int>{0, 0, 1, 1};
    QTest::newRow("uneven") << QList<int>{0, 0, 0, 1, 2, 2};
    QTest::newRow("one host") << QList<int>{0, 0, 0};
  }
  void against_plain_sums() {
    QFETCH(QList<int>, nodes);
    test::HostRanks ranks({nodes.begin(), nodes.end()});
    std::mt19937 random(7);
    std::vector<std::int64_t> counts{0, 1, 2, 5, 1000, (1 << 14) + 3, (1 << 16) + 1};
    for (int i = 0; i < 6; ++i) counts.push_back(static_cast<std::int64_t>(random() % 3000));
    const int wrong = ranks.run([&](Communicator& me, Transport&) {
      for (std::size_t c = 0; c < counts.size(); ++c)
        if (!all_kinds(me, me.all(), counts[c], static_cast<unsigned>(c))) return false;
      return true;
    });
    QCOMPARE(wrong, 0);
  }

  // Beyond one chunk of an all-reduce and of a reduce-scatter.
  void long_ones() {
    test::HostRanks ranks({0, 1});
    const int wrong =
        ranks.run([&](Communicator& me, Transport&) { return all_kinds(me, me.all(), (1 << 20) + 77, 3); });
    QCOMPARE(wrong, 0);
  }

  // A rank is in a group of its node now, across nodes next, while other groups are still busy.
  void changing_groups() {
    test::HostRanks ranks({0, 0, 1, 1});
    const int wrong = ranks.run([](Communicator& me, Transport&) {
      const Group node = me.rank() < 2 ? Group{0, 1} : Group{2, 3},
                  across = me.rank() % 2 == 0 ? Group{0, 2} : Group{1, 3};
      if (std::string(me.carrier(node)) != "shared memory" || std::string(me.carrier(across)) != "TCP") return false;
      for (unsigned round = 0; round < 40; ++round)
        if (!all_kinds(me, round % 3 == 0 ? across : node, 1 + round * 7, round) ||
            !all_kinds(me, round % 3 == 0 ? node : across, 300, round) || !all_kinds(me, me.all(), round, round))
          return false;
      return true;
    });
    QCOMPARE(wrong, 0);
  }

  // The counts that a plan's prediction is compared with do not depend on what carries the data.
  void the_same_counts_as_shared_memory() {
    const auto counts = [](std::vector<int> nodes) {
      std::vector<double> seen;
      test::HostRanks ranks(std::move(nodes));
      ranks.run([&](Communicator& me, Transport&) {
        const Group all = me.all();
        Floats x(1000), wide(4000);
        const bool fine = me.all_reduce(all, x.data(), 1000) && me.all_gather(all, x.data(), wide.data(), 1000) &&
                          me.reduce_scatter(all, wide.data(), x.data(), 1000) &&
                          me.all_to_all(all, wide.data(), Floats(4000).data(), 1000) &&
                          me.broadcast(all, x.data(), 1000, 0) && me.barrier(all);
        if (fine && me.rank() == 0) seen = {me.sent_bytes(), static_cast<double>(me.take_received())};
        return fine;
      });
      return seen;
    };
    const auto here = counts({0, 0, 0, 0}), there = counts({0, 1, 2, 3});
    QCOMPARE(here.size(), std::size_t(2));
    QCOMPARE(here, there);
    QCOMPARE(here[0], 2 * 4000 * 0.75 + 3 * 3 * 4000 + 4000);
  }

  void strangers_at_the_door() {
    test::HostRanks ranks({0, 1});
    // Before the ranks call each other: noise, silence, a wrong token, a connection of an earlier start.
    std::vector<LineChannel> strangers;
    for (const char* words : {"GET / HTTP/1.1\r\n", "\x16\x03\x01\n", "{\"token\":\"other\",\"run\":1,\"from\":1}",
                              "{\"token\":\"token\",\"run\":0,\"from\":1}", "{\"token\":[]}", "[]", ""}) {
      auto socket = connect_to({"127.0.0.1", ranks.peers()[0].port, {}}, host_clock() + 5);
      QVERIFY(socket.has_value());
      strangers.emplace_back(std::move(*socket));
      if (*words) strangers.back().send_text(words);
      strangers.back().move();
    }
    const int wrong = ranks.run([&](Communicator& me, Transport&) { return all_kinds(me, me.all(), 100, 1); });
    QCOMPARE(wrong, 0);
  }

  void a_rank_that_never_calls() {
    test::HostRanks ranks({0, 1});
    const auto alone = ranks.open(0, 0.5);
    QVERIFY(!alone.has_value());
    QVERIFY2(alone.error().message().find("1 rank of other hosts did not call rank 0") != std::string::npos,
             alone.error().message().c_str());
  }

  void a_dead_rank_lets_the_others_go() {
    for (const std::vector<int>& nodes : {std::vector<int>{0, 1}, std::vector<int>{0, 0, 1}}) {
      test::HostRanks ranks(nodes);
      std::atomic<int> told = 0;
      ranks.run([&](Communicator& me, Transport& transport) {
        if (!me.barrier(me.all())) return false;
        if (me.rank() == ranks.ranks() - 1) return false;  // which ends its connections
        Floats x(100'000);
        if (!me.all_reduce(me.all(), x.data(), 100'000) && transport.lost()) ++told;
        return false;
      });
      QCOMPARE(told.load(), ranks.ranks() - 1);
    }
  }
};

QTEST_APPLESS_MAIN(HostCollectivesTest)
#include "host_collectives_test.moc"
