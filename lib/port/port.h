#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// The only owner of ethdev: what a `device:` string means, and a configured, started port. Control thread only; the
// datapath calls rte_eth_rx_burst and rte_eth_tx_burst with the ids from here.
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "net/mac.h"

struct rte_mempool;

namespace cachewire::port {

enum class DeviceKind { pci, vdev, kernel };

struct Device {
    DeviceKind kind;
    std::string name;  // what rte_eth_dev_get_port_by_name finds: "0000:03:00.0" or "net_tap0"; kernel: the interface
    std::string arguments;  // after the first comma, as given
};

// "0000:03:00.0" (or without domain) is PCI; "net_xxx0,args" is a vdev; "kernel:IFNAME" a Linux interface, whose driver
// is chosen at start (kernel_interface.h). nullopt with `why` for anything else.
std::optional<Device> parse_device(const std::string& text, std::string& why);

// EAL arguments for all ports: "-a PCI" for each PCI device, else "--no-pci"; "--vdev=NAME,ARGS" for each vdev.
// Kernel devices need none: their port plugs them in.
std::vector<std::string> eal_arguments(const std::vector<Device>& devices);

struct PortConfig {
    std::string name;
    Device device;
    // Wanted; what the device can't give is an error that names its limit. 0: as many as `workers` and the device have,
    // settled when it is opened.
    std::uint16_t rx_queues = 1, tx_queues = 1;
    std::uint16_t workers = 1;
    std::uint16_t rx_descriptors = 1024, tx_descriptors = 1024;
    std::uint16_t mtu = 1500;
    bool promiscuous = false;
    std::optional<net::Mac> mac;
    std::uint16_t mbuf_size = 2176;
};

struct PortStats {
    std::uint64_t rx_missed, rx_errors, rx_nombuf, tx_errors;
    std::string driver;
    bool link_up;
    std::uint32_t link_mbps;
};

// The counters of `more` come on top; what is no counter stays.
void add_counts(PortStats& to, const PortStats& more) noexcept;

// What the pipeline has to do because the device does not.
struct PortTraits {
    bool partial_checksums = false;              // the peer leaves L4 checksums to a NIC that isn't there
    bool sends_chains = true;                    // takes packets in several buffers
    std::uint32_t max_frame_bytes = UINT32_MAX;  // hands over longer frames too, perhaps cut: they count as errors
};

// What a port changes of an interface that outlives it.
struct InterfaceState {
    bool promiscuous = false;
    std::uint16_t mtu = 0;
    net::Mac mac;
};

class InterfaceClaim;
class KernelSide;
class Removal;

class EthPort {
  public:
    // Finds (or plugs in), configures and starts; throws base::MachineError that names the port and says what a person
    // can do.
    EthPort(const PortConfig& config, rte_mempool* pool);
    ~EthPort();  // stops and closes; no worker may use the port any more
    EthPort(const EthPort&) = delete;
    EthPort& operator=(const EthPort&) = delete;

    [[nodiscard]] const std::string& name() const noexcept { return config_.name; }
    [[nodiscard]] const PortConfig& config() const noexcept { return config_; }
    [[nodiscard]] rte_mempool* pool() const noexcept { return pool_; }
    [[nodiscard]] std::uint16_t id() const noexcept { return id_; }
    // The configured address, else the device's own; where a device has none (net_ring), one derived from the port's
    // name.
    [[nodiscard]] net::Mac mac() const noexcept { return mac_; }
    [[nodiscard]] const PortTraits& traits() const noexcept { return traits_; }
    [[nodiscard]] const std::string& driver() const noexcept { return driver_; }
    // Over all that was open under this name so far.
    [[nodiscard]] PortStats stats() const;
    // What is in use on both sides, as "rx scatter, rss; tx multi_segs"; "none" when nothing is.
    [[nodiscard]] const std::string& offloads() const noexcept { return offloads_; }

    // Each throws base::MachineError and leaves the port as it was. While closed they only note what open() applies.
    void set_mtu(std::uint16_t mtu);
    void set_promiscuous(bool on);
    void set_mac(const std::optional<net::Mac>& mac);

