// SPDX-License-Identifier: Apache-2.0
// Explanations of points in sentences, for the command line and the window, and as a turnpoint/explanation@1 document.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <vector>

#include "core/search/explain/forced_answer.h"
#include "core/search/explain/point_story.h"

namespace turnpoint {

/// "3.5 % (28 ms) slower", "2.5 times as long (1.5 s more)", "as fast".
std::string slower_words(double seconds, double than_seconds);
/// What was asked, what it costs and how certain that is, a sentence or an indented line each.
std::vector<std::string> sentences(const ForcedAnswer& answer, const Result& result);
/// The same, then where the difference comes from and what changes.
std::vector<std::string> describe(const ForcedAnswer& answer, const Result& result);
/// What the point is, the nearest named strategy beside it, and what more would be worth.
std::vector<std::string> describe(const PointStory& story, const Result& result);
/// A point beside another: of another method or of another scenario, `second_of` says which.
std::vector<std::string> sentences(const Result& first_result, std::size_t first, const Result& second_result,
                                   std::size_t second, const std::string& second_of);
/// Two points of a result and their difference.
std::vector<std::string> describe(const PlanDifference& difference, const Result& result, std::size_t first,
                                  std::size_t second);
/// The lines of a difference: a table by layer, and what changes.
std::vector<std::string> describe(const PlanDifference& difference);

nlohmann::json to_json(const PlanDifference& difference);
/// What every turnpoint/explanation@1 begins with: whose point is told, its cost and what it is in words.
nlohmann::json explanation_head(const Result& result, std::size_t index, const std::string& words);
/// turnpoint/explanation@1.
nlohmann::json explanation_json(const ForcedAnswer& answer, const Result& result);
nlohmann::json explanation_json(const PointStory& story, const Result& result);
/// `point` is the first; the difference is the second less the first.
nlohmann::json explanation_json(const PlanDifference& difference, const Result& result, std::size_t first,
                                std::size_t second);

}  // namespace turnpoint
