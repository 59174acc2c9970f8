// SPDX-License-Identifier: Apache-2.0
#include "views/validation/validation_content.h"

#include <QDateTime>
#include <QLocale>
#include <QObject>
#include <algorithm>
#include <cmath>
#include <map>

#include "core/hardware/cluster.h"
#include "views/common/counted.h"
#include "views/common/format.h"

namespace turnpoint::views {

namespace {

constexpr QChar kTimes(0x00D7);

double longest(const std::optional<ComparedValue>& value) {
  return value ? std::max({value->predicted, value->measured.value_or(0), value->measured ? value->q3 : 0.0}) : 0.0;
}

QString capitalised(std::string_view text) {
  QString made = to_qt(text);
  if (!made.isEmpty()) made[0] = made[0].toUpper();
  return made;
}

/// "3e-7": whole steps of ten say enough of a rounding error.
QString rounding_text(double error) {
  if (!(error > 0)) return QStringLiteral("0");
  const int exponent = static_cast<int>(std::floor(std::log10(error)));
  if (exponent >= -3) return QString::number(error, 'g', 2);
  const double digit = std::ceil(error / std::pow(10, exponent) - 1e-9);
  return QStringLiteral("%1e\u2212%2").arg(digit >= 10 ? 1.0 : digit).arg(digit >= 10 ? -exponent - 1 : -exponent);
}

/// "x to scores: all_to_all" as everywhere else in the window: "all-to-all".
QString exchange_text(const std::string& name) {
  QString text = to_qt(name);
  const auto move = text.lastIndexOf(QStringLiteral(": "));
  if (move >= 0 && parse_collective(name.substr(name.rfind(": ") + 2)))
    text = text.left(move) + text.mid(move).replace(u'_', u'-');
  return text;
}

class RowBuilder {
 public:
  RowBuilder(ValidationContent& out, const ModelPtr& model) : out_(out) {
    if (!model) return;
    for (std::size_t i = 0; i < model->operators.size(); ++i)
      operators_.emplace(model->operators[OperatorId(i)].name, OperatorId(i));
  }

  void add(const ValidationReport& report, bool is_other) {
    seen_.clear();
    placement_ = report.by_device();
    put(ValidationPart::step, QObject::tr("Step"), report.step, is_other);
    put(ValidationPart::step, QObject::tr("Execution"), report.execution, is_other);
    put(ValidationPart::step, QObject::tr("Network"), report.network, is_other);
    for (const auto& value : report.phases) put(ValidationPart::step, capitalised(value.name), value, is_other);
    for (const auto& value : report.devices) put(ValidationPart::step, capitalised(value.name), value, is_other);
    for (const auto& value : report.memory) put(ValidationPart::memory, capitalised(value.name), value, is_other);
    put(ValidationPart::sent,
        report.by_device() ? QObject::tr("Sent between devices") : QObject::tr("Sent by one device"), report.bytes_sent,
        is_other);
    for (const auto& exchange : report.exchanges) {
      const ComparedValue bytes = exchange.compared_bytes();
      put(ValidationPart::sent, to_qt(bytes.name).replace(u'_', u'-'), bytes, is_other);
    }
    for (const auto& value : report.operators) put(ValidationPart::operators, to_qt(value.name), value, is_other);
    for (const auto& value : report.collectives)
      put(ValidationPart::collectives, exchange_text(value.name), value, is_other);
  }

  void finish() {
    auto& rows = out_.rows;
    std::stable_sort(rows.begin(), rows.end(), [](const ValidationRow& a, const ValidationRow& b) {
      if (a.part != b.part) return a.part < b.part;
      const bool sorted = a.part == ValidationPart::operators || a.part == ValidationPart::collectives;
      return sorted && a.largest() > b.largest();
    });
    for (const ValidationRow& row : rows) {
      if (!row.value) continue;
      ++out_.count[static_cast<std::size_t>(row.part)];
      out_.measured[static_cast<std::size_t>(row.part)] += row.value->measured.has_value();
    }
  }

