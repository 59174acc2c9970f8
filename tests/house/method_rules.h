// SPDX-License-Identifier: Apache-2.0
// Methods of search: the registry includes them, they do not include it, and nobody else knows one by its name.
#pragma once

#include "house/rules.h"

namespace turnpoint::house {

/// No string literal outside a method's own folder is a method's name, alone or with parameters ("manual:tp=2", ",ft").
inline std::vector<Violation> check_method_names(const fs::path& root, const std::vector<std::string>& methods) {
  // Names of others that are spelt alike: frameworks whose settings are read, formats that plans are exported to,
  // switches of the scenario.
  static const std::vector<std::pair<std::string, std::set<std::string>>> alike = {
      {"core/import/", {"megatron"}},
      {"core/export/", {"megatron"}},
      {"core/scenario/scenario.cpp", {"update-sharding"}},
      {"core/plan/beyond_switches.cpp", {"update-sharding"}}};
  std::string names;
  for (const std::string& method : methods) names += (names.empty() ? "" : "|") + method;
  const std::regex pattern("\"[,:]?(" + names + ")(:[^\" ]*)?\"");
  std::vector<Violation> found;
  for (const auto& file : read_tree(root, {"app", "core", "views"}, kCppEndings)) {
    if (file.name.starts_with("core/search/") && file.name.find('/', 12) != std::string::npos) continue;
    const auto code = without_comments(file.lines);
    for (std::size_t i = 0; i < code.size(); ++i)
      for (std::sregex_iterator it(code[i].begin(), code[i].end(), pattern), end; it != end; ++it) {
        const std::string name = (*it)[1].str();
        const bool allowed = std::any_of(alike.begin(), alike.end(), [&](const auto& one) {
          return file.name.starts_with(one.first) && one.second.contains(name);
        });
        if (!allowed) found.push_back({file.name, static_cast<int>(i) + 1, "knows a method by its name: " + it->str()});
      }
  }
  return found;
}

/// Only registries include methods, which are the folders of core/search; that no method includes a registry follows
/// from check_folder_circles().
inline std::vector<Violation> check_method_includes(const fs::path& root) {
  const std::string search = "core/search/";
  const std::set<std::string> registries = {search + "registry.cpp", search + "placement_registry.cpp"};
  // What is no method but what a method is, what placement methods work on, and what explains their plans.
  const std::set<std::string> open = {
      search + "method/method.h",          search + "placement/placement_method.h", search + "placement/placed.h",
      search + "placement/memory_bound.h", search + "placement/graph_options.h",    search + "explain/told_answer.h",
      search + "explain/asked_part.h",     search + "explain/forced_answer.h",      search + "explain/ratio_story.h"};
  const auto in_folder = [&](const std::string& name) {
    return name.starts_with(search) && name.find('/', search.size()) != std::string::npos;
  };
  std::vector<Violation> found;
  for (const auto& file : read_tree(root, {"app", "core", "views"}, kCppEndings))
    for (const auto& include : includes_of(file)) {
      if (!include.quoted) continue;
      const auto broken = [&](const std::string& what) {
        found.push_back({file.name, include.line, what + ": \"" + include.path + "\""});
      };
      if (!in_folder(file.name) && in_folder(include.path) && !open.contains(include.path) &&
          !registries.contains(file.name))
        broken("only registries include methods");
    }
  return found;
}

}  // namespace turnpoint::house
