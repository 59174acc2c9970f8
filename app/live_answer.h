// SPDX-License-Identifier: Apache-2.0
// Where a running search leaves what it has to show, for the interface thread to look at whenever it likes.
#pragma once

#include <memory>
#include <mutex>
#include <utility>

#include "core/search/live_search.h"

namespace turnpoint::app {

class LiveAnswer {
 public:
  void set(std::shared_ptr<const search::LiveSearch> newest) {
    const std::lock_guard lock(mutex_);
    newest_ = std::move(newest);
  }
  /// Null: there is nothing yet.
  std::shared_ptr<const search::LiveSearch> newest() const {
    const std::lock_guard lock(mutex_);
    return newest_;
  }

 private:
  mutable std::mutex mutex_;
  std::shared_ptr<const search::LiveSearch> newest_;
};

/// What a method that learns can go on from, as a session keeps it.
struct SavedLearning {
  std::string method;  ///< registry name, parameters behind a colon
  std::shared_ptr<const std::string> state;
};

}  // namespace turnpoint::app
