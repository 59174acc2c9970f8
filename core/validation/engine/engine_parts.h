// SPDX-License-Identifier: Apache-2.0
// What differs from engine to engine of the programs that run plans (engine_programs.h): one part defines run(), which
// says the result, and finds progress(), say(), loaded(), Refused, JOB, FOLDER, RANK, RANKS and LOCAL.
#pragma once

#include <string_view>

namespace turnpoint {

std::string_view pytorch_part();
std::string_view jax_part();
/// collectives_of() and what it takes: the collectives of a program that XLA has compiled, from its text.
std::string_view compiled_text_part();

}  // namespace turnpoint
