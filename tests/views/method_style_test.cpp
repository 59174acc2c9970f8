// SPDX-License-Identifier: Apache-2.0
// Methods are told apart by colour and shape together: for eyes that see all colours and for those that lack one kind
// of cones, in both themes, whichever of the two lists of methods grows.
#include <QImage>
#include <QPainter>
#include <QtTest>
#include <array>
#include <cmath>

#include "core/search/registry.h"
#include "views/common/method_marks.h"
#include "views/common/theme_colors.h"

using namespace turnpoint;
using namespace turnpoint::views;

namespace {

using Color = std::array<double, 3>;

double linear(double value) { return value <= 0.04045 ? value / 12.92 : std::pow((value + 0.055) / 1.055, 2.4); }

Color linear_rgb(const QColor& color) { return {linear(color.redF()), linear(color.greenF()), linear(color.blueF())}; }

/// What these eyes see instead: Machado, Oliveira, Fernandes (2009), at full severity.
enum class Eyes { all, no_long, no_middle };
Color seen(const Color& color, Eyes eyes) {
  static constexpr double kProtan[3][3] = {{0.152286, 1.052583, -0.204868},
                                           {0.114503, 0.786281, 0.099216},
                                           {-0.003882, -0.048116, 1.051998}},
                          kDeutan[3][3] = {{0.367322, 0.860646, -0.227968},
                                           {0.280085, 0.672501, 0.047413},
                                           {-0.011820, 0.042940, 0.968881}};
  if (eyes == Eyes::all) return color;
  const auto& matrix = eyes == Eyes::no_long ? kProtan : kDeutan;
  Color result{};
  for (std::size_t i = 0; i < 3; ++i)
    for (std::size_t j = 0; j < 3; ++j) result[i] += matrix[i][j] * color[j];
  return result;
}

/// In OKLab, where equal distances look about equally far: black and white are 1 apart.
Color oklab(Color c) {
  for (double& value : c) value = std::clamp(value, 0.0, 1.0);
  const double l = std::cbrt(0.4122214708 * c[0] + 0.5363325363 * c[1] + 0.0514459929 * c[2]),
               m = std::cbrt(0.2119034982 * c[0] + 0.6806995451 * c[1] + 0.1073969566 * c[2]),
               s = std::cbrt(0.0883024619 * c[0] + 0.2817188376 * c[1] + 0.6299787005 * c[2]);
  return {0.2104542553 * l + 0.7936177850 * m - 0.0040720468 * s,
          1.9779984951 * l - 2.4285922050 * m + 0.4505937099 * s,
          0.0259040371 * l + 0.7827717662 * m - 0.8086757660 * s};
}

/// The least of both themes and all eyes.
double color_distance(const MethodStyle& a, const MethodStyle& b) {
  double least = 1e9;
  for (const Eyes eyes : {Eyes::all, Eyes::no_long, Eyes::no_middle})
    for (const auto& [one, other] : {std::pair(a.light, b.light), std::pair(a.dark, b.dark)}) {
      const Color x = oklab(seen(linear_rgb(one), eyes)), y = oklab(seen(linear_rgb(other), eyes));
      least = std::min(least, std::hypot(x[0] - y[0], x[1] - y[1], x[2] - y[2]));
    }
  return least;
}

std::vector<bool> covered(MethodShape shape) {
  QImage image(96, 96, QImage::Format_Grayscale8);
  image.fill(Qt::white);
  QPainter painter(&image);
  painter.translate(48, 48);
  painter.fillPath(shape_path(shape, 30), Qt::black);
  painter.end();
  std::vector<bool> pixels;
  for (int y = 0; y < image.height(); ++y)
    for (int x = 0; x < image.width(); ++x) pixels.push_back(qGray(image.pixel(x, y)) < 128);
  return pixels;
}

/// The part of what two shapes cover together that only one of them covers.
double shape_distance(MethodShape a, MethodShape b) {
  const auto one = covered(a), other = covered(b);
  int both = 0, either = 0;
  for (std::size_t i = 0; i < one.size(); ++i) both += one[i] && other[i], either += one[i] || other[i];
  return 1 - double(both) / either;
}

// Of either what is enough by itself.
constexpr double kEnoughColor = 0.06, kEnoughShape = 0.25;

double distance(const MethodStyle& a, const MethodStyle& b) {
  return std::hypot(color_distance(a, b) / kEnoughColor, shape_distance(a.shape, b.shape) / kEnoughShape);
}

struct Placed {
  bool places_tasks;
  std::size_t place;
  QString name() const { return QStringLiteral("%1 %2").arg(places_tasks ? "placing" : "splitting").arg(place); }
  MethodStyle style() const { return method_style(places_tasks, place); }
};

double contrast(const QColor& a, const QColor& b) {
  const auto light = [](const QColor& color) {
    const Color c = linear_rgb(color);
    return 0.2126 * c[0] + 0.7152 * c[1] + 0.0722 * c[2];
  };
  const double x = light(a), y = light(b);
  return (std::max(x, y) + 0.05) / (std::min(x, y) + 0.05);
}

}  // namespace

