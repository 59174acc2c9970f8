// SPDX-License-Identifier: Apache-2.0
// Files named inside other files: found again from any folder, and after both were moved together.
#pragma once

#include <filesystem>
#include <string>

namespace turnpoint {

/// `named` with the whole path where it names a file or folder that is there, what follows a question mark kept
/// (config.json?as=llama); anything else (builtin:NAME, a preset, a file that is gone) as it is.
std::string absolute_name(const std::string& named);

/// `named` as a file in `folder` writes it: relative where it lies in that folder or below, else unchanged.
std::string name_from(const std::filesystem::path& folder, const std::string& named);

/// What a file in `folder` means by `named`: in that folder, as it stands, or a file of its last name beside it, the
/// first of these that is there, as an absolute path. Where none is: `named`, made absolute in `folder` if relative.
/// Names that are no paths are returned as they are.
std::string resolve_name(const std::filesystem::path& folder, const std::string& named);

}  // namespace turnpoint
