// SPDX-License-Identifier: Apache-2.0
#include "views/scenario/factor_box.h"

#include <QWheelEvent>
#include <cmath>
#include <utility>

#include "core/base/text.h"
#include "views/common/format.h"

namespace turnpoint::views {

QString quantity_text(FactorQuantity quantity, double value) {
  switch (quantity) {
    case FactorQuantity::bandwidth: return bandwidth_text(value);
    case FactorQuantity::latency: return latency_text(value);
    case FactorQuantity::memory: return memory_text(static_cast<std::int64_t>(std::llround(value)));
    case FactorQuantity::speed: return speed_text(value);
  }
  return {};
}

std::optional<double> parse_factor(const QString& text, FactorQuantity quantity, double baseline) {
  QString clean;
  for (const QChar c : text)
    if (!c.isSpace()) clean += c == QChar(0x03BC) ? QChar(0x00B5) : c;  // both mu signs mean micro
  const bool factor = clean.startsWith(QChar(0x00D7)) || clean.startsWith(u'x') || clean.startsWith(u'*');
  if (factor) clean.remove(0, 1);
  double scale = 1;
  bool absolute = false;
  if (!factor) {
    using Unit = std::pair<const char16_t*, double>;
    static constexpr Unit kBandwidth[] = {{u"TB/s", 1e12}, {u"GB/s", 1e9}, {u"MB/s", 1e6}, {u"Gbit/s", 1.25e8}};
    static constexpr Unit kLatency[] = {{u"\u00b5s", 1e-6}, {u"us", 1e-6}, {u"ms", 1e-3}, {u"ns", 1e-9}, {u"s", 1}};
    static constexpr Unit kMemory[] = {
        {u"TiB", 1099511627776.0}, {u"GiB", 1073741824.0}, {u"MiB", 1048576.0}, {u"GB", 1e9}, {u"MB", 1e6}};
    static constexpr Unit kSpeed[] = {{u"PFLOP/s", 1e15}, {u"TFLOP/s", 1e12}, {u"GFLOP/s", 1e9}, {u"TFLOPS", 1e12}};
    const auto try_units = [&](const auto& units) {
      for (const auto& [suffix, value] : units) {
        const QString unit = QString::fromUtf16(suffix);
        if (!clean.endsWith(unit, Qt::CaseInsensitive)) continue;
        clean.chop(unit.size());
        scale = value;
        absolute = true;
        return;
      }
    };
    switch (quantity) {
      case FactorQuantity::bandwidth: try_units(kBandwidth); break;
      case FactorQuantity::latency: try_units(kLatency); break;
      case FactorQuantity::memory: try_units(kMemory); break;
      case FactorQuantity::speed: try_units(kSpeed); break;
    }
  }
  if (clean.count(u',') == 1 && !clean.contains(u'.')) clean.replace(u',', u'.');
  const auto number = parse_double(clean.toStdString());
  if (!number || *number <= 0) return std::nullopt;
  if (!absolute) return *number;
  if (baseline <= 0) return std::nullopt;
  return *number * scale / baseline;
}

FactorBox::FactorBox(FactorQuantity quantity, QWidget* parent) : QDoubleSpinBox(parent), quantity_(quantity) {
  setDecimals(9);  // what the box holds, not what it shows: an absolute value must survive
  setRange(0.01, 100);
  setKeyboardTracking(false);
  setAlignment(Qt::AlignRight);
  setCorrectionMode(QAbstractSpinBox::CorrectToPreviousValue);
  setFocusPolicy(Qt::StrongFocus);
  setValue(1);
}

QString FactorBox::textFromValue(double value) const { return factor_text(value); }

double FactorBox::valueFromText(const QString& text) const {
  // The shown text is rounded; reading it back must not move the value.
  if (text == textFromValue(value())) return value();
  return parse_factor(text, quantity_, baseline_).value_or(value());
}

QValidator::State FactorBox::validate(QString& text, int&) const {
  if (text == textFromValue(value())) return QValidator::Acceptable;
  const auto factor = parse_factor(text, quantity_, baseline_);
  return factor && *factor >= minimum() && *factor <= maximum() ? QValidator::Acceptable : QValidator::Intermediate;
}

void FactorBox::stepBy(int steps) { setValue(value() * std::pow(1.05, steps)); }

void FactorBox::wheelEvent(QWheelEvent* event) { event->ignore(); }

}  // namespace turnpoint::views
