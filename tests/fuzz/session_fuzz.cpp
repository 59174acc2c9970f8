// SPDX-License-Identifier: Apache-2.0
// Any bytes as a .turnpoint session: a session that survives writing and reading again, or a message; never a crash.
#include <cstdint>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <string_view>

#include "app/session.h"
#include "core/base/json.h"

extern "C" const char* turnpoint_fuzz_corpus() { return "session"; }

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  const auto document = turnpoint::parse_json(text, "fuzz.turnpoint");
  if (!document) {
    if (document.error().message().find("fuzz.turnpoint") == std::string::npos) std::abort();
    return 0;
  }
  const auto session = turnpoint::app::read_session(*document, "fuzz.turnpoint");
  if (!session) {
    if (session.error().what.empty()) std::abort();
    return 0;
  }
  if (!turnpoint::app::read_session(turnpoint::app::write_session(*session), "again.turnpoint")) std::abort();
  return 0;
}
