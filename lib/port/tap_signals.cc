// SPDX-License-Identifier: BSD-3-Clause
#include "port/tap_signals.h"

namespace cachewire::port {

// What has a handler already is somebody's, and stays.
NoTapSignals::NoTapSignals() noexcept {
    for (int signal = SIGRTMIN; signal <= SIGRTMAX && signal <= NSIG; ++signal) {
        struct sigaction now {};
        if (sigaction(signal, nullptr, &now) != 0 || now.sa_handler != SIG_DFL) continue;
        struct sigaction taken {};
        taken.sa_handler = [](int) {};
        ours_[static_cast<unsigned>(signal)] = sigaction(signal, &taken, nullptr) == 0;
    }
}

NoTapSignals::~NoTapSignals() {
    struct sigaction none {};
    none.sa_handler = SIG_DFL;
    for (unsigned signal = 0; signal < ours_.size(); ++signal)
        if (ours_[signal]) sigaction(static_cast<int>(signal), &none, nullptr);
}

}  // namespace cachewire::port
