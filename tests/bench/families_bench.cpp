// SPDX-License-Identifier: Apache-2.0
// How many families of Hugging Face models open, and how many of those count right: families_bench FOLDER CSV, where
// FOLDER holds a config MODEL_TYPE.json a family and CSV has lines "model_type,class,parameters". A count is right
// within 0.5 %; a wrong one that comes with a note is listed apart. Prints a table by kind, then the families of each
// row. Fails where a count is wrong and no note says so, or a refusal names no way out.
//
// Kinds: a decoder by its class (ForCausalLM, LMHeadModel, Decoder), whatever else it holds; the others by what the
// config and the class say (nearest.h). "all text" are decoders and the rest of text.
#include <cmath>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "core/base/json.h"
#include "core/base/text.h"
#include "core/import/huggingface/nearest.h"
#include "core/import/huggingface/text_checks.h"
#include "core/import/source/model_source.h"

namespace {

using namespace turnpoint;

std::string group_of(const std::string& name, const std::string& class_name, const std::string& path) {
  const auto ends = [&](const char* ending) { return class_name.ends_with(ending); };
  if (ends("ForCausalLM") || (ends("LMHeadModel") && !ends("WithLMHeadModel")) || ends("GenerationDecoder"))
    return "decoders";
  std::ifstream in(path);
  const std::string text((std::istreambuf_iterator<char>(in)), {});
  const auto config = parse_json(quote_non_numbers(text), path);
  if (!config) return "others";
  using huggingface::FamilyKind;
  const auto kind = huggingface::kind_of_config(*config, name);
  if (kind.known && kind.kind == FamilyKind::picture) return "pictures";
  if (kind.known && kind.kind == FamilyKind::sound) return "sound";
  if (kind.known && kind.kind == FamilyKind::other) return "several parts";
  return config->contains("vocab_size") || config->contains("src_vocab_size") ? "other text" : "others";
}

struct Row {
  int families = 0, exact = 0, close = 0, refused = 0, lost = 0, wrong = 0, noted = 0;
  void operator+=(const Row& other) {
    families += other.families, exact += other.exact, close += other.close, refused += other.refused;
    lost += other.lost, wrong += other.wrong, noted += other.noted;
  }
};

void print(const char* name, const Row& row) {
  const int right = row.exact + row.close;
  std::printf("%-14s %8d %6d %6d %6.1f %% %8d %8d %8d %8d\n", name, row.families, row.exact, right,
              row.families ? 100.0 * right / row.families : 0.0, row.noted, row.refused, row.lost, row.wrong);
}

}  // namespace

int main(int argc, char** argv) {
  if (argc != 3) {
    std::printf("families_bench FOLDER CSV: FOLDER holds MODEL_TYPE.json for the lines of CSV; nothing was given\n");
    return 0;
  }
  const std::filesystem::path folder = argv[1];
  std::ifstream in(argv[2]);
  std::map<std::string, Row> groups;
  std::map<std::string, std::vector<std::string>> found;
  int absent = 0;
  for (std::string line; std::getline(in, line);) {
    if (line.ends_with('\r')) line.pop_back();
    const auto cells = split(line, ',');
    const auto truth = cells.size() == 3 ? parse_int(cells[2]) : std::nullopt;
    if (!truth) continue;
    const std::string name(cells[0]);
    const std::string path = (folder / (name + ".json")).string();
    if (!std::filesystem::exists(path)) {
      ++absent;
      continue;
    }
    const std::string group = group_of(name, std::string(cells[1]), path);
    Row& row = groups[group];
    ++row.families;
    const auto source = open_model(path);
    const auto model = source ? (*source)->bind({1, 0}) : Expected<ModelPtr>(source.error());
    const char* how = "refused";
    if (!model) {
      ++row.refused;
      if (model.error().message().find("ONNX") == std::string::npos) ++row.lost, how = "refused without a way out";
    } else if ((*model)->parameters == *truth) {
      ++row.exact, how = "exact";
    } else if (std::abs(double((*model)->parameters) / double(*truth) - 1) <= 0.005) {
      ++row.close, how = "within 0.5 %";
    } else if ((*model)->warnings.empty()) {
      ++row.wrong, how = "wrong without a note";
    } else {
      ++row.noted, how = "wrong with a note";
    }
    found[group + ", " + how].push_back(name);
  }
  std::printf("%-14s %8s %6s %6s %8s %8s %8s %8s %8s\n", "", "families", "exact", "0.5 %", "", "noted", "refused",
              "no road", "silent");
  Row all, text;
  for (const auto& [name, row] : groups) all += row;
  text += groups["decoders"];
  text += groups["other text"];
  for (const char* name : {"decoders", "other text"}) print(name, groups[name]);
  print("all text", text);
  for (const char* name : {"pictures", "sound", "several parts", "others"}) print(name, groups[name]);
  print("all", all);
  std::printf("\n0.5 %%: right within it, exact ones counted. noted: another count, with a note. refused: with a way out but\n"
              "for those under \"no road\". silent: another count without a note.\n");
  if (absent) std::printf("%d more have no config in %s\n", absent, folder.c_str());
  for (const auto& [row, names] : found) {
    if (row.ends_with("exact")) continue;
    std::printf("\n%s:", row.c_str());
    for (const auto& name : names) std::printf(" %s", name.c_str());
    std::printf("\n");
  }
  return all.wrong + all.lost ? 1 : 0;
}