 private:
  /// The second value of one name meets the second of the other report.
  void put(ValidationPart part, const QString& name, const ComparedValue& value, bool is_other) {
    const Key key{part, name, seen_[{part, name}]++};
    const auto known = at_.find(key);
    if (known != at_.end()) {
      auto& row = out_.rows[known->second];
      (is_other ? row.other : row.value) = value;
      return;
    }
    ValidationRow row;
    row.part = part;
    row.name = name;
    row.placement = placement_;
    if (part == ValidationPart::operators)
      if (const auto op = operators_.find(value.name); op != operators_.end()) row.op = op->second;
    (is_other ? row.other : row.value) = value;
    at_.emplace(key, out_.rows.size());
    out_.rows.push_back(std::move(row));
  }

  using Key = std::tuple<ValidationPart, QString, int>;
  ValidationContent& out_;
  std::map<std::string, OperatorId> operators_;
  std::map<std::pair<ValidationPart, QString>, int> seen_;
  std::map<Key, std::size_t> at_;
  bool placement_ = false;
};

/// The reason, and what would have made it a proof.
QString why_not_compared(const ValidationReport& report) {
  for (const std::string& note : report.notes)
    if (note.starts_with("not proven: ")) return capitalised(in_window_words(note));
  if (report.mode == "slice")
    return QObject::tr(
        "Not compared with the unpartitioned step: of one device's part nobody else's are known. Run the whole plan to "
        "compare results");
  return QObject::tr(
      "Not compared with the unpartitioned step: that was switched off for this run. Switch Compare results on and run "
      "it again");
}

void judge(ValidationContent& out) {
  const auto& numerics = out.report->numerics;
  if (!numerics) {
    out.verdict = why_not_compared(*out.report);
    return;
  }
  if (numerics->holds()) {
    out.verdict_good = true;
    const bool same = numerics->loss_error == 0 && numerics->gradient_error == 0;
    out.verdict = same ? QObject::tr("Loss and gradients are those of the unpartitioned step, to the last bit (%1)")
                             .arg(to_qt(numerics->precision))
                       : QObject::tr("Loss and gradients within %1 of the unpartitioned step (%2)")
                             .arg(rounding_text(std::max(numerics->loss_error, numerics->gradient_error)),
                                  to_qt(numerics->precision));
    if (!numerics->rounding) return;
    const StepRounding& rounding = *numerics->rounding;
    out.verdict += (rounding.holds() ? QObject::tr("; in %1 off by what rounding explains, gradients by %2")
                                     : QObject::tr("; in %1 off by more than rounding explains, gradients by %2"))
                       .arg(to_qt(rounding.precision), rounding_text(rounding.gradient_error));
    return;
  }
  out.verdict_bad = true;
  const bool loss = numerics->loss_error > numerics->tolerance;
  out.verdict = QObject::tr("%1 from the unpartitioned step by %2, tolerance %3")
                    .arg(loss ? QObject::tr("Loss differs") : QObject::tr("Gradients differ"),
                         rounding_text(loss ? numerics->loss_error : numerics->gradient_error),
                         rounding_text(numerics->tolerance));
  if (!numerics->where.empty()) out.verdict += QObject::tr(", most at %1").arg(to_qt(numerics->where));
}

}  // namespace

double ValidationRow::largest() const { return std::max(longest(value), longest(other)); }

QString part_text(ValidationPart part, bool placement) {
  switch (part) {
    case ValidationPart::step: return QObject::tr("Step");
    case ValidationPart::memory:
      return placement ? QObject::tr("Memory by device") : QObject::tr("Memory of one device");
    case ValidationPart::sent: return QObject::tr("Exchange");
    case ValidationPart::operators: return QObject::tr("Operators");
    case ValidationPart::collectives: return placement ? QObject::tr("Transfers") : QObject::tr("Collectives");
  }
  return {};
}

QString backend_text(const ValidationReport& report) {
  QStringList words;
  if (report.backend == "cpu")
    words << counted(report.ranks, QObject::tr("1 CPU rank"), QObject::tr("%1 CPU ranks"));
  else
    words << (report.backend != "cuda"                           ? to_qt(report.backend)
              : report.ranks > 1 && report.cores == report.ranks ? QObject::tr("%1 CUDA GPUs").arg(report.ranks)
                                                                 : QObject::tr("CUDA GPU"));
  if (report.backend == "cpu" && report.cores > 0)
    words.back() += QObject::tr(" on %1").arg(counted(report.cores, QObject::tr("1 core"), QObject::tr("%1 cores")));
  if (!report.engine.empty()) words << to_qt(report.engine);
  if (report.mode == "slice") words << QObject::tr("one device's part alone");
  return words.join(QStringLiteral(", "));
}

QString report_date_text(const ValidationReport& report) {
  const QDateTime date = QDateTime::fromString(to_qt(report.date), Qt::ISODate);
  return date.isValid() ? date.toLocalTime().toString(QStringLiteral("yyyy-MM-dd HH:mm")) : to_qt(report.date);
}

QString value_text(const ValidationRow& row, double value) {
  // Nothing in the unit of what stands beside it.
  if (value == 0 && !row.bytes()) return QStringLiteral("0") + QChar(0x00A0) + time_unit_for(row.largest()).name;
  return row.bytes() ? memory_text(static_cast<std::int64_t>(std::llround(std::clamp(value, 0.0, 9e18))))
                     : time_text(value);
}

QString figures_text(const ValidationRow& row, const std::optional<ComparedValue>& value) {
  if (!value) return QObject::tr("not in this report");
  const QString predicted = value_text(row, value->predicted);
  if (!value->measured) return predicted;
  const QString measured = value_text(row, *value->measured);
  // One unit is enough for both.
  const QString unit = measured.section(QChar(0x00A0), -1);
  return (predicted.section(QChar(0x00A0), -1) == unit ? predicted.section(QChar(0x00A0), 0, 0) : predicted) +
         QStringLiteral(" \u2192 ") + measured;
}

QString error_text(const ComparedValue& value, bool bytes) {
  if (!value.measured) return QObject::tr("modelled");
  const auto error = value.error();
  if (!error) return {};
  if (std::abs(*error) < 5e-4) return QStringLiteral("0.0%");
  // Beyond ten times, a factor says more than percents.
  const double ratio = 1 + *error, factor = ratio < 1 && ratio > 0 ? 1 / ratio : ratio;
  const QString size =
      factor >= 9.995 ? kTimes + grouped_number(factor, 0) : percent_text(std::abs(*error)).remove(u'+');
  if (bytes) return (*error > 0 ? QObject::tr("%1 too high") : QObject::tr("%1 too low")).arg(size);
  return (*error > 0 ? QObject::tr("%1 too slow") : QObject::tr("%1 too fast")).arg(size);
}

std::string in_window_words(std::string text) {
  for (const std::string_view option : {" (--budget of turnpoint-cli validate)", " (--budget)"})
    if (const auto at = text.find(option); at != std::string::npos) text.erase(at, option.size());
  return text;
}

QString source_text(const ComparedValue& value) {
  return value.measured ? QObject::tr("measured") : QObject::tr("modelled");
}

ValidationContentPtr make_validation_content(const ValidationReportPtr& report, const ValidationReportPtr& other,
                                             const ModelPtr& model) {
  if (!report) return nullptr;
  auto out = std::make_shared<ValidationContent>();
  out->report = report;
  out->other = other;
  out->title = to_qt(report->plan);
  QString hardware = to_qt(report->hardware);
  if (hardware.contains(u'/')) hardware = hardware.section(u'/', -1);
  QStringList facts{to_qt(report->model), hardware, backend_text(*report), report_date_text(*report)};
  if (report->calibrated) facts << QObject::tr("calibrated");
  facts.removeAll(QString());
  out->facts = facts.join(QStringLiteral(" \u00b7 "));
  if (other) {
    out->other_title = to_qt(other->plan);
    if (other->calibrated != report->calibrated)
      out->other_title += other->calibrated ? QObject::tr(", calibrated") : QObject::tr(", not calibrated");
    out->other_title += QStringLiteral(", ") + report_date_text(*other);
  }
  judge(*out);
  RowBuilder rows(*out, model && model->name == report->model ? model : nullptr);
  rows.add(*report, false);
  if (other) rows.add(*other, true);
  rows.finish();
  if (!report->losses.empty())
    out->notes << QObject::tr("loss %1 in the first of %2 steps, %3 in the last")
                      .arg(report->losses.front())
                      .arg(report->losses.size())
                      .arg(report->losses.back());
  for (const auto& note : report->notes) out->notes << to_qt(in_window_words(note));
  if (const std::string* why = report->disturbed()) {
    // The reason is what counts; how much it made up stands among the notes.
    const auto reason = why->find(kRanksWaited);
    out->disturbed = capitalised(reason == std::string::npos ? *why : why->substr(reason));
  }
  return out;
}

}  // namespace turnpoint::views
