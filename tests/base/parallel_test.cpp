// SPDX-License-Identifier: Apache-2.0
#include "core/base/parallel.h"

#include <dlfcn.h>
#include <pthread.h>

#include <QtTest>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <mutex>
#include <new>
#include <numeric>
#include <set>
#include <thread>
#include <vector>

#include "core/base/discard.h"

using namespace turnpoint;

namespace {

std::atomic<int> g_threads_left{-1};  // of those that the system starts; negative: no limit

}  // namespace

// As a limit of processes would, which a test that runs as root cannot set.
extern "C" int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*), void* data) {
  static const auto real = reinterpret_cast<decltype(&pthread_create)>(dlsym(RTLD_NEXT, "pthread_create"));
  if (g_threads_left.load() == 0) return EAGAIN;
  if (g_threads_left.load() > 0) --g_threads_left;
  return real(thread, attributes, body, data);
}

namespace {

// Some work whose result depends on the index only.
std::uint64_t mixed(std::uint64_t x) {
  for (int i = 0; i < 8; ++i) {
    x += 0x9e3779b97f4a7c15ull;
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ull;
    x ^= x >> 27;
  }
  return x;
}

}  // namespace

class ParallelTest : public QObject {
  Q_OBJECT

 private slots:
  void the_number_of_threads_is_kept() {
    QCOMPARE(ThreadPool(1).threads(), 1);
    QCOMPARE(ThreadPool(2).threads(), 2);
    QCOMPARE(ThreadPool(7).threads(), 7);
    QVERIFY(ThreadPool(0).threads() >= 1);
    QVERIFY(ThreadPool(-3).threads() >= 1);
    QCOMPARE(ThreadPool(1000000).threads(), ThreadPool::kMaxThreads);
  }

  void every_index_is_visited_once_data() {
    QTest::addColumn<int>("threads");
    QTest::addColumn<int>("count");
    QTest::addColumn<int>("chunk");
    for (const int threads : {1, 2, 3, 8})
      for (const int count : {0, 1, 2, 7, 8, 9, 1000})
        for (const int chunk : {0, 1, 3, 7, 1000, 5000})
          QTest::addRow("%d threads, %d by %d", threads, count, chunk) << threads << count << chunk;
  }
  void every_index_is_visited_once() {
    QFETCH(int, threads);
    QFETCH(int, count);
    QFETCH(int, chunk);
    ThreadPool pool(threads);
    std::vector<int> visits(static_cast<std::size_t>(count), 0);
    std::atomic<int> strange_workers{0};
    pool.for_each(
        visits.size(),
        [&](std::size_t i, int worker) {
          ++visits[i];
          if (worker < 0 || worker >= threads) ++strange_workers;
        },
        static_cast<std::size_t>(chunk));
    QCOMPARE(std::count(visits.begin(), visits.end(), 1), std::ptrdiff_t(count));
    QCOMPARE(strange_workers.load(), 0);
  }

  void results_do_not_depend_on_the_number_of_threads() {
    std::vector<std::uint64_t> expected(5000);
    for (std::size_t i = 0; i < expected.size(); ++i) expected[i] = mixed(i);
    for (const int threads : {1, 2, 4, 8})
      for (int repeat = 0; repeat < 3; ++repeat) {
        ThreadPool pool(threads);
        std::vector<std::uint64_t> result(expected.size());
        pool.for_each(
            result.size(), [&](std::size_t i, int) { result[i] = mixed(i); }, 16);
        QVERIFY(result == expected);
      }
  }

  // Each worker number belongs to one thread at a time, so memory owned by the worker needs no lock.
  void workers_are_exclusive() {
    ThreadPool pool(4);
    std::vector<std::uint64_t> sums(4, 0);
    for (int loop = 0; loop < 200; ++loop)
      pool.for_each(100, [&](std::size_t i, int worker) { sums[static_cast<std::size_t>(worker)] += i; });
    QCOMPARE(std::accumulate(sums.begin(), sums.end(), std::uint64_t(0)), std::uint64_t(200 * 4950));
  }

  void many_small_loops() {
    ThreadPool pool(3);
    std::uint64_t total = 0;
    std::vector<std::uint64_t> values(5);
    for (int loop = 0; loop < 20000; ++loop) {
      const std::size_t count = static_cast<std::size_t>(loop % 6);
      pool.for_each(count, [&](std::size_t i, int) { values[i] = i + 1; });
      for (std::size_t i = 0; i < count; ++i) total += std::exchange(values[i], 0);
    }
    std::uint64_t expected = 0;
    for (int loop = 0; loop < 20000; ++loop) expected += static_cast<std::uint64_t>((loop % 6) * (loop % 6 + 1) / 2);
    QCOMPARE(total, expected);
  }

