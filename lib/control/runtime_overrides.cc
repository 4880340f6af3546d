// SPDX-License-Identifier: BSD-3-Clause
// How a Runtime applies what cwctl changes and no file says.
#include <fmt/format.h>

#include "base/log.h"
#include "control/runtime.h"

namespace cachewire::control {

std::string Runtime::override_memoize(bool on) {
    const std::lock_guard lock(mutex_);
    if (std::string stalled = finish_grace_period(); !stalled.empty()) return stalled;
    const std::optional<bool> before = builder_->memoize_override();
    builder_->override_memoize(on == config_.pipeline.memoize ? std::nullopt : std::optional(on));
    try {
        auto pass = builder_->begin(config_, generation_);
        builder_->complete(*pass);
        publisher_->publish(builder_->commit(std::move(pass)), [this] { builder_->grace_period_over(); });
    } catch (const std::exception& error) {
        builder_->override_memoize(before);
        return error.what();
    }
    return finish_grace_period();
}

// Empty, or why there is none. No name is the only tenant's.
std::string Runtime::settle_tenant(std::string& tenant) const {
    if (tenant.empty()) {
        if (config_.tenants.size() != 1) return "there are several tenants: name one";
        tenant = config_.tenants.front().name;
    }
    return builder_->registry().tenants.find(tenant) ? "" : fmt::format("no tenant '{}'", tenant);
}

// Without a build: the published snapshot again, with other blocks.
std::string Runtime::publish_blocks() {
    if (std::string stalled = finish_grace_period(); !stalled.empty()) return stalled;
    builder_->set_blocks(overrides_.by_tenant());
    auto snapshot = std::make_unique<pipeline::Snapshot>(*publisher_->current());
    builder_->write_blocks(*snapshot);
    publisher_->publish(std::move(snapshot));
    finish_grace_period();  // whoever stalls has it when he comes round
    return "";
}

std::string Runtime::block(std::string tenant, const net::Prefix& prefix, std::uint32_t for_s) {
    const std::lock_guard lock(mutex_);
    if (std::string why = settle_tenant(tenant); !why.empty()) return why;
    const auto before = overrides_.blocks();
    if (!overrides_.block({tenant, prefix, now_ms() + for_s * std::uint64_t{1000}}))
        return fmt::format("tenant '{}' has {} blocks, which is the limit: a rule in its list has none", tenant,
                           Overrides::kMaxBlocks);
    std::string why = publish_blocks();
    if (!why.empty()) overrides_.set_blocks(before);
    return why;
}

std::string Runtime::unblock(std::string tenant, const net::Prefix& prefix) {
    const std::lock_guard lock(mutex_);
    // Not settle_tenant(): a block of a tenant that is gone can be taken back too.
    if (tenant.empty() && config_.tenants.size() == 1) tenant = config_.tenants.front().name;
    const auto before = overrides_.blocks();
    if (!overrides_.unblock(tenant, prefix))
        return fmt::format("{} is not blocked in tenant '{}'", net::to_string(prefix), tenant);
    std::string why = publish_blocks();
    if (!why.empty()) overrides_.set_blocks(before);
    return why;
}

void Runtime::end_blocks() {
    const std::lock_guard lock(mutex_);
    const auto before = overrides_.blocks();
    if (!overrides_.expire(now_ms())) return;
    if (publish_blocks().empty()) {
        base::log_info("{} of {} blocks have ended", before.size() - overrides_.blocks().size(), before.size());
    } else {
        overrides_.set_blocks(before);  // a worker stalls: at the next look
    }
}

void Runtime::set_log_level(base::LogLevel level) {
    const std::lock_guard lock(mutex_);
    overrides_.set_log_level(level);
}

}  // namespace cachewire::control
