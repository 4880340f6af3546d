#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Policers where they stand: each place that names one is an attachment with counts of its own, and with a bucket of
// its own unless the policer is shared. One list of them, for the snapshot and for telemetry.
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "control/registry.h"
#include "pipeline/snapshot.h"
#include "session/table.h"

namespace cachewire::control {

struct PolicerAttachment {
    std::size_t policer;  // in Config::policers
    PolicerKey key;
    pipeline::PolicerPlace place;
    std::string name;                   // of what it is attached to: tenant, interface, class; LIST/RULE
    std::optional<std::size_t> tenant;  // in Config::tenants; none for rules and classes
};

// In the configuration's order: tenants, interfaces, classes, rules. All of these have their indices in the registry.
std::vector<PolicerAttachment> policer_attachments(const config::Config& config, const Registry& registry);

// The attachment of a rule, whose bucket is that rule's for all tenants that have the list. Unnamed rules go by place.
PolicerKey rule_policer_key(const config::Acl& acl, std::size_t rule);

// Profiles of all attachments and who names them. Interfaces and tenants are in the snapshot. Throws base::MachineError
// for a policer that can't be kept, and when indices run out.
void attach_policers(const config::Config& config, Registry& registry, pipeline::Snapshot& snapshot);

// Where some session can come to a policer with a bucket for each (a bit a PolicerPlace): on a tenant, or on a rule of
// a list that a tenant has. A list that no tenant has gets no packet.
std::uint8_t session_policer_places(const config::Config& config);

// Room for the buckets of sessions, in all those places where there is none yet: before a snapshot of this
// configuration is published. Throws base::MachineError.
void make_session_buckets(const config::Config& config, session::Table& sessions);
// What that maps: for a table of `capacity`, and for one that may have some.
std::size_t session_buckets_needed(const config::Config& config, std::uint32_t capacity);
std::size_t session_buckets_missing(const config::Config& config, const session::Table& sessions);

// Classes: their numbers, what they mark, and which DSCP and PCP stand for them.
void fill_classes(const config::Config& config, Registry& registry, pipeline::Snapshot& snapshot);

}  // namespace cachewire::control