  void work_is_shared() {
    ThreadPool pool(2);
    std::mutex mutex;
    std::set<std::thread::id> threads;
    std::set<int> workers;
    std::atomic<int> arrived{0};
    // Both indices wait for each other, so the loop can only end if two threads take part.
    pool.for_each(2, [&](std::size_t, int worker) {
      ++arrived;
      const auto deadline = std::chrono::steady_clock::now() + std::chrono::seconds(20);
      while (arrived < 2 && std::chrono::steady_clock::now() < deadline) std::this_thread::yield();
      std::lock_guard lock(mutex);
      threads.insert(std::this_thread::get_id());
      workers.insert(worker);
    });
    QCOMPARE(arrived.load(), 2);
    QCOMPARE(threads.size(), std::size_t(2));
    QVERIFY((workers == std::set<int>{0, 1}));
  }

  void a_loop_inside_a_loop_runs_inline_as_the_same_worker() {
    for (const int threads : {1, 2, 4}) {
      ThreadPool pool(threads);
      std::vector<int> visits(30 * 20, 0);
      std::vector<std::uint64_t> sums(static_cast<std::size_t>(threads), 0);
      std::atomic<int> changed{0};
      pool.for_each(30, [&](std::size_t outer, int worker) {
        const auto thread = std::this_thread::get_id();
        pool.for_each(20, [&](std::size_t inner, int inner_worker) {
          if (inner_worker != worker || std::this_thread::get_id() != thread) ++changed;
          ++visits[outer * 20 + inner];
          ++sums[static_cast<std::size_t>(inner_worker)];
        });
      });
      QCOMPARE(changed.load(), 0);
      QCOMPARE(std::count(visits.begin(), visits.end(), 1), std::ptrdiff_t(600));
      QCOMPARE(std::accumulate(sums.begin(), sums.end(), std::uint64_t(0)), std::uint64_t(600));
      // The pool is usable again afterwards.
      std::atomic<int> after{0};
      pool.for_each(10, [&](std::size_t, int) { ++after; });
      QCOMPARE(after.load(), 10);
    }
  }

  void two_callers_of_one_pool_take_turns() {
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      std::atomic<int> inside{0}, overlaps{0};
      std::atomic<std::uint64_t> total{0};
      const auto caller = [&](int number) {
        for (int loop = 0; loop < 300; ++loop)
          pool.for_each(
              8,
              [&](std::size_t i, int) {
                const int bit = 1 << number;
                if (inside.fetch_or(bit) & ~bit) ++overlaps;
                total += i;
                inside.fetch_and(i == 7 ? ~bit : ~0);
              },
              8);
      };
      { std::jthread first(caller, 0), second(caller, 1); }
      QCOMPARE(total.load(), std::uint64_t(2 * 300 * 28));
      QCOMPARE(overlaps.load(), 0);
    }
  }

  // A limit of processes, or of memory: with the threads there are, to the same end.
  void threads_that_cannot_be_started_are_done_without() {
    for (const int left : {0, 1, 3}) {
      g_threads_left = left;
      ThreadPool pool(8);
      g_threads_left = -1;
      QCOMPARE(pool.threads(), left + 1);
      std::vector<int> visits(100, 0);
      pool.for_each(visits.size(), [&](std::size_t i, int) { ++visits[i]; });
      QCOMPARE(std::count(visits.begin(), visits.end(), 1), std::ptrdiff_t(100));
    }
    g_threads_left = 0;
    discard(std::vector<int>(1000, 1));
    g_threads_left = -1;
  }

  void an_exception_reaches_the_caller_and_the_pool_goes_on() {
    for (const int threads : {1, 4})
      for (const std::size_t count : {std::size_t(1), std::size_t(1000)}) {
        ThreadPool pool(threads);
        for (int repeat = 0; repeat < 3; ++repeat) {
          QVERIFY_THROWS_EXCEPTION(std::bad_alloc, pool.for_each(count, [&](std::size_t i, int) {
            if (i == count / 2) throw std::bad_alloc();
          }));
          // A loop inside a loop as well.
          QVERIFY_THROWS_EXCEPTION(std::bad_alloc, pool.for_each(count, [&](std::size_t, int) {
            pool.for_each(2, [](std::size_t, int) { throw std::bad_alloc(); });
          }));
          std::atomic<int> done{0};
          pool.for_each(100, [&](std::size_t, int) { ++done; });
          QCOMPARE(done.load(), 100);
        }
      }
  }

  void pools_end_without_ever_having_run() {
    for (int i = 0; i < 200; ++i) {
      ThreadPool pool(4);
      if (i % 2) pool.for_each(4, [](std::size_t, int) {});
    }
  }
};

QTEST_APPLESS_MAIN(ParallelTest)
#include "parallel_test.moc"
