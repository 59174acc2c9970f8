// SPDX-License-Identifier: Apache-2.0
#include "core/search/batch_study.h"

#include <fmt/format.h>
#include <algorithm>
#include <map>
#include <memory>

#include "core/base/text.h"
#include "core/import/source/model_source.h"
#include "core/schedule/fitting.h"
#include "core/search/fitting_batch.h"
#include "core/search/objectives.h"
#include "core/search/registry.h"
#include "core/search/scenario_of.h"

namespace turnpoint {

namespace {

/// Samples: far above what any device takes. What fits ends the doubling, not this.
constexpr std::int64_t kMostStudied = std::int64_t(1) << 31;
// Batches that say nothing, before no other is tried: so many doublings are more than a split asks a batch to divide
// by.
constexpr int kMostRefusedInRow = 12;

/// A method as it is asked with the study's graph.
struct Asked {
  std::string name;  ///< as the study has it
  bool places = false;
  Contender contender;
};

Expected<std::vector<Asked>> methods_asked(const BatchStudy& study, const std::string& graph) {
  std::vector<Asked> asked;
  for (const std::string& name : study.methods) {
    const auto choice = choose_method(name);
    if (!choice) return choice.error();
    if (!choice->method->places && !graph.empty()) continue;
    const std::string both = choice->parameters + (choice->parameters.empty() || graph.empty() ? "" : ":") + graph;
    if (auto searcher = make_searcher(*choice->method, both); !searcher) return searcher.error();
    asked.push_back({name, choice->method->places, contender(*choice->method, both)});
  }
  if (asked.empty() || asked.front().name != study.methods.front())
    return usage_error(
        fmt::format("{} places nothing, so no largest batch depends on '{}'", study.methods.front(), graph));
  return asked;
}

std::vector<std::int64_t> candidates(const StudiedNetwork& network) {
  std::vector<std::int64_t> list = network.reported;
  for (std::int64_t batch = 1; batch <= kMostStudied; batch *= 2) list.push_back(batch);
  std::sort(list.begin(), list.end());
  list.erase(std::unique(list.begin(), list.end()), list.end());
  list.erase(list.begin(), std::upper_bound(list.begin(), list.end(), 0));
  return list;
}

class StudyRun {
 public:
  StudyRun(const BatchStudy& study, std::string graph, std::vector<Asked> asked, const RunContext& context,
           const std::function<void(const StudyCell&)>& found)
      : study_(study), graph_(std::move(graph)), asked_(std::move(asked)), context_(context), found_(found) {}

  Expected<void> run(const std::vector<const StudiedNetwork*>& networks) {
    steps_ = networks.size() * study_.devices.size() * 2 * asked_.size();
    for (const StudiedNetwork* network : networks)
      if (auto done = run(*network); !done) return done.error();
    return {};
  }

 private:
  Expected<void> run(const StudiedNetwork& network) {
    const auto source = open_model(network.model);
    if (!source) return source.error();
    Settings settings = study_.settings;
    settings.batch = 1;
    std::int64_t least = 1;
    for (std::size_t i = 0; i < study_.devices.size(); ++i) {
      const auto whole = scenario_of(**source, hardware_of(study_.devices[i]), settings);
      if (!whole) return whole.error();
      const auto here = on_devices(*whole, study_.devices[i]);
      if (!here) return here.error();
      at_ = network.title + ", " + counted_devices(study_.devices[i]);
      if (auto done = largest(network, **source, *here, least); !done) return done.error();
      const std::int64_t reported = i < network.reported.size() ? network.reported[i] : 0;
      for (const Asked& method : asked_) {
        if (reported > 0)
          if (auto cell = ask(network, **source, *here, method, reported, true); !cell) return cell.error();
        ++step_;
      }
    }
    return {};
  }

  std::string hardware_of(int devices) const {
    constexpr std::string_view kCount = "{devices}";
    std::string name = study_.hardware;
    if (const auto at = name.find(kCount); at != std::string::npos)
      name.replace(at, kCount.size(), std::to_string(devices));
    return name;
  }

  static std::string counted_devices(int devices) {
    return devices == 1 ? "1 device" : std::to_string(devices) + " devices";
  }

  /// Upwards, since finding out that nothing fits takes longest. What fewer devices took need not fit, though: what is
  /// reserved on a device may grow with their number, and a method may use no more devices than before.
  Expected<void> largest(const StudiedNetwork& network, const ModelSource& source, const ScenarioPtr& here,
                         std::int64_t& least) {
    StudyCell best = question(network, here, asked_.front(), 0, false);
    const auto batches = candidates(network);
    const auto first = std::lower_bound(batches.begin(), batches.end(), least);
    bool too_large = false;
    const auto ask_for = [&](std::int64_t batch, int& refused) -> Expected<void> {
      auto cell = answer(network, source, here, asked_.front(), batch, false);
      if (!cell) return cell.error();
      refused = cell->refusal.empty() ? 0 : refused + 1;
      if (cell->fits) {
        best = std::move(*cell);
      } else if (cell->refusal.empty()) {
        too_large = true;
        if (best.batch == 0) best.memory_bytes = cell->memory_bytes, best.refusal.clear();
      } else if (best.batch == 0 && !too_large) {
        best.refusal = cell->refusal;
      }
      return {};
    };
    int refused = 0;
    for (auto at = first; at != batches.end() && !too_large && refused < kMostRefusedInRow; ++at)
      if (auto done = ask_for(*at, refused); !done) return done.error();
    refused = 0;
    for (auto at = first; at != batches.begin() && best.batch == 0 && refused < kMostRefusedInRow;)
      if (auto done = ask_for(*--at, refused); !done) return done.error();
    if (best.batch > 0) least = best.batch;
    found_(best);
    ++step_;
    for (std::size_t m = 1; m < asked_.size(); ++m, ++step_)
      if (best.batch > 0)
        if (auto cell = ask(network, source, here, asked_[m], best.batch, false); !cell) return cell.error();
    return {};
  }

