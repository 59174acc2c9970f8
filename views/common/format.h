// SPDX-License-Identifier: Apache-2.0
// Numbers as the window writes them: unit after a no-break space, U+2212, U+00D7, thin
// spaces between thousands.
#pragma once

#include <QString>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace turnpoint::views {

inline QString to_qt(std::string_view text) {
  return QString::fromUtf8(text.data(), static_cast<qsizetype>(text.size()));
}

/// A gap that is less is told as "below 0.01%".
constexpr double kLeastGap = 5e-5;

QString memory_text(std::int64_t bytes);             ///< "9.6 GiB", "148 MiB"
QString time_text(double seconds);                   ///< "812 ms", "1 012 ms", "12.4 s"
QString factor_text(double factor);                  ///< "x0.50" with a multiplication sign
QString percent_text(double fraction);               ///< signed, "+4.1%"
QString gap_text(double gap);                        ///< "0.31%", "below 0.01%", "33.8%"
QString share_text(double fraction);                 ///< unsigned whole percent, "13%"
/// Of what is cut in two, in the digits that it needs, two decimals at most: "52.5%", "50%". This and portion_text(1 -
/// fraction) are 100% together.
QString portion_text(double fraction);
/// Parts of one whole in whole per cents that are 100% together; of nothing no text.
std::vector<QString> shares_text(const std::vector<double>& parts);
QString progress_text(double fraction);              ///< the same of work under way: below 100% until it is done
QString bandwidth_text(double bytes_per_s);          ///< "65 GB/s"
QString latency_text(double seconds);                ///< "5.0 us" with a micro sign
QString speed_text(double flop_per_s);               ///< "125 TFLOP/s"
QString search_time_text(double seconds);            ///< "0.84 s", "38 ms" below 0.1 s
/// Fixed decimals, thousands apart by a thin space.
QString grouped_number(double value, int decimals);
/// A sentence of the core's, which knows no thin spaces: the same between the thousands of its bytes and seconds.
QString with_groups(QString words);

/// One unit for a whole block: milliseconds below 10 s, else seconds; microseconds where all is below a millisecond.
struct TimeUnit {
  double per_second = 1e3;
  QString name = QStringLiteral("ms");
};
TimeUnit time_unit_for(double largest_s);
QString time_in(const TimeUnit& unit, double seconds);  ///< number without the unit, three significant digits

/// One unit for a whole block: the largest of B, KiB ... TiB that the largest number of bytes reaches.
struct ByteUnit {
  double bytes = 1048576.0;
  QString name = QStringLiteral("MiB");
};
ByteUnit byte_unit_for(double largest_bytes);
QString bytes_in(const ByteUnit& unit, double bytes);  ///< number without the unit
/// With the unit, in that of `largest`: for figures that stand side by side.
QString bytes_beside(double bytes, double largest);
QString time_beside(double seconds, double largest);

}  // namespace turnpoint::views
