// SPDX-License-Identifier: Apache-2.0
// Parts of a step that `measure` times: collectives as a step makes them move what the same collective is priced by, an
// operator beside its kernel, and kernels whose numbers have left the caches.
#include <QtTest>
#include <atomic>
#include <map>
#include <thread>

#include "core/hardware/probe_job.h"
#include "gpu_probe/cpu/cpu_backend.h"
#include "gpu_probe/step/timed_exchange.h"
#include "gpu_probe/step/timed_operator.h"

using namespace turnpoint;

namespace {

/// Elements that one rank receives on average; -1 where one fails or takes no time.
double received_by_each(Collective kind, int ranks, int size, int stride, std::int64_t bytes) {
  step::ThreadRanks all(ranks);
  std::atomic<std::int64_t> arrived = 0;
  std::atomic<bool> fine = true;
  std::vector<std::thread> threads;
  for (int rank = 0; rank < ranks; ++rank)
    threads.emplace_back([&, rank] {
      const auto communicator = all.communicator(rank);
      const auto exchange = step::timed_exchange(*communicator, kind, size, stride, bytes);
      const auto seconds = exchange ? exchange->once() : Expected<double>(0);
      if (!seconds || *seconds <= 0) fine = false;
      arrived += communicator->take_received();
    });
  for (auto& thread : threads) thread.join();
  return fine ? double(arrived) / ranks : -1;
}

ProbeOperator product(std::int64_t n) {
  ProbeOperator op;
  op.kind = "matmul";
  ProbeCall call;
  call.kind = CallKind::matmul;
  call.size = {1, n, n, n};
  op.calls = {call};
  return op;
}

ProbeOperator sum_of(std::int64_t elements) {
  ProbeOperator op;
  op.kind = "elementwise";
  ProbeCall call;
  call.kind = CallKind::elementwise;
  call.size = {elements, 2, 1};
  op.calls = {call};
  return op;
}

}  // namespace

class TimedPartsTest : public QObject {
  Q_OBJECT

 private slots:
  // costs.md, 4: of n members and a tensor of so many elements, a ring brings each of them (n - 1) / n of it in a
  // gather, a scatter or an all-reduce's half, and (n - 1) / n of its own block in an all-to-all.
  void exchanges_move_what_they_are_priced_by() {
    constexpr std::int64_t kElements = 16384;
    for (const auto& [ranks, size, stride] :
         {std::array{2, 2, 1}, std::array{4, 2, 1}, std::array{4, 2, 2}, std::array{4, 4, 1}}) {
      const double part = double(size - 1) / size * kElements;
      const std::map<Collective, double> wanted{{Collective::all_gather, part},
                                                {Collective::reduce_scatter, part},
                                                {Collective::all_reduce, 2 * part},
                                                {Collective::all_to_all, part / size}};
      for (const auto& [kind, elements] : wanted)
        QCOMPARE(received_by_each(kind, ranks, size, stride, 4 * kElements), elements);
    }
  }

  // What is timed under a size has that size, but for what equal rows leave over.
  void every_size_is_its_own() {
    for (const auto& [ranks, size] : {std::array{2, 2}, std::array{3, 3}, std::array{6, 3}, std::array{8, 8}})
      for (const Collective kind : {Collective::all_gather, Collective::all_to_all}) {
        const std::int64_t unit = kind == Collective::all_to_all ? size * size : size;
        const double part = double(size - 1) / size / (kind == Collective::all_to_all ? size : 1);
        for (const std::int64_t units : {1, 5, 45, 64, 65, 91, 130, 1000}) {
          const double wanted = part * double(units * unit);
          const double found = received_by_each(kind, ranks, size, 1, 4 * units * unit);
          QVERIFY2(found <= wanted && found >= 0.97 * wanted && (units > 64 || found == wanted),
                   QByteArray::number(found) + " of " + QByteArray::number(wanted));
        }
      }
  }

  void the_smallest_exchanges_have_a_number_for_every_member() {
    for (const Collective kind :
         {Collective::all_gather, Collective::reduce_scatter, Collective::all_reduce, Collective::all_to_all})
      QVERIFY2(received_by_each(kind, 4, 4, 1, 4) > 0, to_string(kind));
  }

  void what_is_no_resharding_is_refused() {
    step::ThreadRanks all(6);
    const auto communicator = all.communicator(0);
    QVERIFY(!step::timed_exchange(*communicator, Collective::broadcast, 2, 1, 64));
    QVERIFY(!step::timed_exchange(*communicator, Collective::send, 2, 1, 64));
    QVERIFY(!step::timed_exchange(*communicator, Collective::all_reduce, 4, 1, 64));
    QVERIFY(step::timed_exchange(*communicator, Collective::all_reduce, 3, 2, 64) != nullptr);
  }

  void an_operator_takes_time_beside_its_kernel() {
    const auto operators = step::timed_operators();
    QVERIFY2(operators.has_value(), operators ? "" : operators.error().message().c_str());
    for (int i = 0; i < 3; ++i) {
      const auto seconds = (*operators)->once();
      QVERIFY2(seconds.has_value(), seconds ? "" : seconds.error().message().c_str());
      QVERIFY(*seconds > 0);
    }
  }

  // Numbers outside the caches take longer than those in the last ones, wherever a machine has caches at all.
  void numbers_are_timed_in_the_caches_and_outside() {
    const probe::Caches caches = probe::usable_caches();
    QVERIFY(caches.last_bytes >= 1 << 16 && caches.inner_bytes <= caches.last_bytes);
    const auto backend = probe::make_cpu_backend(2, 1);
    QVERIFY(backend->cold());
    for (const ProbeOperator& op : {product(64), sum_of(1 << 16)}) {
      const auto prepared = backend->prepare(op);
      QVERIFY2(prepared.has_value(), prepared ? "" : prepared.error().message().c_str());
      std::vector<double> cold, warm;
      for (int i = 0; i < 30; ++i)
        cold.push_back(*(*prepared)->sample(true)), warm.push_back(*(*prepared)->sample_hot(4));
      std::ranges::sort(cold), std::ranges::sort(warm);
      QVERIFY(warm.front() > 0);
      QVERIFY2(cold[7] > (op.kind == "matmul" ? 0.8 : 1.1) * warm[7],
               qPrintable(QString("%1 and %2 s").arg(cold[7]).arg(warm[7])));
    }
  }
};

QTEST_APPLESS_MAIN(TimedPartsTest)
#include "timed_parts_test.moc"
