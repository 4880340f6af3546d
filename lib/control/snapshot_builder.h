#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Configuration -> immutable Snapshot. All or nothing: a build that throws leaves indices, lists and FIBs as they were.
// What did not change is taken over (compiled lists, FIB views), and a tenant's generations move only when something
// that its verdicts or routes depend on did.
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "config/config.h"
#include "control/registry.h"
#include "control/routes.h"
#include "pipeline/snapshot.h"
#include "port/port.h"

namespace cachewire::control {

struct PortInfo {  // of a started port
    std::uint16_t ethdev = 0;
    std::uint16_t txq = 1;
    net::Mac mac;
    port::PortTraits traits{};
    bool attached = true;
    bool link = true;
};

class SnapshotBuilder {
  public:
    // One build. Destroyed before commit() it leaves everything as it was.
    class Pass;
    struct PassDelete {
        void operator()(Pass* pass) const noexcept;
    };
    using PassPointer = std::unique_ptr<Pass, PassDelete>;

    SnapshotBuilder(std::map<std::string, PortInfo> ports, net::HashSeed seed, int socket_id);

    // Compiles the lists, which may take seconds, and touches nothing that a reader of registry() sees. `config` must
    // outlive the pass. All three throw base::MachineError.
    PassPointer begin(const config::Config& config, std::uint64_t generation);
    // Which list each tenant that stays or comes is to have; null: none.
    [[nodiscard]] static std::map<std::uint16_t, std::shared_ptr<const acl::Classifier>> lists_of(const Pass& pass);
    // The rest, changes to the idle FIB copies included: under the lock that readers of registry() take.
    void complete(Pass& pass);
    // The snapshot has to be published, and grace_period_over() called once no worker sees its predecessor; completing
    // another pass before that is a programmer error.
    std::unique_ptr<pipeline::Snapshot> commit(PassPointer pass);
    void grace_period_over();

    // For passes that complete afterwards: a device came, went, came back, or took another address.
    void set_port(const std::string& name, const PortInfo& info) { ports_[name] = info; }
    using PortInfos = std::map<std::string, PortInfo>;
    [[nodiscard]] const PortInfos& port_infos() const noexcept { return ports_; }
    void set_port_infos(PortInfos ports) { ports_ = std::move(ports); }
    // Where the port stands in the snapshot of a completed pass.
    [[nodiscard]] static std::uint16_t port_index(const Pass& pass, const std::string& name);
    // The port gets another place in this pass, because what is made for its old one does not fit. Before complete().
    static void move_port(Pass& pass, const std::string& name);

    // What every snapshot from now on keeps out, by tenant's name; names that no tenant has are no error.
    using Blocks = std::map<std::string, std::vector<net::Prefix>>;
    void set_blocks(Blocks blocks) { blocks_ = std::move(blocks); }
    // Into a copy of the published snapshot.
    void write_blocks(pipeline::Snapshot& snapshot) const { write_blocks(registry_, snapshot); }

    // Wins over the file's `pipeline.memoize` in every build from now on; nullopt: the file decides.
    void override_memoize(std::optional<bool> on) noexcept { memoize_override_ = on; }
    [[nodiscard]] std::optional<bool> memoize_override() const noexcept { return memoize_override_; }

    [[nodiscard]] const Registry& registry() const noexcept { return registry_; }
    // Each worker's counters are entered before it runs.
    [[nodiscard]] RuleHits& rule_hits() const noexcept { return *rule_hits_; }
    // Routes that came in at run time, by tenant slot. Builds leave them alone.
    [[nodiscard]] const std::map<std::uint16_t, FedTable>& fed_routes() const noexcept { return fed_; }

  private:
    friend class RouteFeed;  // changes registry_ and fed_ between builds
    void write_blocks(const Registry& registry, pipeline::Snapshot& snapshot) const;

    std::map<std::string, PortInfo> ports_;
    net::HashSeed seed_;
    int socket_id_;
    std::optional<bool> memoize_override_;
    Blocks blocks_;
    std::unique_ptr<RuleHits> rule_hits_ = std::make_unique<RuleHits>();
    Registry registry_;
    std::map<std::uint16_t, FedTable> fed_;
    std::map<std::uint16_t, std::shared_ptr<const acl::Classifier>>
        tenant_lists_;  // what each tenant's verdicts came from
};

}  // namespace cachewire::control