  StudyCell question(const StudiedNetwork& network, const ScenarioPtr& here, const Asked& method, std::int64_t batch,
                     bool at_reported) const {
    StudyCell cell;
    cell.model = network.model;
    cell.devices = here->cluster->devices();
    cell.method = method.name;
    cell.graph = graph_;
    cell.at_reported = at_reported;
    cell.batch = batch;
    return cell;
  }

  Expected<StudyCell> ask(const StudiedNetwork& network, const ModelSource& source, const ScenarioPtr& here,
                          const Asked& method, std::int64_t batch, bool at_reported) {
    auto cell = answer(network, source, here, method, batch, at_reported);
    if (cell) found_(*cell);
    return cell;
  }

  Expected<StudyCell> answer(const StudiedNetwork& network, const ModelSource& source, const ScenarioPtr& here,
                             const Asked& method, std::int64_t batch, bool at_reported) {
    StudyCell cell = question(network, here, method, batch, at_reported);
    if (context_.cancelled()) return cancelled_error();
    RunContext part = context_;
    part.progress = nullptr;
    if (context_.progress)
      context_.progress({fmt::format("{}, batch {}, {}", at_, batch, method.name), double(step_) / double(steps_)});
    const auto scenario = with_batch(source, here, batch);
    if (!scenario) return refused(cell, scenario.error());
    if (auto reason = method.contender.refuses(**scenario); !reason.empty()) return refused(cell, usage_error(reason));
    auto result = method.contender.make()->run(*scenario, SearchPass::exact, part);
    // What a search had when it was stopped is no answer.
    if (context_.cancelled()) return cancelled_error();
    if (result) result = judged_by_peaks(*result, part);
    if (context_.cancelled()) return cancelled_error();
    if (!result) return refused(cell, result.error());
    if ((*result)->points.empty()) return refused(cell, usage_error("no plan"));
    const auto fastest = (*result)->fastest_that_fits();
    const std::size_t at = fastest.value_or(least_peak(**result).value_or(0));
    const ResultPoint& point = (*result)->points[at];
    cell.fits = fastest.has_value();
    cell.time_s = cell.fits ? point.simulated_time_s.value_or(point.time_s) : 0;
    cell.memory_bytes = point.simulated_memory_bytes.value_or(point.memory_bytes);
    if ((*result)->plans && (*result)->plans->kind(at) == PlanKind::placement)
      cell.began_as = std::get<PlacementPlanPtr>((*result)->plans->plan(at))->origin;
    return cell;
  }

  static Expected<StudyCell> refused(StudyCell cell, const Error& error) {
    if (error.code == ErrorCode::cancelled) return error;
    cell.refusal = error.what;
    return cell;
  }

  const BatchStudy& study_;
  const std::string graph_;
  const std::vector<Asked> asked_;
  const RunContext& context_;
  const std::function<void(const StudyCell&)>& found_;
  std::size_t step_ = 0, steps_ = 1;
  std::string at_;
};

}  // namespace

bool StudyCell::same_question(const StudyCell& other) const {
  return model == other.model && devices == other.devices && method == other.method && graph == other.graph &&
         at_reported == other.at_reported;
}

const StudyCell* BatchStudy::find(const StudyCell& question) const {
  const auto at =
      std::find_if(cells.begin(), cells.end(), [&](const StudyCell& cell) { return cell.same_question(question); });
  return at == cells.end() ? nullptr : &*at;
}

void BatchStudy::put(StudyCell cell) {
  if (const StudyCell* known = find(cell))
    cells[std::size_t(known - cells.data())] = std::move(cell);
  else
    cells.push_back(std::move(cell));
}

bool BatchStudy::all_among(const std::vector<StudyCell>& found) const {
  return std::all_of(cells.begin(), cells.end(), [&](const StudyCell& cell) {
    return std::any_of(found.begin(), found.end(), [&](const StudyCell& one) { return one.same_question(cell); });
  });
}

std::vector<std::string> BatchStudy::graphs() const {
  std::vector<std::string> graphs{""};
  for (const StudyCell& cell : cells)
    if (std::find(graphs.begin(), graphs.end(), cell.graph) == graphs.end()) graphs.push_back(cell.graph);
  return graphs;
}

Expected<void> check_study_choice(const BatchStudy& study, const StudyChoice& choice) {
  for (const std::string& model : choice.models)
    if (std::none_of(study.networks.begin(), study.networks.end(),
                     [&](const StudiedNetwork& network) { return network.model == model; }))
      return usage_error(fmt::format("the study has no model '{}'", model));
  if (auto asked = methods_asked(study, choice.graph); !asked) return asked.error();
  return {};
}

Expected<void> run_batch_study(const BatchStudy& study, const StudyChoice& choice, const RunContext& context,
                               const std::function<void(const StudyCell&)>& found) {
  if (auto checked = check_study_choice(study, choice); !checked) return checked;
  std::vector<const StudiedNetwork*> networks;
  for (const StudiedNetwork& network : study.networks)
    if (choice.models.empty() ||
        std::find(choice.models.begin(), choice.models.end(), network.model) != choice.models.end())
      networks.push_back(&network);
  auto asked = methods_asked(study, choice.graph);
  if (!asked) return asked.error();
  return StudyRun(study, choice.graph, std::move(*asked), context, found).run(networks);
}

}  // namespace turnpoint