    // The Linux interface below, or the TAP; empty when the device is no such thing.
    [[nodiscard]] const std::string& interface() const noexcept { return interface_; }
    // Asks the kernel what link(), gone() and stats() answer from.
    void look() noexcept;
    // Of a Linux interface or a TAP: it is set up and has a carrier. Of others nothing is known, and it is taken for
    // up.
    [[nodiscard]] bool link() const noexcept;
    // It was away for a moment since the last call, perhaps between two looks.
    [[nodiscard]] bool take_flap() noexcept;
    // "interface vA" when it was deleted or another one has its name now, "device 0000:03:00.0" when the device was
    // removed, "its XDP program" when somebody took that off: what is open leads nowhere. Else empty.
    [[nodiscard]] std::string gone() const;
    // What open() needs is there again, as far as that can be asked.
    [[nodiscard]] bool can_open() const;
    // One side of a transparent pair: whether somebody is on the other end, nullopt: that can't be told; and taking the
    // link from them, or giving it back. False: the device can't.
    [[nodiscard]] std::optional<bool> wire() const;
    bool set_wire(bool up) noexcept;

    // While it is gone: close, unplug (EAL forgets the device), open; no worker may use the port meanwhile. open()
    // throws as the constructor does, and the port stays closed.
    void close() noexcept;
    void unplug() noexcept;
    void open();
    [[nodiscard]] bool is_open() const noexcept { return open_; }

    // So many mbufs were lost with what was closed so far.
    [[nodiscard]] unsigned lost_mbufs() const noexcept { return lost_mbufs_; }

    void stop();  // also frees what waits in the receive queues; workers have left before

  private:
    void claim_interface();
    void refuse_taken_xdp(const Device& device) const;
    void open_kernel();
    bool plug_in(const Device& device);
    void open_device(const Device& device);
    void start_device(const Device& device);
    void apply_mtu(std::uint16_t mtu);
    void apply_mac();
    bool apply_promiscuous();
    void free_waiting() noexcept;
    void release() noexcept;
    void find_tap(unsigned index);
    [[nodiscard]] bool interface_gone() const;
    void close_device() noexcept;
    void add_device(PortStats& to) const;
    [[nodiscard]] bool xdp_too_dear() const;

    PortConfig config_;
    rte_mempool* pool_;
    std::uint16_t id_ = 0;
    net::Mac mac_;
    net::Mac own_mac_;              // the device's before anything was set; zero when it has none
    bool mac_in_software_ = false;  // the driver can't take it: promiscuous, whatever the configuration says
    bool open_ = false;
    bool started_ = false;
    PortTraits traits_;
    std::string driver_;
    std::string offloads_;
    Device in_use_{};        // what was opened; differs from the configured one for kernel interfaces
    std::string interface_;  // below, or the TAP
    unsigned interface_index_ = 0;
    std::uint16_t opened_mtu_ = 0;
    std::optional<InterfaceState> before_;  // what the interface was like
    int tap_ = -1;                          // net_tap's descriptor
    std::unique_ptr<Removal> removal_;
    std::unique_ptr<InterfaceClaim> claim_;
    std::unique_ptr<KernelSide> kernel_side_;  // null: no Linux interface
    PortStats closed_{};                       // what was counted by devices that are closed
    std::vector<std::uint64_t> xdp_sockets_;   // of what is open
    bool had_xdp_ = false;
    unsigned lost_mbufs_ = 0;
};

// Data mbufs of `data_room` bytes on `socket_id`. The count is the caller's; throws base::MachineError with the memory
// needed.
// `for_nics`: a device reads it by physical address.
rte_mempool* make_mempool(const std::string& name, unsigned mbufs, unsigned cache, unsigned mbuf_size, int socket_id,
                          bool for_nics = false);
// One piece of memory without gaps. net_af_xdp reckons with it: the kernel refuses a buffer behind size * number, and
// it never comes back.
bool lies_side_by_side(rte_mempool* pool);

}  // namespace cachewire::port
