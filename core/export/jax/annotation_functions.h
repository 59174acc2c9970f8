// SPDX-License-Identifier: Apache-2.0
// What is the same in every file of annotations: its records, and the functions that lay the user's own model out.
#pragma once

#include <string_view>

namespace turnpoint::jax {

std::string_view annotation_records();    ///< imports and the records of the tables
std::string_view annotation_functions();  ///< behind the tables

}  // namespace turnpoint::jax
