// SPDX-License-Identifier: Apache-2.0
#include "views/graph/task_search.h"

#include <algorithm>
#include <functional>
#include <string>
#include <string_view>

namespace turnpoint::views {

namespace {

char lower(char c) { return c >= 'A' && c <= 'Z' ? char(c - 'A' + 'a') : c; }

/// Names are UTF-8, of which only ASCII letters are folded: no decoding, so 200,000 names take milliseconds.
bool contains(std::string_view name, const std::string& wanted) {
  return std::search(name.begin(), name.end(), wanted.begin(), wanted.end(),
                     [](char a, char b) { return lower(a) == b; }) != name.end();
}

}  // namespace

std::vector<TaskHierarchy::Child> find_by_name(const TaskHierarchy& h, const QString& text) {
  std::string wanted = text.trimmed().toUtf8().toStdString();
  std::transform(wanted.begin(), wanted.end(), wanted.begin(), lower);
  std::vector<TaskHierarchy::Child> found;
  if (wanted.empty()) return found;
  for (std::uint32_t g = 1; g < h.groups.size() && found.size() < kMostMatches; ++g)
    if (h.groups[g].made != TaskHierarchy::Made::fold && contains(h.names[g], wanted)) found.push_back({g, true});
  for (const TaskIndex t : h.order) {
    if (found.size() >= kMostMatches) break;
    if (contains(h.graph->names[t], wanted)) found.push_back({t, false});
  }
  return found;
}

}  // namespace turnpoint::views
