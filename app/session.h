// SPDX-License-Identifier: Apache-2.0
// The .turnpoint file (turnpoint/session@1): scenario, methods, pinned frontiers, picked point, window layout.
#pragma once

#include <filesystem>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "app/carried_answers.h"
#include "app/live_answer.h"
#include "app/scenario_state.h"
#include "core/base/expected.h"
#include "core/validation/validation_report.h"
#include "views/frontier/chart_data.h"

namespace turnpoint::app {

/// A frontier that is searched for when the session opens, and then pinned: the session's scenario with parts replaced.
struct PinnedSearch {
  std::string label, method;
  ScenarioRequest scenario;
};

struct Session {
  std::string title;  ///< of a study; may be empty
  std::string notes;  ///< Markdown
  ScenarioRequest scenario;
  std::vector<std::string> methods;  ///< checked ones
  std::vector<std::string> splits;   ///< the user's own, checked or not: parameters of `manual`, or "fsdp:zero=2"
  std::vector<views::PinnedFrontier> pinned;
  std::vector<CarriedAnswer> answers;  ///< what the checked methods had found
  std::vector<PinnedSearch> searches;
  std::vector<SavedLearning> learning;       ///< what methods that learn go on from
  std::vector<ValidationReport> reports;     ///< plans that were run, oldest first
  std::string picked_method;                 ///< empty: the fastest plan that fits
  double picked_memory = 0;                  ///< bytes
  std::string geometry, layout;              ///< base64 of QMainWindow's own state
  std::map<std::string, bool> view;          ///< toggles of the chart by action key
  std::string front;                         ///< key of the lower view to raise; empty: as the layout says
  std::map<std::string, std::string> views;  ///< what each lower view remembers, JSON objects as text
};

nlohmann::json write_session(const Session& session);
/// Unknown keys are ignored; anything malformed is one error naming file and place.
Expected<Session> read_session(const nlohmann::json& document, const std::string& where);

/// Files that the session names are written relative to its folder where they lie there or below, else whole; read,
/// they are absolute again, wherever the program was started (core/base/named_file.h).
Expected<void> save_session(const Session& session, const std::filesystem::path& path);
Expected<Session> load_session(const std::filesystem::path& path);
Expected<Session> parse_session(std::string_view text, const std::string& where);

}  // namespace turnpoint::app
