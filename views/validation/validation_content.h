// SPDX-License-Identifier: Apache-2.0
// One validation report, or two side by side, as words and rows for the tab that shows them. No widgets.
#pragma once

#include <QString>
#include <QStringList>
#include <array>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "core/base/ids.h"
#include "core/model/model.h"
#include "core/validation/validation_report.h"

namespace turnpoint::views {

using ValidationReportPtr = std::shared_ptr<const ValidationReport>;

enum class ValidationPart : std::uint8_t { step, memory, sent, operators, collectives };
inline constexpr std::size_t kValidationParts = 5;
/// `placement`: of a report of one, whose exchanges are transfers between devices.
QString part_text(ValidationPart part, bool placement = false);

/// One value of the report on show and, where two are compared, of the other one.
struct ValidationRow {
  ValidationPart part = ValidationPart::step;
  QString name;
  bool placement = false;  ///< of a report of one
  OperatorId op;           ///< of the open model; invalid: the value is of no operator, or of another model
  std::optional<ComparedValue> value, other;

  bool bytes() const { return part == ValidationPart::memory || part == ValidationPart::sent; }
  /// The longest of its bars, seconds or bytes.
  double largest() const;
};

struct ValidationContent {
  ValidationReportPtr report, other;
  QString title, facts;             ///< plan; backend, ranks, date
  QString other_title;              ///< empty: nothing to compare with
  QString disturbed;                ///< why the measured times are longer than they need be; empty: nothing known
  QString verdict;                  ///< about the numerics
  bool verdict_good = false;        ///< proved
  bool verdict_bad = false;         ///< computes something else
  std::vector<ValidationRow> rows;  ///< part by part; operators and collectives by falling time
  QStringList notes;
  std::array<int, kValidationParts> measured{}, count{};  ///< of `report`, by part
};
using ValidationContentPtr = std::shared_ptr<const ValidationContent>;

/// `other` may be null; its values stand beside those of the same name. `model`: the open one, for the selection; may
/// be null.
ValidationContentPtr make_validation_content(const ValidationReportPtr& report, const ValidationReportPtr& other,
                                             const ModelPtr& model);

QString backend_text(const ValidationReport& report);  ///< "2 CPU ranks on 2 cores", "CUDA GPU, one device's part"
QString report_date_text(const ValidationReport& report);
QString value_text(const ValidationRow& row, double value);  ///< with its unit
/// "776 -> 808 ms"; the prediction alone where nothing was measured.
QString figures_text(const ValidationRow& row, const std::optional<ComparedValue>& value);
/// What the prediction was, relative to the measured value: "4.1% too slow", of bytes "4.1% too high"; "modelled" where
/// nothing was measured. A bare sign would be read as the change from the first figure to the second.
QString error_text(const ComparedValue& value, bool bytes);
QString source_text(const ComparedValue& value);
/// Without the names of the command line's options, for which the window has boxes.
std::string in_window_words(std::string text);

/// Errors above this are drawn in the warning colour.
inline constexpr double kLargeError = 0.07;

}  // namespace turnpoint::views
