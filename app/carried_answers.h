// SPDX-License-Identifier: Apache-2.0
// Answers as a session carries them: the figures of all points, without the plans behind them. They are drawn at once
// where the question is still the same, and the search that finds the plans again follows.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/base/expected.h"
#include "core/plan/result.h"

namespace turnpoint::app {

/// An exact answer to `question` (question_of() in app/kept_answers.h). Read back, the result has neither a scenario
/// nor plans.
struct CarriedAnswer {
  std::string question;
  ResultPtr result;
};

/// Whether an answer of this kind can do without its plans: a placement's figures without its schedule say little.
bool can_be_carried(const Result& result);

/// Binary figures in base64: a frontier may have some 100 000 points.
nlohmann::json write_answer(const CarriedAnswer& answer);
/// Bad input naming `where`: a missing field, figures that are no figures, points that do not rise in memory. An answer
/// of another version of the program is not read: null result.
Expected<CarriedAnswer> read_answer(const nlohmann::json& object, const std::string& where);

}  // namespace turnpoint::app
