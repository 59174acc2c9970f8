// SPDX-License-Identifier: Apache-2.0
#include <QCoreApplication>
#include <QStringList>

#include "core/search/registry.h"
#include "views/common/format.h"
#include "views/study/study_chart.h"

namespace turnpoint::views {

namespace {

QString study_words(const char* text) { return QCoreApplication::translate("Study", text); }

QString method_title(const std::string& name) { return to_qt(study_method_title(name)); }

/// Whose answers depend on what of a model is placed.
bool places(const std::string& method) {
  const auto choice = choose_method(method);
  return choice && choice->method->places;
}

const StudyCell* cell_at(const BatchStudy& study, const StudiedNetwork& network, int devices, const std::string& method,
                         const std::string& graph, bool at_reported) {
  return study_cell(study, network.model, devices, method, graph, at_reported);
}

/// Samples a second over the first method's on the fewest devices that it fits.
std::vector<double> speeds(const BatchStudy& study, const StudiedNetwork& network, const std::string& method,
                           const std::string& graph, bool at_reported) {
  double base = 0;
  std::vector<double> found;
  for (const int devices : study.devices) {
    const StudyCell* first = cell_at(study, network, devices, study.methods.front(), graph, at_reported);
    if (base == 0 && first) base = first->samples_per_second();
    const StudyCell* cell = cell_at(study, network, devices, method, graph, at_reported);
    // Another graph may take another largest batch.
    const bool same = cell && first && cell->batch == first->batch;
    found.push_back(same && base > 0 ? cell->samples_per_second() / base : 0);
  }
  return found;
}

/// As many times the first value that there is as there are times the devices.
std::vector<double> linear(const BatchStudy& study, const std::vector<double>& values) {
  std::vector<double> ideal(values.size(), 0);
  std::size_t first = 0;
  while (first < values.size() && values[first] <= 0) ++first;
  for (std::size_t i = first; i < values.size(); ++i)
    ideal[i] = values[first] * study.devices[i] / study.devices[first];
  return ideal;
}

}  // namespace

std::vector<StudyLine> study_lines(const BatchStudy& study, const StudiedNetwork& network, StudyFigure figure,
                                   const std::string& graph) {
  const std::string& first = study.methods.front();
  std::vector<StudyLine> lines;
  switch (figure) {
    case StudyFigure::batch: {
      StudyLine here{study_words("largest that fits with %1").arg(method_title(first)), first, false, false, {}};
      for (const int devices : study.devices) {
        const StudyCell* cell = cell_at(study, network, devices, first, graph, false);
        here.values.push_back(cell && cell->fits ? double(cell->batch) : 0);
      }
      StudyLine paper{study_words("the paper's"), {}, false, false, {network.reported.begin(), network.reported.end()}};
      StudyLine ideal{study_words("ideal data parallelism"), {}, true, false, linear(study, here.values)};
      lines = {std::move(here), std::move(paper), std::move(ideal)};
      break;
    }
    case StudyFigure::speed_up: {
      lines = {
          {study_words("%1 at the largest batch").arg(method_title(first)), first, false, false,
           speed_ups(study, network.model, first, graph, false)},
          {study_words("at the paper's batch"), {}, false, false, speed_ups(study, network.model, first, graph, true)}};
      lines.push_back({study_words("linear"), {}, true, false, linear(study, lines.front().values)});
      break;
    }
    case StudyFigure::methods_at_reported:
    case StudyFigure::methods_at_largest:
      for (const std::string& method : study.methods)
        lines.push_back({method_title(method), method, false, !places(method),
                         speeds(study, network, method, graph, figure == StudyFigure::methods_at_reported)});
      break;
  }
  return lines;
}

QString study_text(const BatchStudy& study, const StudiedNetwork& network, int devices, StudyFigure figure,
                   const std::string& graph) {
  QStringList lines{study_words("%1, %2").arg(
      to_qt(network.title), devices == 1 ? study_words("1 device") : study_words("%1 devices").arg(devices))};
  const auto add = [&](const std::string& method, bool at_reported) {
    const StudyCell* cell = cell_at(study, network, devices, method, graph, at_reported);
    const QString whose = method_title(method) + QStringLiteral(": ");
    if (!cell) {
      lines << whose + study_words("not asked");
      return;
    }
    if (cell->batch == 0) {
      lines << whose + (cell->refusal.empty() ? study_words("no batch fits") : to_qt(cell->refusal));
      return;
    }
    QString words = whose + study_words("batch %1").arg(grouped_number(double(cell->batch), 0)) + QStringLiteral(" · ");
    if (!cell->refusal.empty())
      words += to_qt(cell->refusal);
    else if (!cell->fits)
      words += study_words("does not fit, needs %1").arg(memory_text(cell->memory_bytes));
    else
      words += time_text(cell->time_s) + QStringLiteral(" · ") + memory_text(cell->memory_bytes);
    if (!cell->began_as.empty()) words += study_words(" · began as: %1").arg(to_qt(cell->began_as));
    lines << words;
  };
  const bool both = figure == StudyFigure::batch || figure == StudyFigure::speed_up;
  if (!both)
    for (const std::string& method : study.methods) add(method, figure == StudyFigure::methods_at_reported);
  if (both) add(study.methods.front(), false);
  for (std::size_t i = 0; both && i < study.devices.size(); ++i)
    if (study.devices[i] == devices && network.reported[i] > 0) {
      lines << study_words("The paper's batch: %1").arg(grouped_number(double(network.reported[i]), 0));
      add(study.methods.front(), true);
    }
  return lines.join(u'\n');
}

}  // namespace turnpoint::views
