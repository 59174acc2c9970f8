// SPDX-License-Identifier: Apache-2.0
// Tables that a benchmark prints, and writes as resources/figures has them, so that no figure there is typed.
#pragma once

#include <fmt/chrono.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <ctime>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace turnpoint::test {

struct FigureTable {
  std::string title, conditions;
  std::vector<std::string> columns;
  std::vector<std::vector<std::string>> rows;  ///< an empty cell: nothing was found
  std::vector<std::string> notes;
};

/// What stands above a benchmark's tables.
struct FigurePage {
  std::string bench, title, what;
  std::vector<FigureTable> tables;
};

inline void print_figures(const FigureTable& table) {
  std::vector<std::size_t> widths(table.columns.size());
  const auto widen = [&](const std::vector<std::string>& cells) {
    for (std::size_t c = 0; c < cells.size(); ++c) widths[c] = std::max(widths[c], cells[c].size());
  };
  const auto line = [&](const std::vector<std::string>& cells) {
    std::string text;
    for (std::size_t c = 0; c < cells.size(); ++c) text += fmt::format("{:<{}}", cells[c], widths[c] + 2);
    std::printf("%s\n", text.c_str());
  };
  widen(table.columns);
  for (const auto& row : table.rows) widen(row);
  std::printf("\n%s (%s)\n", table.title.c_str(), table.conditions.c_str());
  line(table.columns);
  for (const auto& row : table.rows) line(row);
  for (const std::string& note : table.notes) std::printf("- %s\n", note.c_str());
}

/// Of figures that are computed and not timed; false where the file cannot be written.
inline bool write_figures(const FigurePage& page, const char* file) {
  using json = nlohmann::ordered_json;
  json document = {{"format", "turnpoint/figures@1"},
                   {"bench", page.bench},
                   {"title", page.title},
                   {"what", page.what},
                   {"command", fmt::format("build/bench/{0} --json resources/figures/{0}.json", page.bench)},
                   {"sets", json::array()}};
  for (const FigureTable& table : page.tables) {
    json rows = json::array();
    for (const auto& row : table.rows) {
      json cells = json::array();
      for (const std::string& cell : row) cells.push_back(cell.empty() ? json(nullptr) : json(cell));
      rows.push_back(std::move(cells));
    }
    document["sets"].push_back({{"title", table.title},
                                {"machine", "does not depend on the machine that computes it"},
                                {"measured", fmt::format("{:%Y-%m-%d}", fmt::gmtime(std::time(nullptr)))},
                                {"written_down", nullptr},
                                {"conditions", table.conditions},
                                {"columns", table.columns},
                                {"rows", std::move(rows)},
                                {"notes", table.notes}});
  }
  std::FILE* out = std::fopen(file, "w");
  if (!out) return false;
  const std::string text = document.dump(1) + "\n";
  const bool whole = std::fwrite(text.data(), 1, text.size(), out) == text.size();
  return std::fclose(out) == 0 && whole;
}

}  // namespace turnpoint::test
