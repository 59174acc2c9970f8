// SPDX-License-Identifier: Apache-2.0
#include "core/base/expected.h"

namespace turnpoint {

const char* to_string(ErrorCode code) {
  switch (code) {
    case ErrorCode::usage: return "usage";
    case ErrorCode::bad_input: return "bad-input";
    case ErrorCode::infeasible: return "infeasible";
    case ErrorCode::device: return "device";
    case ErrorCode::cancelled: return "cancelled";
  }
  return "unknown";
}

std::string Error::message() const {
  std::string text = where.empty() ? what : where + ": " + what;
  if (!hint.empty()) text += " (" + hint + ")";
  return text;
}

}  // namespace turnpoint
