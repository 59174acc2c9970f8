// SPDX-License-Identifier: Apache-2.0
// A sweep as it is drawn and told: one quantity varied, the fastest plan that fits or the turning point of each method
// (core/search/variation.h).
#pragma once

#include <QString>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/search/variation.h"

namespace turnpoint::views {

enum class SweepFigure { time, memory, third };

struct SweepData {
  std::shared_ptr<const Variation> sweep;  ///< with the answers so far; null: none was run
  std::map<std::string, QString> labels;   ///< of methods by name; one without is called by its name
  bool simulated = false;                  ///< times are those of the simulated clock, else plain sums
  bool turning = false;                    ///< turning points where there are some, else the fastest plans that fit
  bool stale = false;                      ///< of another scenario than the one that is open
  std::int64_t current = 0;                ///< the open scenario's own value; 0: it has none, or another is open
  QString nothing;                         ///< words in place of a chart; empty: there is one

  QString label(const std::string& method) const;
  friend bool operator==(const SweepData&, const SweepData&) = default;
};

/// The plan that is shown of a cell; null where none fits.
const VariedPlan* shown_plan(const SweepData& data, const VariationCell& cell);
/// Of a step of that plan, on the clock that is shown; nullopt where the clock does not know it.
std::optional<double> shown_time(const SweepData& data, const VariationCell& cell);
/// Whether the third figure is a price; else it is a rate.
bool has_prices(const Variation& sweep);
/// Whether rates and prices are of tokens, else of samples.
bool of_tokens(const Variation& sweep);
/// Seconds, bytes of the peak, and the price of a million tokens or samples, or tokens or samples a second. nullopt
/// where no plan fits.
std::optional<double> shown_value(const SweepData& data, const VariationCell& cell, SweepFigure figure);

QString figure_title(const SweepData& data, SweepFigure figure);  ///< "Time of a step"
QString quantity_text(Varied quantity);                           ///< "Batch"
QString value_words(Varied quantity, std::int64_t value);         ///< "batch 64"
/// All that is known at a value: a line for each method, and of `method` what the plan resembles. As a tool tip.
QString value_text(const SweepData& data, std::int64_t value, const std::string& method = {});
/// One method at one value, in a sentence.
QString cell_text(const SweepData& data, const VariationCell& cell);
/// What stayed: "gpt2 on 1 x 8 V100-16GB, batch 256, 1 024 tokens, fp32, adam", without the quantity that is varied.
QString subject_text(const Variation& sweep);
/// The chart in words.
QString describe(const SweepData& data);
/// Values as they are typed: "64..1024" where they double, else a list.
QString values_text(const std::vector<std::int64_t>& values);
/// Rows of a table with tabulators between the columns, header first, as spreadsheets take it from the clipboard.
QString sweep_rows(const SweepData& data);

}  // namespace turnpoint::views
