// SPDX-License-Identifier: Apache-2.0
#include "views/sweep/sweep_data.h"

#include <QCoreApplication>
#include <QStringList>
#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/scenario/scenario_json.h"
#include "views/common/format.h"
#include "views/parallelism/parallelism_data.h"

namespace turnpoint::views {

namespace {

QString sweep_words(const char* text) { return QCoreApplication::translate("Sweep", text); }

QString rate_text(double rate) { return grouped_number(rate, rate < 10); }

/// "512 tokens/s", "$0.064 per million tokens"; both where both are known.
QStringList rate_and_price(const SweepData& data, const VariationCell& cell, double time_s) {
  QStringList parts;
  const bool tokens = of_tokens(*data.sweep);
  if (const auto rate = tokens ? cell.tokens_per_second(time_s) : cell.samples_per_second(time_s))
    parts << (tokens ? sweep_words("%1 tokens/s") : sweep_words("%1 samples/s")).arg(rate_text(*rate));
  if (const auto price = cell.price_per_million(time_s))
    parts << (tokens ? sweep_words("%1 per million tokens") : sweep_words("%1 per million samples"))
                 .arg(price_text(*price));
  return parts;
}

QString scenario_words(const ScenarioNames& names, Varied varied) {
  QStringList parts;
  const Settings& settings = names.settings;
  if (varied != Varied::batch) parts << sweep_words("batch %1").arg(grouped_number(double(settings.batch), 0));
  if (varied != Varied::sequence && settings.sequence > 0)
    parts << sweep_words("%1 tokens").arg(grouped_number(double(settings.sequence), 0));
  parts << QString::fromLatin1(to_string(settings.precision)) << QString::fromLatin1(to_string(settings.optimizer));
  return parts.join(QStringLiteral(", "));
}

}  // namespace

QString SweepData::label(const std::string& method) const {
  const auto found = labels.find(method);
  return found == labels.end() ? to_qt(method) : found->second;
}

const VariedPlan* shown_plan(const SweepData& data, const VariationCell& cell) {
  if (data.turning && cell.turning) return &*cell.turning;
  return cell.fastest ? &*cell.fastest : nullptr;
}

std::optional<double> shown_time(const SweepData& data, const VariationCell& cell) {
  const VariedPlan* plan = shown_plan(data, cell);
  if (!plan) return std::nullopt;
  return data.simulated && cell.clock != Clock::simulated ? plan->simulated_time_s : plan->time_s;
}

bool has_prices(const Variation& sweep) {
  return std::any_of(sweep.cells.begin(), sweep.cells.end(),
                     [](const VariationCell& cell) { return cell.price_per_hour && cell.batch > 0; });
}

bool of_tokens(const Variation& sweep) {
  return std::any_of(sweep.cells.begin(), sweep.cells.end(),
                     [](const VariationCell& cell) { return cell.sequence > 0; });
}

std::optional<double> shown_value(const SweepData& data, const VariationCell& cell, SweepFigure figure) {
  const VariedPlan* plan = shown_plan(data, cell);
  if (!plan) return std::nullopt;
  if (figure == SweepFigure::memory) return double(plan->peak_bytes());
  const auto time = shown_time(data, cell);
  if (figure == SweepFigure::time || !time) return time;
  if (has_prices(*data.sweep)) return cell.price_per_million(*time);
  return of_tokens(*data.sweep) ? cell.tokens_per_second(*time) : cell.samples_per_second(*time);
}

QString figure_title(const SweepData& data, SweepFigure figure) {
  switch (figure) {
    case SweepFigure::time:
      return data.simulated ? sweep_words("Time of a step, simulated") : sweep_words("Time of a step");
    case SweepFigure::memory: return sweep_words("Peak memory");
    case SweepFigure::third: break;
  }
  if (!data.sweep) return {};
  const bool tokens = of_tokens(*data.sweep);
  if (has_prices(*data.sweep))
    return tokens ? sweep_words("Price per million tokens") : sweep_words("Price per million samples");
  return tokens ? sweep_words("Tokens per second") : sweep_words("Samples per second");
}

QString quantity_text(Varied quantity) {
  switch (quantity) {
    case Varied::batch: return sweep_words("Batch");
    case Varied::sequence: return sweep_words("Sequence");
    case Varied::devices: return sweep_words("Devices");
    case Varied::micro_batches: return sweep_words("Micro-batches");
    case Varied::hidden: break;
  }
  return sweep_words("Hidden size");
}

QString value_words(Varied quantity, std::int64_t value) {
  const QString number = grouped_number(double(value), 0);
  switch (quantity) {
    case Varied::batch: return sweep_words("batch %1").arg(number);
    case Varied::sequence: return sweep_words("%1 tokens").arg(number);
    case Varied::devices: return devices_text(int(value));
    case Varied::micro_batches:
      return value == 1 ? sweep_words("1 micro-batch") : sweep_words("%1 micro-batches").arg(number);
    case Varied::hidden: break;
  }
  return sweep_words("hidden size %1").arg(number);
}

QString cell_text(const SweepData& data, const VariationCell& cell) {
  const VariedPlan* plan = shown_plan(data, cell);
  if (!plan) return with_groups(to_qt(cell.reason));
  const auto time = shown_time(data, cell);
  QStringList parts{time ? time_text(*time) : sweep_words("time not simulated"), memory_text(plan->peak_bytes())};
  if (time) parts << rate_and_price(data, cell, *time);
  return parts.join(QStringLiteral(" · "));
}

QString value_text(const SweepData& data, std::int64_t value, const std::string& method) {
  if (!data.sweep) return {};
  const Varied quantity = data.sweep->axis.quantity;
  QString head = value_words(quantity, value);
  head[0] = head[0].toUpper();
  if (value == data.current) head += sweep_words(" (as it stands)");
  QStringList lines{head};
  for (const std::string& one : data.sweep->methods) {
    const VariationCell* cell = data.sweep->find(value, one);
    lines << data.label(one) + QStringLiteral(": ") + (cell ? cell_text(data, *cell) : sweep_words("not asked yet"));
    const VariedPlan* plan = cell && one == method ? shown_plan(data, *cell) : nullptr;
    if (plan && !plan->words.empty()) lines << QStringLiteral("    ") + to_qt(plan->words);
    if (cell && one == method)
      for (const std::string& note : cell->notes) lines << QStringLiteral("    ") + to_qt(note);
  }
  return lines.join(u'\n');
}

QString subject_text(const Variation& sweep) {
  const QString on = sweep_words("%1 on %2").arg(to_qt(sweep.model), to_qt(sweep.hardware));
  const auto names = read_scenario(nlohmann::json::parse(sweep.scenario, nullptr, false), {});
  return names ? on + QStringLiteral(", ") + scenario_words(*names, sweep.axis.quantity) : on;
}

QString describe(const SweepData& data) {
  if (!data.nothing.isEmpty() || !data.sweep) return data.nothing;
  QStringList text{subject_text(*data.sweep)};
  for (const std::int64_t value : data.sweep->axis.values)
    text << value_text(data, value).replace(u'\n', QStringLiteral("; "));
  return text.join(QStringLiteral(". "));
}

QString values_text(const std::vector<std::int64_t>& values) {
  bool doubles = values.size() > 2;
  for (std::size_t i = 1; i < values.size(); ++i) doubles = doubles && values[i] == 2 * values[i - 1];
  if (doubles) return QStringLiteral("%1..%2").arg(values.front()).arg(values.back());
  QStringList list;
  for (const std::int64_t value : values) list << QString::number(value);
  return list.join(u',');
}

QString sweep_rows(const SweepData& data) {
  if (!data.sweep) return {};
  const Variation& sweep = *data.sweep;
  const bool priced = has_prices(sweep), tokens = of_tokens(sweep);
  QStringList head{quantity_text(sweep.axis.quantity), sweep_words("Method"), sweep_words("Time (s)"),
                   sweep_words("Peak memory (bytes)"), tokens ? sweep_words("Tokens/s") : sweep_words("Samples/s")};
  if (priced) head << figure_title(data, SweepFigure::third);
  head << sweep_words("Plan");
  QString text = head.join(u'\t') + u'\n';
  const auto number = [](const std::optional<double>& value) {
    return value ? QString::number(*value, 'g', 17) : QString();
  };
  for (const VariationCell& cell : sweep.cells) {
    const VariedPlan* plan = shown_plan(data, cell);
    const auto time = shown_time(data, cell);
    QStringList row{QString::number(cell.value), data.label(cell.method), number(time),
                    plan ? QString::number(plan->peak_bytes()) : QString()};
    row << (time ? number(tokens ? cell.tokens_per_second(*time) : cell.samples_per_second(*time)) : QString());
    if (priced) row << (time ? number(cell.price_per_million(*time)) : QString());
    row << to_qt(plan ? plan->words : cell.reason);
    text += row.join(u'\t') + u'\n';
  }
  return text;
}

}  // namespace turnpoint::views
