// SPDX-License-Identifier: Apache-2.0
// A small pool and a parallel loop whose results do not depend on the number of threads.
#pragma once

#include <cstddef>
#include <functional>
#include <memory>

namespace turnpoint {

/// Fixed set of threads. One per long-running job; the calling thread takes part in its own loops.
class ThreadPool {
 public:
  static constexpr int kMaxThreads = 256;

  /// `threads` counts the caller: 1 runs everything inline; 0 takes the hardware's number; never more than kMaxThreads,
  /// and fewer where the system starts no more: the results are the same.
  explicit ThreadPool(int threads = 0);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int threads() const;

  /// How many of so many threads (0: the hardware's number) the limits of this process allow one pool.
  static int affordable(int threads);

  /// Calls body(i, worker) for every i in [0, count), in chunks handed out dynamically; worker is in [0, threads()).
  /// Returns when all are done. body must only write to places owned by i (or by worker). Where it throws (memory runs
  /// out), what has not begun is left out and the first exception is thrown here, by the caller's thread.
  /// A loop inside a loop of the same pool runs inline, as the worker it is called from; loops that several threads
  /// start on one pool run one after the other.
  void for_each(std::size_t count, const std::function<void(std::size_t index, int worker)>& body,
                std::size_t chunk = 1);

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace turnpoint
