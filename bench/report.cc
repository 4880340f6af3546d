// SPDX-License-Identifier: BSD-3-Clause
#include "report.h"

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <stdexcept>

#include <fmt/format.h>
#include <unistd.h>

#include "base/clock.h"

namespace cachewire::bench {

namespace {

std::string cpu_model() {
    std::ifstream file("/proc/cpuinfo");
    for (std::string line; std::getline(file, line);)
        if (line.starts_with("model name")) return line.substr(line.find(':') + 2);
    return "unknown CPU";
}

nlohmann::ordered_json to_json(const std::vector<StageCost>& stages) {
    auto out = nlohmann::ordered_json::array();
    for (const auto& s : stages)
        out.push_back({{"stage", s.stage},
                       {"instructions", s.instructions},
                       {"data_references", s.references},
                       {"l1d_misses", s.l1_misses},
                       {"ll_misses", s.ll_misses},
                       {"l1i_misses", s.l1i_misses}});
    return out;
}

// gnuplot's data: label, cycles, spread.
unsigned write_bars(std::ofstream& out, const nlohmann::ordered_json& claim) {
    unsigned bars = 0;
    for (const auto& variant : claim.at("variants")) {
        out << fmt::format("\"{}: {}\" {} {}\n", claim.at("claim").get<std::string>(),
                           variant.at("name").get<std::string>(), variant.at("cycles_per_packet").get<double>(),
                           variant.at("spread").get<double>());
        ++bars;
    }
    return bars;
}

}  // namespace

nlohmann::ordered_json to_json(const std::string& claim, const std::vector<Result>& results) {
    auto variants = nlohmann::ordered_json::array();
    for (const auto& r : results) {
        nlohmann::ordered_json variant = {{"name", r.name},
                                          {"mpps", r.mpps},
                                          {"cycles_per_packet", r.cycles_per_packet},
                                          {"spread", r.spread},
                                          {"ratio", r.ratio}};
        if (!r.starts.empty()) variant["starts"] = r.starts;
        if (!r.frames.empty()) variant["frames"] = r.frames;
        if (!r.failure.empty()) variant["failure"] = r.failure;
        if (!r.stages.empty()) variant["stages"] = to_json(r.stages);
        variants.push_back(std::move(variant));
    }
    return {{"claim", claim},
            {"machine", fmt::format("{}, {} MHz TSC", cpu_model(), base::tsc_hz() / 1000000)},
            {"compiler", __VERSION__ " -O" CACHEWIRE_OPTIMIZATION},
            {"variants", variants}};
}

void write_json(const std::string& path, const nlohmann::ordered_json& document) {
    std::ofstream file(path);
    file << document.dump(2) << '\n';
    file.close();
    if (!file) throw std::runtime_error(path + " can't be written");
}

void plot(const std::string& path, const nlohmann::ordered_json& document) {
    if (std::system("command -v gnuplot > /dev/null 2>&1") != 0)
        throw std::runtime_error("--plot needs gnuplot, which is not installed (Debian: gnuplot-nox)");
    const std::string data =
        (std::filesystem::temp_directory_path() / fmt::format("cachewire-bench-{}.dat", getpid())).string();
    std::ofstream out(data);
    unsigned bars = 0;
    if (document.is_array()) {
        for (const auto& claim : document) bars += write_bars(out, claim);
    } else {
        bars = write_bars(out, document);
    }
    out.close();
    // Bars lie, one under the other, so that their names can be read.
    const std::string script = fmt::format(
        "set terminal png size 1100,{} font \\\"sans,9\\\"; set output \\\"{}\\\"; set yrange [{}:-1] ; "
        "set lmargin 60; unset key; set grid x; set xrange [0:*]; set xlabel \\\"TSC cycles a packet, median and half "
        "the distance of the "
        "quartiles\\\"; plot \\\"{}\\\" using (\\$2/2):0:(\\$2/2):(0.35):yticlabels(1) with boxxyerror fill solid 0.4, "
        "\\\"\\\" using 2:0:3 with xerrorbars pt 0 lc black",
        80 + 22 * bars, path, bars, data);
    const int status = std::system(("gnuplot -e \"" + script + "\"").c_str());
    std::error_code ignored;
    std::filesystem::remove(data, ignored);
    if (status != 0 || !std::filesystem::exists(path)) throw std::runtime_error("gnuplot did not make " + path);
}

}  // namespace cachewire::bench
