// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/json_fields.h"
#include "core/scenario/scenario_json.h"
#include "core/search/batch_study.h"

namespace turnpoint {

namespace {

constexpr const char* kStudyFormat = "turnpoint/batch-study@1";
constexpr std::int64_t kMostStudyBatch = std::int64_t(1) << 31;  ///< samples; far above what any device takes
constexpr int kMostStudyDevices = 65536;                         ///< as many as a scenario may have

StudyCell read_cell(JsonFields& fields) {
  StudyCell cell;
  cell.model = fields.text("model");
  cell.devices = static_cast<int>(fields.integer("devices", 1, kMostStudyDevices));
  cell.method = fields.text("method");
  cell.graph = fields.text("graph", "");
  cell.at_reported = fields.flag("at_reported", false);
  cell.batch = fields.integer("batch", 0, kMostStudyBatch);
  if (!fields.has("fits")) fields.fail("fits", "is missing");
  cell.fits = fields.flag("fits", false);
  cell.time_s = cell.fits ? fields.number("time_s", 0, 1e12) : 0;
  cell.memory_bytes = fields.integer("memory_bytes", 0, std::int64_t(1) << 60, 0);
  cell.began_as = fields.text("began_as", "");
  cell.refusal = fields.text("refusal", "");
  return cell;
}

/// A cell that no question of the study asks would be shown nowhere and stay in the file for good.
void check_cell(const BatchStudy& study, const StudyCell& cell, JsonFields& fields) {
  if (std::none_of(study.networks.begin(), study.networks.end(),
                   [&](const StudiedNetwork& network) { return network.model == cell.model; }))
    fields.fail("model", "is of none of the study's networks: '" + cell.model + "'");
  if (std::find(study.devices.begin(), study.devices.end(), cell.devices) == study.devices.end())
    fields.fail("devices", "is none of the study's numbers of devices: " + std::to_string(cell.devices));
  if (std::find(study.methods.begin(), study.methods.end(), cell.method) == study.methods.end())
    fields.fail("method", "is none of the study's methods: '" + cell.method + "'");
  if (study.find(cell)) fields.fail("model", "has an answer to the same question in an earlier cell");
}

nlohmann::ordered_json cell_json(const StudyCell& cell) {
  nlohmann::ordered_json object = {{"model", cell.model},   {"devices", cell.devices},
                                   {"method", cell.method}, {"at_reported", cell.at_reported},
                                   {"batch", cell.batch},   {"fits", cell.fits}};
  if (!cell.graph.empty()) object["graph"] = cell.graph;
  if (cell.fits) object["time_s"] = cell.time_s;
  if (cell.memory_bytes > 0) object["memory_bytes"] = cell.memory_bytes;
  if (!cell.began_as.empty()) object["began_as"] = cell.began_as;
  if (!cell.refusal.empty()) object["refusal"] = cell.refusal;
  return object;
}

}  // namespace

Expected<BatchStudy> read_batch_study(std::string_view text, const std::string& where) {
  const auto json = parse_json(text, where);
  if (!json) return json.error();
  JsonFields fields(*json, where);
  if (fields.text("format") != kStudyFormat) fields.fail("format", std::string("is not ") + kStudyFormat);
  if (fields.error()) return *fields.error();
  BatchStudy study;
  study.title = fields.text("title");
  study.source = fields.text("source", "");
  study.made = fields.text("made", "");
  for (const char* key : {"says", "methods", "devices"})
    if (!json->contains(key) || !(*json)[key].is_array()) fields.fail(key, "is not there, or no list");
  if (fields.error()) return *fields.error();
  for (const auto& sentence : (*json)["says"])
    sentence.is_string() ? study.says.push_back(sentence) : fields.fail("says", "has something that is no sentence");
  for (const auto& method : (*json)["methods"]) {
    if (!method.is_string())
      fields.fail("methods", "has something that is no name");
    else if (std::find(study.methods.begin(), study.methods.end(), method) != study.methods.end())
      fields.fail("methods", "has '" + method.get<std::string>() + "' twice");
    else
      study.methods.push_back(method);
  }
  for (const auto& count : (*json)["devices"]) {
    const bool rising = count.is_number_integer() && count > (study.devices.empty() ? 0 : study.devices.back()) &&
                        count <= kMostStudyDevices;
    rising ? study.devices.push_back(count) : fields.fail("devices", "is no list of rising numbers from 1 on");
  }
  if (study.methods.empty()) fields.fail("methods", "is empty");
  if (study.devices.empty()) fields.fail("devices", "is empty");
  fields.each("networks", [&](JsonFields& one, std::size_t) {
    StudiedNetwork network{one.text("model"), one.text("title"), {}};
    if (std::any_of(study.networks.begin(), study.networks.end(),
                    [&](const StudiedNetwork& earlier) { return earlier.model == network.model; }))
      return one.fail("model", "is '" + network.model + "' as that of an earlier network");
    const nlohmann::json& object = one.json();
    const bool list = object.contains("reported") && object["reported"].is_array();
    if (!list || object["reported"].size() != study.devices.size())
      return one.fail("reported", "has not one batch for each number of devices");
    for (const auto& batch : object["reported"])
      batch.is_number_integer() && batch >= 0 && batch <= kMostStudyBatch
          ? network.reported.push_back(batch)
          : one.fail("reported", "has something that is no number of samples");
    study.networks.push_back(std::move(network));
  });
  if (study.networks.empty()) fields.fail("networks", "is empty");
  if (!json->contains("scenario")) fields.fail("scenario", "is not there");
  if (fields.error()) return *fields.error();
  const auto names = read_scenario((*json)["scenario"], where + ": scenario");
  if (!names) return names.error();
  study.hardware = names->hardware;
  study.settings = names->settings;
  study.settings.devices = 0;
  fields.each("cells", [&](JsonFields& one, std::size_t) {
    StudyCell cell = read_cell(one);
    check_cell(study, cell, one);
    study.cells.push_back(std::move(cell));
  });
  if (fields.error()) return *fields.error();
  study.says_scenario = (*json)["scenario"].dump();
  return study;
}

std::string write_batch_study(const BatchStudy& study) {
  nlohmann::ordered_json object = {{"format", kStudyFormat}, {"title", study.title}, {"source", study.source}};
  object["says"] = study.says;
  object["scenario"] = nlohmann::ordered_json::parse(study.says_scenario);
  object["devices"] = study.devices;
  object["methods"] = study.methods;
  for (const StudiedNetwork& network : study.networks)
    object["networks"].push_back({{"model", network.model}, {"title", network.title}, {"reported", network.reported}});
  object["made"] = study.made;
  object["cells"] = nlohmann::json::array();
  for (const StudyCell& cell : study.cells) object["cells"].push_back(cell_json(cell));
  return object.dump(1, ' ', false, nlohmann::json::error_handler_t::replace) + "\n";
}

}  // namespace turnpoint
