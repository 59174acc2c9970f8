// SPDX-License-Identifier: Apache-2.0
// Ranks as threads of this process: all of them, or none that waits for one that never came.
#pragma once

#include <fmt/format.h>
#include <optional>
#include <system_error>
#include <thread>
#include <vector>

#include "core/base/expected.h"
#include "gpu_probe/step/values/place.h"

namespace turnpoint::step {

/// Starts body(rank) for the ranks from `first` to below `count`, which compute in what this thread computes in; `body`
/// must outlive the threads. Where the system
/// starts no more, the error of that rank, after `give_up`, which must wake the ranks that run.
template <class Body, class GiveUp>
std::optional<Error> start_ranks(std::vector<std::jthread>& threads, int first, int count, const Body& body,
                                 const GiveUp& give_up) {
  for (int rank = first; rank < count; ++rank) try {
      threads.emplace_back([&body, rank, &in = arithmetic()] {
        const ComputeIn here(in);
        body(rank);
      });
    } catch (const std::system_error& error) {
      give_up();
      return Error{ErrorCode::device,
                   fmt::format("rank {} of {} cannot be started: {}", rank, count, error.code().message()),
                   {},
                   "a limit of processes or of memory; fewer ranks"};
    }
  return std::nullopt;
}

}  // namespace turnpoint::step
