// SPDX-License-Identifier: Apache-2.0
#include "app/session.h"

#include <fmt/format.h>
#include <QByteArray>
#include <cmath>
#include <nlohmann/json.hpp>

#include "core/base/json.h"
#include "core/base/named_file.h"
#include "views/common/format.h"

namespace turnpoint::app {

namespace {

using nlohmann::json;

constexpr const char* kFormat = "turnpoint/session@1";
constexpr std::size_t kMostPoints = 1'000'000, kMostPinned = 64, kMostSearches = 64, kMostReports = 1000,
                      kMostText = 1 << 20;

Expected<std::string> read_text(const json& object, const char* key, const std::string& where, bool required) {
  const auto at = object.find(key);
  if (at == object.end() && !required) return std::string();
  if (at == object.end() || !at->is_string()) return bad_input(std::string("'") + key + "' must be a text", where);
  auto text = at->get<std::string>();
  if (text.size() > kMostText) return bad_input(std::string("'") + key + "' is too long", where);
  return text;
}

/// What is not named stays as in `settings`.
Expected<Settings> read_settings(const json& object, const std::string& where, Settings settings = {}) {
  if (!object.is_object()) return bad_input("'settings' must be an object", where);
  for (const OptionRecord& option : scenario_options()) {
    const auto at = object.find(std::string(option.key));
    if (at == object.end()) continue;
    if (!at->is_string()) return bad_input("setting '" + std::string(option.key) + "' must be a text", where);
    const auto value = parse_option(option, at->get_ref<const std::string&>());
    if (!value) return bad_input("setting '" + std::string(option.key) + "': " + value.error().what, where);
    set_option(settings, option.key, *value);
  }
  return settings;
}

Expected<PinnedSearch> read_search(const json& object, const ScenarioRequest& base, const std::string& where) {
  if (!object.is_object()) return bad_input("a search must be an object", where);
  PinnedSearch search;
  search.scenario = base;
  const struct {
    const char* key;
    std::string* into;
    bool required;
  } texts[] = {{"label", &search.label, true},
               {"method", &search.method, true},
               {"model", &search.scenario.model, false},
               {"hardware", &search.scenario.hardware, false}};
  for (const auto& text : texts) {
    if (!text.required && !object.contains(text.key)) continue;
    auto read = read_text(object, text.key, where, true);
    if (!read) return read.error();
    *text.into = std::move(*read);
  }
  if (const auto settings = object.find("settings"); settings != object.end()) {
    auto read = read_settings(*settings, where, base.settings);
    if (!read) return read.error();
    search.scenario.settings = *read;
  }
  return search;
}

json write_settings(const Settings& settings) {
  json object = json::object();
  for (const OptionRecord& option : scenario_options())
    object[std::string(option.key)] = format_option(option, get_option(settings, option.key));
  return object;
}

Expected<views::PinnedFrontier> read_pinned(const json& object, const std::string& where) {
  if (!object.is_object()) return bad_input("a pinned frontier must be an object", where);
  views::PinnedFrontier pinned;
  const auto label = read_text(object, "label", where, true);
  if (!label) return label.error();
  pinned.label = views::to_qt(*label);
  const auto method = read_text(object, "method", where, true);
  if (!method) return method.error();
  pinned.method = *method;
  auto model = read_text(object, "model", where, false);
  if (!model) return model.error();
  pinned.model = std::move(*model);
  const auto points = object.find("points");
  if (points == object.end() || !points->is_array() || points->size() > kMostPoints)
    return bad_input("'points' must be a list", where);
  for (const json& item : *points) {
    ResultPoint point;
    const auto number = [&](const char* key, double& into) {
      const auto at = item.is_object() ? item.find(key) : item.end();
      if (!item.is_object() || at == item.end() || !at->is_number()) return false;
      into = at->get<double>();
      return std::isfinite(into) && into >= 0 && into < 9e18;
    };
    double memory = 0;
    if (!number("memory_bytes", memory) || !number("time_s", point.time_s) || !number("compute_s", point.compute_s) ||
        !number("network_s", point.network_s))
      return bad_input("a point needs finite memory_bytes, time_s, compute_s and network_s",
                       where + ", point " + std::to_string(pinned.points.size()));
    point.memory_bytes = static_cast<std::int64_t>(memory);
    const auto fits = item.find("fits");
    point.fits = fits != item.end() && fits->is_boolean() && fits->get<bool>();
    pinned.points.push_back(point);
  }
  return pinned;
}

Expected<SavedLearning> read_learning(const json& object, const std::string& where) {
  if (!object.is_object()) return bad_input("a state of learning must be an object", where);
  auto method = read_text(object, "method", where, true);
  if (!method) return method.error();
  // Two networks with their optimizers' moments: far longer than any text that a person writes.
  const auto text = object.find("state");
  if (text == object.end() || !text->is_string()) return bad_input("'state' must be a text", where);
  const auto bytes = QByteArray::fromBase64Encoding(QByteArray::fromStdString(text->get_ref<const std::string&>()),
                                                    QByteArray::AbortOnBase64DecodingErrors);
  if (!bytes) return bad_input("'state' is not base64", where);
  return SavedLearning{std::move(*method), std::make_shared<const std::string>(bytes.decoded.toStdString())};
}

}  // namespace

json write_session(const Session& session) {
  json pinned = json::array();
  for (const auto& frontier : session.pinned) {
    json points = json::array();
    for (const ResultPoint& p : frontier.points) {
      if (!views::drawable(p)) continue;
      points.push_back({{"memory_bytes", p.memory_bytes},
                        {"time_s", p.time_s},
                        {"compute_s", p.compute_s},
                        {"network_s", p.network_s},
                        {"fits", p.fits}});
    }
    pinned.push_back(
        {{"label", frontier.label.toStdString()}, {"method", frontier.method}, {"points", std::move(points)}});
    if (!frontier.model.empty()) pinned.back()["model"] = frontier.model;
  }
  json document = {{"format", kFormat},
                   {"scenario",
                    {{"model", session.scenario.model},
                     {"hardware", session.scenario.hardware},
                     {"settings", write_settings(session.scenario.settings)}}},
                   {"methods", session.methods},
                   {"splits", session.splits},
                   {"pinned", std::move(pinned)},
                   {"window", {{"geometry", session.geometry}, {"layout", session.layout}, {"view", session.view}}}};
  if (!session.title.empty()) document["title"] = session.title;
  if (!session.notes.empty()) document["notes"] = session.notes;
  if (!session.front.empty()) document["window"]["front"] = session.front;
  for (const PinnedSearch& search : session.searches)
    document["searches"].push_back({{"label", search.label},
                                    {"method", search.method},
                                    {"model", search.scenario.model},
                                    {"hardware", search.scenario.hardware},
                                    {"settings", write_settings(search.scenario.settings)}});
  for (const auto& [key, text] : session.views) {
    auto state = json::parse(text, nullptr, false);
    if (!state.is_discarded()) document["window"]["views"][key] = std::move(state);
  }
  for (const CarriedAnswer& answer : session.answers) document["answers"].push_back(write_answer(answer));
  for (const SavedLearning& saved : session.learning)
    document["learning"].push_back(
        {{"method", saved.method}, {"state", QByteArray::fromStdString(*saved.state).toBase64().toStdString()}});
  for (const ValidationReport& report : session.reports) document["reports"].push_back(write_validation(report));
  if (!session.picked_method.empty())
    document["point"] = {{"method", session.picked_method}, {"memory_bytes", session.picked_memory}};
  return document;
}

Expected<Session> read_session(const json& document, const std::string& where) {
  if (!document.is_object()) return bad_input("not a session: the document must be an object", where);
  const auto format = document.find("format");
  if (format == document.end() || !format->is_string()) return bad_input("not a session: 'format' is missing", where);
  if (*format != kFormat) {
    Error error = bad_input("format '" + format->get<std::string>().substr(0, 80) + "' is not " + kFormat, where);
    if (format->get_ref<const std::string&>().starts_with("turnpoint/session@"))
      error.hint = "it was written by a newer Turnpoint";
    return error;
  }
  Session session;
  const auto scenario = document.find("scenario");
  if (scenario == document.end() || !scenario->is_object()) return bad_input("'scenario' must be an object", where);
  const auto model = read_text(*scenario, "model", where + ": scenario", true);
  if (!model) return model.error();
  const auto hardware = read_text(*scenario, "hardware", where + ": scenario", true);
  if (!hardware) return hardware.error();
  session.scenario.model = *model;
  session.scenario.hardware = *hardware;
  if (const auto settings = scenario->find("settings"); settings != scenario->end()) {
    auto read = read_settings(*settings, where + ": scenario");
    if (!read) return read.error();
    session.scenario.settings = *read;
  }
  for (const auto& [key, list] : {std::pair("methods", &session.methods), std::pair("splits", &session.splits)}) {
    const auto names = document.find(key);
    if (names == document.end()) continue;
    const auto wrong = [&] { return bad_input(fmt::format("'{}' must be a list of names", key), where); };
    if (!names->is_array()) return wrong();
    for (const json& name : *names) {
      if (!name.is_string()) return wrong();
      list->push_back(name.get<std::string>());
    }
  }
  if (const auto pinned = document.find("pinned"); pinned != document.end()) {
    if (!pinned->is_array() || pinned->size() > kMostPinned)
      return bad_input("'pinned' must be a list of at most 64 frontiers", where);
    for (const json& item : *pinned) {
      auto read = read_pinned(item, where + ": pinned " + std::to_string(session.pinned.size()));
      if (!read) return read.error();
      session.pinned.push_back(std::move(*read));
    }
  }
  if (const auto searches = document.find("searches"); searches != document.end()) {
    if (!searches->is_array() || searches->size() > kMostSearches)
      return bad_input("'searches' must be a list of at most 64 searches", where);
    for (const json& item : *searches) {
      auto read = read_search(item, session.scenario, where + ": search " + std::to_string(session.searches.size()));
      if (!read) return read.error();
      session.searches.push_back(std::move(*read));
    }
  }
  if (const auto answers = document.find("answers"); answers != document.end()) {
    if (!answers->is_array() || answers->size() > kMostSearches)
      return bad_input("'answers' must be a list of at most 64 answers", where);
    for (const json& item : *answers) {
      auto read = read_answer(item, where + ": answer " + std::to_string(session.answers.size()));
      if (!read) return read.error();
      if (read->result) session.answers.push_back(std::move(*read));
    }
  }
  if (const auto learning = document.find("learning"); learning != document.end()) {
    if (!learning->is_array() || learning->size() > kMostSearches)
      return bad_input("'learning' must be a list of at most 64 states", where);
    for (const json& item : *learning) {
      auto read = read_learning(item, where + ": learning " + std::to_string(session.learning.size()));
      if (!read) return read.error();
      session.learning.push_back(std::move(*read));
    }
  }
  if (const auto reports = document.find("reports"); reports != document.end()) {
    if (!reports->is_array() || reports->size() > kMostReports)
      return bad_input("'reports' must be a list of at most 1000 validation reports", where);
    for (const json& item : *reports) {
      auto read = read_validation(item, where + ": report " + std::to_string(session.reports.size()));
      if (!read) return read.error();
      session.reports.push_back(std::move(*read));
    }
  }
  for (const auto& [key, into] : {std::pair{"title", &session.title}, std::pair{"notes", &session.notes}}) {
    auto text = read_text(document, key, where, false);
    if (!text) return text.error();
    *into = std::move(*text);
  }
  if (const auto picked = document.find("point"); picked != document.end() && picked->is_object()) {
    const auto method = read_text(*picked, "method", where + ": point", true);
    if (!method) return method.error();
    const auto memory = picked->find("memory_bytes");
    if (memory == picked->end() || !memory->is_number() || !std::isfinite(memory->get<double>()))
      return bad_input("'memory_bytes' must be a number", where + ": point");
    session.picked_method = *method;
    session.picked_memory = memory->get<double>();
  }
  if (const auto window = document.find("window"); window != document.end() && window->is_object()) {
    for (const auto& [key, into] : {std::pair{"geometry", &session.geometry}, std::pair{"layout", &session.layout},
                                    std::pair{"front", &session.front}}) {
      auto text = read_text(*window, key, where + ": window", false);
      if (!text) return text.error();
      *into = std::move(*text);
    }
    if (const auto view = window->find("view"); view != window->end() && view->is_object())
      for (const auto& [key, on] : view->items())
        if (on.is_boolean()) session.view[key] = on.get<bool>();
    if (const auto views = window->find("views"); views != window->end() && views->is_object())
      for (const auto& [key, state] : views->items())
        if (state.is_object()) session.views[key] = state.dump(-1, ' ', false, json::error_handler_t::replace);
  }
  return session;
}

namespace {

/// Every file that the session names, as `name` makes it.
template <class Name>
Session with_names(Session session, const Name& name) {
  session.scenario.model = name(session.scenario.model);
  session.scenario.hardware = name(session.scenario.hardware);
  for (PinnedSearch& search : session.searches) {
    search.scenario.model = name(search.scenario.model);
    search.scenario.hardware = name(search.scenario.hardware);
  }
  return session;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  std::error_code ec;
  return std::filesystem::absolute(path, ec).lexically_normal().parent_path();
}

}  // namespace

Expected<void> save_session(const Session& open, const std::filesystem::path& path) {
  const Session session = with_names(
      open, [folder = folder_of(path)](const std::string& named) { return name_from(folder, absolute_name(named)); });
  return write_file_atomically(path, write_session(session).dump(1, ' ', false, json::error_handler_t::replace) + "\n");
}

Expected<Session> parse_session(std::string_view text, const std::string& where) {
  const auto document = parse_json(text, where);
  if (!document) return document.error();
  return read_session(*document, where);
}

Expected<Session> load_session(const std::filesystem::path& path) {
  const auto document = read_json_file(path);
  if (!document) return document.error();
  auto session = read_session(*document, path.filename().string());
  if (!session) return session;
  return with_names(std::move(*session),
                    [folder = folder_of(path)](const std::string& named) { return resolve_name(folder, named); });
}

}  // namespace turnpoint::app
