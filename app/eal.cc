// SPDX-License-Identifier: BSD-3-Clause
#include "app/eal.h"

#include <array>
#include <cstdio>

#include <fcntl.h>
#include <fmt/format.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_log.h>
#include <unistd.h>

#include "app/arguments.h"
#include "port/tap_signals.h"

namespace cachewire::app {

namespace {

constexpr std::size_t kMaxRecordedBytes = 65536;

// EAL has one error code for most of what goes wrong and says the rest in its log only, so the log is kept while it
// starts.
struct Recorder {
    std::string text;
    bool recording = false;
};

Recorder& recorder() {
    static Recorder instance;
    return instance;
}

ssize_t on_write(void*, const char* data, std::size_t size) {
    Recorder& r = recorder();
    if (r.recording && r.text.size() < kMaxRecordedBytes) r.text.append(data, size);
    return write(STDERR_FILENO, data, size);
}

// Never closed: EAL's threads may write to it until exit.
FILE* recording_stream() {
    static FILE* stream = fopencookie(nullptr, "w", {nullptr, on_write, nullptr, nullptr});
    return stream;
}

struct Advice {
    std::string_view said;  // by EAL, 22.11 to 25.11
    base::ExitStatus status;
    std::string_view text;
};

constexpr std::string_view kRefusedArgument =
    "EAL refuses an argument, see its message above; `cachewire -h -- --config FILE` lists EAL's";

// The first that fits: what causes others stands first. A runtime folder that can't be made is told as wrong arguments.
constexpr std::array kAdvice = {
    Advice{
        "Cannot create lock", base::ExitStatus::machine,
        "another process runs under the same file prefix: end it, or give this one its own with `--file-prefix NAME`"},
    Advice{"Permission denied", base::ExitStatus::machine,
           "a permission is missing (see EAL's message above): run as root, or with `--no-huge` for devices that need "
           "none"},
    Advice{"Operation not permitted", base::ExitStatus::machine,
           "a permission is missing (see EAL's message above): run as root, or with `--no-huge` for devices that need "
           "none"},
    Advice{"Invalid 'command line' arguments", base::ExitStatus::usage, kRefusedArgument},
    Advice{"Error parsing command line", base::ExitStatus::usage, kRefusedArgument},
    Advice{"hugepage", base::ExitStatus::machine,
           "there are not enough huge pages: `echo 512 > /proc/sys/vm/nr_hugepages` reserves 1 GiB (and `mount -t "
           "hugetlbfs none "
           "/dev/hugepages` where nothing is mounted), or do without: `--no-huge -m 512`"},
    Advice{
        "Not enough memory", base::ExitStatus::machine,
        "there is not as much memory as `-m` or `--socket-mem` asks for: ask for less, or reserve more huge pages in "
        "/proc/sys/vm/nr_hugepages"},
    Advice{"Cannot init memory", base::ExitStatus::machine,
           "EAL gets no memory: `echo 512 > /proc/sys/vm/nr_hugepages` reserves 1 GiB, or do without huge pages: "
           "`--no-huge -m "
           "512`"},
};

}  // namespace

base::Error explain_eal_failure(const EalSources& sources, std::string_view log, const std::string& reason) {
    for (const Advice& advice : kAdvice) {
        if (log.find(advice.said) == std::string_view::npos) continue;
        if (advice.status != base::ExitStatus::usage || who_is_wrong(sources, log) == base::ExitStatus::usage)
            return {advice.status, fmt::format("EAL did not start: {}", advice.text)};
        return {base::ExitStatus::configuration,
                fmt::format("EAL refuses an argument of the file's `eal: {}`, see its message above",
                            to_shell(sources.file))};
    }
    return base::MachineError(fmt::format("EAL did not start ({}): see its messages above", reason));
}

namespace {

// EAL answers a wrong argument with its whole usage on stdout, 120 lines that bury the one that says what is wrong.
class QuietStdout {
  public:
    explicit QuietStdout(bool quiet) {
        if (!quiet) return;
        std::fflush(stdout);
        kept_ = fcntl(STDOUT_FILENO, F_DUPFD_CLOEXEC, 0);
        const int null = open("/dev/null", O_WRONLY | O_CLOEXEC);
        if (kept_ >= 0 && null >= 0) dup2(null, STDOUT_FILENO);
        if (null >= 0) close(null);
    }
    ~QuietStdout() {
        if (kept_ < 0) return;
        std::fflush(stdout);
        dup2(kept_, STDOUT_FILENO);
        close(kept_);
    }
    QuietStdout(const QuietStdout&) = delete;
    QuietStdout& operator=(const QuietStdout&) = delete;

  private:
    int kept_ = -1;
};

}  // namespace

void log_to_stderr() { rte_openlog_stream(recording_stream()); }

Eal::Eal(const std::vector<std::string>& arguments, const EalSources& sources) {
    rte_set_application_usage_hook([](const char*) { std::fputs(usage_text().c_str(), stdout); });
    // EAL keeps pointers to its arguments and permutes them: they live as long as the process.
    static std::vector<std::string> words;
    static std::vector<char*> argv;
    words = arguments;
    words.insert(words.begin(), "cachewire");
    argv.clear();
    for (std::string& word : words) argv.push_back(word.data());
    argv.push_back(nullptr);

    recorder().recording = true;
    const bool quiet = !asks_for_help(arguments);
    const int rc = [&] {
        const QuietStdout during(quiet);
        const port::NoTapSignals no_tap_signals;
        return rte_eal_init(static_cast<int>(words.size()), argv.data());
    }();
    recorder().recording = false;
    if (rc < 0) throw explain_eal_failure(sources, recorder().text, rte_strerror(rte_errno));
    recorder().text.clear();
    // `--proc-type auto` beside a running instance: this process would set up the other one's ports anew.
    if (rte_eal_process_type() != RTE_PROC_PRIMARY) {
        rte_eal_cleanup();
        throw base::MachineError(
            "another process runs under the same file prefix, and cachewire is none of its secondaries: end it, or "
            "give "
            "this one its own with `--file-prefix NAME`");
    }
}

}  // namespace cachewire::app
