// SPDX-License-Identifier: Apache-2.0
// What every message that refuses an input has to be: a sentence that names the file, and no longer than one reads.
#pragma once

#include <cstdlib>
#include <string_view>

#include "core/base/expected.h"

namespace turnpoint::test {

inline void check_message(const Error& error, std::string_view file = {}) {
  const std::string message = error.message();
  if (error.what.empty() || message.size() > 3000) std::abort();
  if (message.find(file) == std::string::npos) std::abort();
}

}  // namespace turnpoint::test
