// SPDX-License-Identifier: BSD-3-Clause
#include "port/xdp_program.h"

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <fstream>

#include <fmt/format.h>
#include <linux/bpf.h>
#include <linux/if_link.h>
#include <linux/netlink.h>
#include <linux/rtnetlink.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace cachewire::port {

namespace {

namespace fs = std::filesystem;

int open_program(std::uint32_t id) noexcept {
    bpf_attr request{};
    request.prog_id = id;
    return static_cast<int>(syscall(SYS_bpf, BPF_PROG_GET_FD_BY_ID, &request, sizeof request));
}

bool has_program_open(const fs::path& process, const std::string& line) {
    std::error_code error;
    for (const auto& entry : fs::directory_iterator(process / "fdinfo", error)) {
        std::ifstream info(entry.path());
        for (std::string text; std::getline(info, text);)
            if (text == line) return true;
    }
    return false;
}

// Takes the interface's program for `program`.
int set_program(unsigned index, int program, std::uint32_t flags) noexcept {
    struct {
        nlmsghdr head;
        ifinfomsg info;
        rtattr xdp;
        rtattr fd_head;
        int fd;
        rtattr flags_head;
        std::uint32_t flags;
    } request{};
    request.head.nlmsg_len = sizeof request;
    request.head.nlmsg_type = RTM_SETLINK;
    request.head.nlmsg_flags = NLM_F_REQUEST | NLM_F_ACK;
    request.info.ifi_index = static_cast<int>(index);
    request.xdp = {static_cast<unsigned short>(sizeof request - offsetof(decltype(request), xdp)),
                   static_cast<unsigned short>(IFLA_XDP | NLA_F_NESTED)};
    request.fd_head = {RTA_LENGTH(sizeof request.fd), IFLA_XDP_FD};
    request.fd = program;
    request.flags_head = {RTA_LENGTH(sizeof request.flags), IFLA_XDP_FLAGS};
    request.flags = flags;
    const int wire = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (wire < 0) return -errno;
    struct {
        nlmsghdr head;
        nlmsgerr error;
        char more[512];
    } answer{};
    int result = -EIO;
    if (send(wire, &request, sizeof request, 0) >= 0 && recv(wire, &answer, sizeof answer, MSG_DONTWAIT) > 0 &&
        answer.head.nlmsg_type == NLMSG_ERROR)
        result = answer.error.error;
    close(wire);
    return result;
}

}  // namespace

std::string xdp_program_name(std::uint32_t id) {
    const int program = open_program(id);
    if (program < 0) return "";
    bpf_prog_info info{};
    bpf_attr request{};
    request.info.bpf_fd = static_cast<std::uint32_t>(program);
    request.info.info_len = sizeof info;
    request.info.info = reinterpret_cast<std::uint64_t>(&info);
    const bool known = syscall(SYS_bpf, BPF_OBJ_GET_INFO_BY_FD, &request, sizeof request) == 0;
    close(program);
    return known ? std::string(info.name, strnlen(info.name, sizeof info.name)) : "";
}

bool is_xdp_socket_program(const std::string& name) { return name.starts_with("xsk_"); }

std::string xdp_program_holder(std::uint32_t id) {
    const std::string line = fmt::format("prog_id:\t{}", id);
    std::error_code error;
    for (const auto& entry : fs::directory_iterator("/proc", error)) {
        const std::string name = entry.path().filename();
        int pid = 0;
        const auto [end, bad] = std::from_chars(name.data(), name.data() + name.size(), pid);
        if (bad != std::errc{} || end != name.data() + name.size() || pid == getpid()) continue;
        if (!has_program_open(entry.path(), line)) continue;
        std::string command;
        std::ifstream comm(entry.path() / "comm");
        std::getline(comm, command);
        return fmt::format("{} (pid {})", command, pid);
    }
    return "";
}

KeptXdpProgram::KeptXdpProgram(unsigned interface_index, const LinkFacts& facts)
    : index_(interface_index), generic_(facts.xdp_generic), program_(open_program(facts.xdp_program)) {}

KeptXdpProgram::~KeptXdpProgram() {
    if (program_ >= 0) close(program_);
}

bool KeptXdpProgram::put_back() noexcept {
    if (program_ < 0) return false;
    const std::uint32_t mode = generic_ ? XDP_FLAGS_SKB_MODE : XDP_FLAGS_DRV_MODE;
    const int result = set_program(index_, program_, mode | XDP_FLAGS_UPDATE_IF_NOEXIST);
    errno = -result;
    return result == 0 || result == -EBUSY;  // busy: it is on it still
}

}  // namespace cachewire::port
