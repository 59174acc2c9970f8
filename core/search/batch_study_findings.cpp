// SPDX-License-Identifier: Apache-2.0
// What the answers of a study come to.
#include <fmt/format.h>
#include <algorithm>

#include "core/search/batch_study.h"
#include "core/search/registry.h"

namespace turnpoint {

namespace {

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  const std::size_t half = values.size() / 2;
  return values.size() % 2 == 1 ? values[half] : (values[half - 1] + values[half]) / 2;
}

}  // namespace

const StudyCell* study_cell(const BatchStudy& study, const std::string& model, int devices, const std::string& method,
                            const std::string& graph, bool at_reported) {
  const auto at = std::find_if(study.cells.begin(), study.cells.end(), [&](const StudyCell& cell) {
    return cell.model == model && cell.devices == devices && cell.method == method && cell.graph == graph &&
           cell.at_reported == at_reported;
  });
  if (at != study.cells.end()) return &*at;
  const auto choice = choose_method(method);
  if (graph.empty() || !choice || choice->method->places) return nullptr;
  return study_cell(study, model, devices, method, {}, at_reported);
}

std::string study_method_title(const std::string& method) {
  const auto choice = choose_method(method);
  if (!choice) return method;
  return choice->method->label() + (choice->parameters.empty() ? "" : " (" + choice->parameters + ")");
}

std::vector<double> speed_ups(const BatchStudy& study, const std::string& model, const std::string& method,
                              const std::string& graph, bool at_reported) {
  std::vector<double> speed_ups;
  double base = 0;
  for (const int devices : study.devices) {
    const StudyCell* cell = study_cell(study, model, devices, method, graph, at_reported);
    const double rate = cell ? cell->samples_per_second() : 0;
    if (base == 0) base = rate;
    speed_ups.push_back(base > 0 ? rate / base : 0);
  }
  return speed_ups;
}

SuperlinearNetworks superlinear(const BatchStudy& study, const std::string& graph, bool at_reported, int most) {
  SuperlinearNetworks found;
  for (const StudiedNetwork& network : study.networks) {
    const auto ups = speed_ups(study, network.model, study.methods.front(), graph, at_reported);
    int first = 0, compared = 0, above = 0;
    for (std::size_t i = 0; i < ups.size() && study.devices[i] <= most; ++i) {
      if (ups[i] <= 0) continue;
      if (first == 0) {
        first = study.devices[i];
        continue;
      }
      ++compared;
      above += ups[i] > double(study.devices[i]) / first;
    }
    if (compared == 0) continue;
    ++found.compared;
    if (above == compared) found.titles.push_back(network.title);
  }
  return found;
}

std::vector<StudyStanding> standings(const BatchStudy& study, const std::string& graph, bool at_reported) {
  std::vector<StudyStanding> all;
  for (std::size_t m = 1; m < study.methods.size(); ++m) {
    StudyStanding standing{.method = study.methods[m], .median_speed = std::nullopt};
    std::vector<double> speeds;
    for (const StudiedNetwork& network : study.networks)
      for (const int devices : study.devices) {
        if (devices == 1) continue;
        const StudyCell* first = study_cell(study, network.model, devices, study.methods.front(), graph, at_reported);
        const StudyCell* cell = study_cell(study, network.model, devices, study.methods[m], graph, at_reported);
        // Another graph may take another largest batch.
        if (!first || !first->fits || !cell || cell->batch != first->batch) continue;
        ++standing.cells;
        if (!cell->fits) {
          ++(cell->refusal.empty() ? standing.does_not_fit : standing.refused);
          continue;
        }
        speeds.push_back(first->time_s / cell->time_s);
        standing.slower += cell->time_s > first->time_s;
      }
    if (!speeds.empty()) standing.median_speed = median(std::move(speeds));
    if (standing.cells > 0) all.push_back(std::move(standing));
  }
  return all;
}

std::vector<std::string> study_findings(const BatchStudy& study, const std::string& graph, bool at_reported) {
  std::vector<std::string> words;
  constexpr int kUpTo = 4;  // devices: what the paper states
  const auto rows = standings(study, graph, at_reported);
  if (rows.empty()) return words;
  const auto above = superlinear(study, graph, at_reported, kUpTo);
  std::string names;
  for (const std::string& name : above.titles) names += (names.empty() ? " (" : ", ") + name;
  // Where no network has two counts to compare nothing is said, rather than "on 0 of 0".
  if (above.compared > 0)
    words.push_back(fmt::format("With {} the speed-up is superlinear up to {} devices on {} of {} networks{}.",
                                study_method_title(study.methods.front()), kUpTo, above.titles.size(), above.compared,
                                names.empty() ? "" : names + ")"));
  for (const StudyStanding& row : rows)
    words.push_back(fmt::format(
        "{}: of {} cases with several devices it does not fit in {}{} and is slower in {}{}.",
        study_method_title(row.method), row.cells, row.does_not_fit,
        row.refused > 0 ? fmt::format(", has no answer in {}", row.refused) : "", row.slower,
        row.median_speed ? fmt::format("; where it fits, {:.2f} times as fast in the median", *row.median_speed) : ""));
  return words;
}

}  // namespace turnpoint
