// SPDX-License-Identifier: Apache-2.0
#include "app/cli/one_result.h"

#include <fmt/format.h>
#include <algorithm>
#include <nlohmann/json.hpp>
#include <vector>

namespace turnpoint::cli {

namespace {

using nlohmann::json;

std::string text_of(const json& object, const char* key) {
  if (!object.is_object()) return {};
  const auto found = object.find(key);
  return found != object.end() && found->is_string() ? found->get<std::string>() : std::string();
}

std::string method_of(const json& result) {
  const auto scenario = result.is_object() ? result.find("scenario") : result.end();
  const std::string options = scenario != result.end() ? text_of(*scenario, "method_options") : std::string();
  return text_of(result, "method") + (options.empty() ? "" : ":" + options);
}

bool is_asked(const json& result, const std::string& method) {
  return method == method_of(result) || method == text_of(result, "method");
}

}  // namespace

Expected<json> one_result(json document, const std::string& method, const std::string& file) {
  const bool several = text_of(document, "format") == "turnpoint/results@1" && document.contains("results") &&
                       document["results"].is_array();
  if (!several) {
    if (method.empty() || is_asked(document, method)) return document;
    return usage_error(fmt::format("--method {}: the result is that of {}", method, method_of(document)), file);
  }
  std::vector<std::string> names;
  std::vector<json*> fitting;
  for (auto& result : document["results"]) {
    const std::string name = method_of(result);
    if (std::find(names.begin(), names.end(), name) == names.end()) names.push_back(name);
    if (method.empty() || is_asked(result, method)) fitting.push_back(&result);
  }
  if (fitting.size() == 1) return json(std::move(*fitting.front()));
  const std::string held = fmt::format("results of {}", fmt::join(names, ", "));
  if (names.empty()) return bad_input("holds no result", file);
  if (method.empty() && names.size() > 1) return usage_error("holds " + held + "; choose one with --method", file);
  if (fitting.empty()) return usage_error(fmt::format("holds no result of {}, but {}", method, held), file);
  return usage_error(fmt::format("holds {} results of {}, of several numbers of devices perhaps; search for one of them",
                                 fitting.size(), method_of(*fitting.front())),
                     file);
}

}  // namespace turnpoint::cli
