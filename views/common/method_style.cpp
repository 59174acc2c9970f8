// SPDX-License-Identifier: Apache-2.0
#include "views/common/method_style.h"

#include <iterator>
#include <map>

#include "core/search/registry.h"

namespace turnpoint::views {

namespace {

using Shape = MethodShape;

QColor opaque(unsigned rgb) { return QColor::fromRgb(QRgb(0xff000000u | rgb)); }

struct Pair {
  unsigned light, dark;
};

constexpr Pair kBlue{0x1F5FA8, 0x6FAAE8}, kGrey{0x4A5057, 0xC3C9CF}, kTeal{0x0B7F6B, 0x45C2A6},
    kOrange{0xB85C00, 0xE8944A}, kPink{0xA8406A, 0xE585AE}, kViolet{0x6D4FB0, 0xB09AF0}, kPale{0x8A929A, 0x7C858D},
    kGreen{0x4C7A12, 0x9CC95B}, kRose{0x8A3B12, 0xE0A0A0}, kRed{0xBF3B30, 0xF0857A}, kDull{0x8F5A52, 0xC9968F},
    kGold{0x8C6A00, 0xD9B84A};

struct Fixed {
  Pair color;
  Shape shape;
  double radius = 5, line_width = 1.5;
};

// The first of either list, chosen by hand.
constexpr Fixed kSplitting[] = {
    {kBlue, Shape::circle, 2.3, 2.2}, {kGrey, Shape::circle},        {kTeal, Shape::triangle_up},
    {kOrange, Shape::square, 2.2},    {kPink, Shape::triangle_down}, {kViolet, Shape::square},
    {kPale, Shape::circle},           {kPale, Shape::half_disc_up},  {kGreen, Shape::diamond},
    {kRose, Shape::upright_cross},  // made by hand
};
constexpr Fixed kPlacing[] = {
    {kRed, Shape::hexagon},          {kDull, Shape::tilted_hexagon},  {kTeal, Shape::triangle_right},
    {kViolet, Shape::triangle_left}, {kOrange, Shape::tilted_square}, {kGreen, Shape::pentagon_down},
    {kPink, Shape::star_of_four},    {kGold, Shape::star_of_six},     {kGrey, Shape::upright_cross},
};

// All further ones: shapes that those do not have, in turn; warm and cool colours alternate, so that of an odd number
// of shapes each comes in both.
constexpr Shape kFurther[] = {Shape::bow_tie,           Shape::star_of_five, Shape::hourglass,     Shape::ring,
                              Shape::three_points_up,   Shape::post,         Shape::tee,           Shape::plank,
                              Shape::three_points_down, Shape::tee_down,     Shape::half_disc_down};
constexpr Pair kWarm[] = {kGold, {0x6B4226, 0xC9A27E}, {0x5E6B0B, 0xC2CC5A}};
constexpr Pair kCool[] = {{0x0A7EA8, 0x5CC3E8}, {0x3B3FA0, 0x9AA0F5}, {0x9B2D8F, 0xE38AD8}};

MethodStyle made(const Fixed& fixed) {
  return {opaque(fixed.color.light), opaque(fixed.color.dark), fixed.shape, fixed.radius, fixed.line_width};
}

MethodStyle further(std::size_t index) {
  const auto& colors = index % 2 == 0 ? kWarm : kCool;
  return made({colors[index / 2 % std::size(colors)], kFurther[index % std::size(kFurther)]});
}

}  // namespace

MethodStyle method_style(bool places_tasks, std::size_t place) {
  // The two lists grow on their own: each has every second of the further styles.
  if (places_tasks)
    return place < std::size(kPlacing) ? made(kPlacing[place]) : further((place - std::size(kPlacing)) * 2 + 1);
  return place < std::size(kSplitting) ? made(kSplitting[place]) : further((place - std::size(kSplitting)) * 2);
}

const MethodStyle* find_method_style(const std::string& name) {
  static const auto kStyles = [] {
    std::map<std::string, MethodStyle> styles;
    std::size_t placing = 0, splitting = 0;
    for (const Method& method : methods())
      styles.emplace(method.name, method_style(method.places, method.places ? placing++ : splitting++));
    return styles;
  }();
  const auto found = kStyles.find(name.substr(0, name.find(':')));
  return found == kStyles.end() ? nullptr : &found->second;
}

}  // namespace turnpoint::views
