// SPDX-License-Identifier: Apache-2.0
// The factor beside a what-if slider: takes "0.5", "x0.5" or an absolute value such as "65 GB/s".
#pragma once

#include <QDoubleSpinBox>
#include <optional>

namespace turnpoint::views {

/// What an absolute value means; the number at x1 is the baseline in base units (bytes/s, seconds, bytes, FLOP/s).
enum class FactorQuantity { bandwidth, latency, memory, speed };

QString quantity_text(FactorQuantity quantity, double value);
/// "0.5", "x0.5", "65 GB/s" to a factor; nullopt where it is none or not positive.
std::optional<double> parse_factor(const QString& text, FactorQuantity quantity, double baseline);

class FactorBox : public QDoubleSpinBox {
  Q_OBJECT
 public:
  explicit FactorBox(FactorQuantity quantity, QWidget* parent = nullptr);
  void set_baseline(double baseline) { baseline_ = baseline; }

  QString textFromValue(double value) const override;
  double valueFromText(const QString& text) const override;
  QValidator::State validate(QString& text, int& position) const override;
  void stepBy(int steps) override;

 protected:
  void wheelEvent(QWheelEvent* event) override;

 private:
  FactorQuantity quantity_;
  double baseline_ = 0;
};

}  // namespace turnpoint::views
