// SPDX-License-Identifier: Apache-2.0
// Colour and shape of each method, by its place in the registry (core/search/registry.h): nothing to add for a new one.
#pragma once

#include <QColor>
#include <cstddef>
#include <string>

namespace turnpoint::views {

enum class MethodShape {
  circle, square, tilted_square, diamond, upright_cross,
  triangle_up, triangle_down, triangle_right, triangle_left,
  pentagon_down, hexagon, tilted_hexagon, star_of_four, star_of_five, star_of_six,
  bow_tie, hourglass, ring, three_points_up, three_points_down, post, plank, tee, tee_down, half_disc_up, half_disc_down,
};

struct MethodStyle {
  QColor light, dark;  ///< in either theme
  MethodShape shape = MethodShape::circle;
  double radius = 5;        ///< of its markers in the chart, in logical pixels
  double line_width = 1.5;  ///< of its line's swatch
};

/// Of the method at `place` among those that split operators, or among those that place tasks. Places are told apart for
/// 30 methods, whatever is added to either list, by colour or shape, for colour-blind eyes as well
/// (tests/views/method_style_test.cpp).
MethodStyle method_style(bool places_tasks, std::size_t place);
/// By registry name; of variants ("fsdp:zero=2"), which their labels tell apart, the method's. Null: no such method.
const MethodStyle* find_method_style(const std::string& name);

}  // namespace turnpoint::views