class MethodStyleTest : public QObject {
  Q_OBJECT

 private slots:
  void thirty_methods_are_told_apart() {
    // Eleven beyond those whose marks were chosen by hand, of whichever kind.
    const std::size_t splitting = 10, placing = 9;
    std::vector<Placed> all;
    for (std::size_t i = 0; i < splitting + 11; ++i) all.push_back({false, i});
    for (std::size_t i = 0; i < placing + 11; ++i) all.push_back({true, i});
    double least = 1e9, least_of_further = 1e9;
    for (std::size_t i = 0; i < all.size(); ++i)
      for (std::size_t j = i + 1; j < all.size(); ++j) {
        const auto &a = all[i], &b = all[j];
        // Layers by hand are a marker where Mesh-TensorFlow is a line.
        if (!a.places_tasks && b.places_tasks && a.place == 3 && b.place == 4) continue;
        const double between = distance(a.style(), b.style());
        const bool further =
            a.place >= (a.places_tasks ? placing : splitting) || b.place >= (b.places_tasks ? placing : splitting);
        QVERIFY2(between >= (further ? 1.0 : 0.65),
                 qPrintable(QStringLiteral("%1 and %2: %3").arg(a.name(), b.name()).arg(between)));
        (further ? least_of_further : least) = std::min(further ? least_of_further : least, between);
      }
    qInfo("least distance %.2f, of further methods %.2f", least, least_of_further);
  }

  void further_colours_can_be_read_in_both_themes() {
    for (const bool placing : {false, true})
      for (std::size_t i = 9 + (placing ? 0 : 1); i < 20; ++i) {
        const MethodStyle style = method_style(placing, i);
        const auto text = qPrintable(Placed({placing, i}).name());
        QVERIFY2(contrast(style.light, theme_colors(make_palette(false)).base) >= 4.5, text);
        QVERIFY2(contrast(style.dark, theme_colors(make_palette(true)).base) >= 4.5, text);
      }
  }

  void a_method_is_drawn_by_its_place_and_a_variant_like_its_method() {
    const ThemeColors& light = theme_colors(make_palette(false));
    QCOMPARE(light.method(default_method().name), light.accent);
    QCOMPARE(theme_colors(make_palette(true)).method(default_method().name), theme_colors(make_palette(true)).accent);
    QCOMPARE(light.method("fsdp"), QColor(0x6D, 0x4F, 0xB0));
    QCOMPARE(light.method("fsdp:zero=2"), light.method("fsdp"));
    QCOMPARE(method_shape(QStringLiteral("manual:tp=2"), 5), shape_path(MethodShape::upright_cross, 5));
    QCOMPARE(light.method("no-such-method"), light.axis);
    QCOMPARE(method_shape(QStringLiteral("no-such-method"), 5), shape_path(MethodShape::circle, 5));
  }
};

QTEST_MAIN(MethodStyleTest)
#include "method_style_test.moc"
