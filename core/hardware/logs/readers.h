// SPDX-License-Identifier: Apache-2.0
// One reader per kind of measured log. Each takes valid UTF-8 without terminal colours, or a parsed JSON document.
#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "core/hardware/logs/measured_log.h"

namespace turnpoint::logs {

/// True if the text has a header or a row of the nccl-tests table.
bool looks_like_nccl_tests(std::string_view text);
Expected<MeasuredLog> read_nccl_tests(std::string_view text, const std::string& path);
Expected<MeasuredLog> read_nccl_tests_json(const nlohmann::json& document, const std::string& path);

Expected<MeasuredLog> read_nvbandwidth(std::string_view text, const std::string& path);
Expected<MeasuredLog> read_nvbandwidth_json(const nlohmann::json& document, const std::string& path);

/// True if a heading of devices is followed by a row of links, maybe after a prompt or other text.
bool looks_like_smi_topology(std::string_view text);
Expected<MeasuredLog> read_smi_topology(std::string_view text, const std::string& path);
Expected<MeasuredLog> read_nccl_topology(std::string_view text, const std::string& path);

bool looks_like_galvatron(const nlohmann::json& document);
Expected<MeasuredLog> read_galvatron(const nlohmann::json& document, const std::string& path);
bool looks_like_nnscaler(const nlohmann::json& document);
Expected<MeasuredLog> read_nnscaler(const nlohmann::json& document, const std::string& path);
Expected<MeasuredLog> read_gpu_specs(const nlohmann::json& document, const std::string& path);

Expected<MeasuredLog> read_vidur_collectives(std::string_view text, const std::string& path);
Expected<MeasuredLog> read_vidur_compute(std::string_view text, const std::string& path);
Expected<MeasuredLog> read_deepbench(std::string_view text, const std::string& path);

Expected<MeasuredLog> read_aceso_operators(std::string_view text, const std::string& path);
Expected<MeasuredLog> read_aceso_collectives(std::string_view text, const std::string& path);
Expected<MeasuredLog> read_aceso_p2p(std::string_view text, const std::string& path);

/// The collective that an nccl-tests program or a file name speaks of; nullopt: none, or one without a place in a
/// profile (gather, scatter, reduce).
std::optional<Collective> collective_in_name(std::string_view name);

}  // namespace turnpoint::logs
