// SPDX-License-Identifier: Apache-2.0
// Scenarios of task graphs that were opened as they are: the graph takes the place of a model, and its own file may
// take the place of the hardware.
#pragma once

#include <string>

#include "core/base/expected.h"
#include "core/scenario/scenario.h"

namespace turnpoint {

/// Hardware of a task graph that is placed on the links and devices of its own file.
inline constexpr const char* kFileHardware = "as-file";
/// Devices where neither the file nor anybody else says how many.
inline constexpr int kDefaultPlacementDevices = 8;

/// The devices and links that the graph's file speaks of as a cluster of one node; `devices` 0: as many as the file
/// intends, else as it describes, else kDefaultPlacementDevices. Links that differ are shown by the slowest. A device
/// without a stated memory has kUnlimitedBytes. Usage error: more devices than the file describes.
Expected<ClusterPtr> cluster_of_file(const TaskGraph& tasks, int devices);

/// `hardware` empty or kFileHardware: as the file says, and `cluster` is not read; else on the cluster, cut to
/// settings.devices.
Expected<ScenarioPtr> make_task_scenario(TaskGraphPtr tasks, ModelPtr model, const ClusterPtr& cluster,
                                         const std::string& hardware, const Settings& settings);

/// Links between the cluster's devices under what-if factors: devices of one node send over its inner links, others at
/// the pace of the slower node's network.
TaskLinks links_of(const Cluster& cluster, const WhatIf& factors);

/// How many times as fast as the cluster's slowest devices a task of a file runs on this one at least: what its
/// arithmetic in the scenario's precision or its memory bandwidth gains, whichever is less, since a file does not say
/// which of them a task waits for. 1 where all devices are alike.
double task_speed(const Scenario& scenario, const DeviceType& device);
/// One sentence for people on whose times the file's are taken for, and how much faster others are; empty where all
/// devices are alike or the file's own.
std::string describe_task_speeds(const Scenario& scenario);

/// The opened task graph with the links and devices that the scenario puts it on. Times are those of the file, which the
/// slowest of unlike devices are taken to have (task_speed), divided by the device speed factor; transfers whose
/// seconds the file states itself are divided by the bandwidth factor within nodes, whatever the hardware. Of the file's own links both bandwidths of the scenario mean the one within.
/// Only for a scenario with `tasks`.
TaskGraphPtr placed_tasks(const Scenario& scenario);

}  // namespace turnpoint
