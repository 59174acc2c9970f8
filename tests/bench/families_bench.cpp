// SPDX-License-Identifier: Apache-2.0
// How many families of Hugging Face models open, and how many of those count right: families_bench FOLDER CSV, where
// FOLDER holds a config MODEL_TYPE.json a family and CSV has lines "model_type,class,parameters". A count is right
// within 0.5 %; a wrong one that comes with a note is listed apart. Prints a table and the families of each row.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <string>
#include <vector>

#include "core/base/text.h"
#include "core/import/model_source.h"

int main(int argc, char** argv) {
  using namespace turnpoint;
  if (argc != 3) {
    std::printf("families_bench FOLDER CSV: FOLDER holds MODEL_TYPE.json for the lines of CSV; nothing was given\n");
    return 0;
  }
  const std::filesystem::path folder = argv[1];
  std::ifstream in(argv[2]);
  std::map<std::string, std::vector<std::string>> found;
  int families = 0, absent = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    const auto cells = split(line, ',');
    const auto truth = cells.size() == 3 ? parse_int(cells[2]) : std::nullopt;
    if (!truth) continue;
    const std::string name(cells[0]);
    const auto path = folder / (name + ".json");
    if (!std::filesystem::exists(path)) {
      ++absent;
      continue;
    }
    ++families;
    const auto source = open_model(path.string());
    const auto model = source ? (*source)->bind({1, 0}) : Expected<ModelPtr>(source.error());
    const char* row = "refused";
    if (model) {
      const double off = std::abs(double((*model)->parameters) / double(*truth) - 1);
      row = (*model)->parameters == *truth ? "exact"
            : off <= 0.005                 ? "within 0.5 %"
            : (*model)->warnings.empty()   ? "wrong"
                                           : "wrong, with a note";
    }
    found[row].push_back(name);
  }
  std::printf("%d families of %s (%d more without a config)\n", families, folder.c_str(), absent);
  for (const char* row : {"exact", "within 0.5 %", "wrong, with a note", "wrong", "refused"}) {
    std::printf("%-20s %4zu  %5.1f %%\n", row, found[row].size(),
                families ? 100.0 * double(found[row].size()) / families : 0.0);
  }
  for (const auto& [row, names] : found) {
    if (row == "exact") continue;
    std::printf("\n%s:", row.c_str());
    for (const auto& name : names) std::printf(" %s", name.c_str());
    std::printf("\n");
  }
  return found["wrong"].empty() ? 0 : 1;
}
