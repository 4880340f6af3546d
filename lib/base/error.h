#pragma once
// SPDX-License-Identifier: BSD-3-Clause
// Faults of the control plane. The datapath never throws. What reaches main() ends the process with `status`.
#include <stdexcept>
#include <string>

namespace cachewire::base {

// Exit statuses of the program, as the interface states them.
enum class ExitStatus : int { ok = 0, configuration = 1, usage = 2, machine = 3, fault = 4 };

class Error : public std::runtime_error {
  public:
    Error(ExitStatus status, const std::string& what) : std::runtime_error(what), status_(status) {}
    [[nodiscard]] ExitStatus status() const noexcept { return status_; }

  private:
    ExitStatus status_;
};

// The machine can't do it: EAL, a port, memory. The text says what a person can do about it.
class MachineError : public Error {
  public:
    explicit MachineError(const std::string& what) : Error(ExitStatus::machine, what) {}
};

// rc < 0 is -errno, as DPDK's functions return it: throws MachineError("WHAT: strerror"). Returns rc otherwise.
int check(int rc, const std::string& what);

// The same for functions that return a pointer and set rte_errno.
void* check_pointer(void* pointer, const std::string& what);

template <class T>
T* check(T* pointer, const std::string& what) {
    return static_cast<T*>(check_pointer(const_cast<void*>(static_cast<const void*>(pointer)), what));
}

}  // namespace cachewire::base
