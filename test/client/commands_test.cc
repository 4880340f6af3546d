// SPDX-License-Identifier: BSD-3-Clause
// The commands against a stand-in for cachewire: both sockets in a folder of the test's own, answers written here.
#include "client/commands.h"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <map>
#include <sstream>
#include <string>
#include <thread>
#include <vector>

#include <poll.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

#include "client/sockets.h"
#include "support/catch.h"

using namespace cachewire::client;

namespace {

// Speaks both protocols, one client after the other.
class Server {
  public:
    Server() {
        char name[] = "/tmp/cachewire-test-XXXXXX";
        folder_ = ::mkdtemp(name);
        ::setenv("RUNTIME_DIRECTORY", folder_.c_str(), 1);
        std::filesystem::create_directories(runtime_dir("rte"));
    }
    ~Server() {
        if (thread_.joinable()) {
            ::close(stop_[1]);
            thread_.join();
            for (const int fd : {telemetry_, control_, stop_[0]}) ::close(fd);
        }
        std::filesystem::remove_all(folder_);
        ::unsetenv("RUNTIME_DIRECTORY");
    }
    void start() {
        telemetry_ = listen_on(telemetry_path("rte"), SOCK_SEQPACKET);
        control_ = listen_on(control_path("rte"), SOCK_STREAM);
        REQUIRE(::pipe(stop_) == 0);
        thread_ = std::thread([this] { run(); });
    }

    static int listen_on(const std::string& path, int type) {
        sockaddr_un address = {};
        address.sun_family = AF_UNIX;
        path.copy(address.sun_path, sizeof(address.sun_path) - 1);
        const int fd = ::socket(AF_UNIX, type, 0);
        REQUIRE(::bind(fd, reinterpret_cast<const sockaddr*>(&address), sizeof(address)) == 0);
        REQUIRE(::listen(fd, 8) == 0);
        return fd;
    }

    std::map<std::string, std::string> answers;  // of the telemetry socket, by the whole question
    std::string control_answer;
    std::string last_request;  // read after the command's end

  private:
    void run() {
        for (;;) {
            pollfd fds[] = {{telemetry_, POLLIN, 0}, {control_, POLLIN, 0}, {stop_[0], POLLIN, 0}};
            ::poll(fds, 3, -1);
            if (fds[2].revents != 0) return;
            for (const int i : {0, 1}) {
                if (fds[i].revents == 0) continue;
                const int client = ::accept(fds[i].fd, nullptr, nullptr);
                serve(client, i == 0);
                ::close(client);
            }
        }
    }
    void serve(int client, bool telemetry) {
        if (telemetry) reply(client, R"({"version":"DPDK","pid":1,"max_output_len":16384})");
        char buffer[4096];
        for (ssize_t n; (n = ::recv(client, buffer, sizeof(buffer), 0)) > 0;) {
            last_request.assign(buffer, static_cast<std::size_t>(n));
            if (!telemetry) {
                reply(client, control_answer + "\n");
                continue;
            }
            const std::string command = last_request.substr(0, last_request.find(','));
            const auto answer = answers.find(last_request);
            reply(client, "{\"" + command + "\":" + (answer == answers.end() ? "null" : answer->second) + "}");
        }
    }
    static void reply(int client, const std::string& text) { ::send(client, text.data(), text.size(), MSG_NOSIGNAL); }

    std::string folder_;
    int telemetry_ = -1, control_ = -1;
    int stop_[2] = {-1, -1};
    std::thread thread_;
};

struct Result {
    int status;
    std::string out, err;
};

Result run(std::vector<std::string> words) {
    std::ostringstream out, err;
    Context context;
    context.out = &out;
    context.err = &err;
    const int status = run_command(context, words);
    return {status, out.str(), err.str()};
}

}  // namespace

TEST_CASE("cwctl: show qos has policers, and what each class of a scheduled port does", "[client]") {
    Server server;
    server.answers["/cachewire/qos/stats"] =
        R"({"0":{"policer":"slow","attached_to":"tenant","name":"red","direction":"in","rate_bps":1500000,"conform_packets":12,"conform_bytes":1200,"exceed_packets":0,"exceed_bytes":0,"violate_packets":3,"violate_bytes":300}})";
    server.answers["/cachewire/qos/classes"] =
        R"({"0":{"port":"wan","class":"none","tx_dropped":0,"scheduler":1,"packets":7,"bytes":700,"queued":0,"rate_bps":"1000000000","order":"last"},"next":1})";
    server.answers["/cachewire/qos/classes,1,256"] =
        R"({"1":{"port":"wan","class":"gold","tx_dropped":1234,"scheduler":1,"packets":5000,"bytes":640000,"queued":31,"rate_bps":"1000000000","order":"priority 2"},)"
        R"("2":{"port":"lan","class":"none","tx_dropped":0,"scheduler":0,"packets":0,"bytes":0,"queued":0,"rate_bps":0,"order":"none"},)"
        R"("3":{"port":"lan","class":"gold","tx_dropped":77,"scheduler":0,"packets":0,"bytes":0,"queued":0,"rate_bps":0,"order":"none"}})";
    server.start();
    // A line's words, whatever the columns' widths.
    const auto lines = [](const std::string& text) {
        std::vector<std::string> result;
        std::istringstream in(text);
        for (std::string line; std::getline(in, line);) {
            std::istringstream words(line);
            std::string joined;
            for (std::string word; words >> word;) joined += (joined.empty() ? "" : " ") + word;
            result.push_back(joined);
        }
        return result;
    };
    const Result text = run({"show", "qos"});
    CHECK(text.status == kDone);
    const auto shown = lines(text.out);
    const auto has = [&shown](const std::string& line) {
        return std::find(shown.begin(), shown.end(), line) != shown.end();
    };
    INFO(text.out);
    CHECK(has("slow tenant red in 1.500 12 1,200 0 0 3 300"));
    CHECK(has("port rate Mbit/s class order packets bytes dropped queued"));
    CHECK(has("wan 1,000.000 none last 7 700 0 0"));
    CHECK(has("wan 1,000.000 gold priority 2 5,000 640,000 1,234 31"));
    CHECK(has("lan - gold - - - 77 -"));  // no scheduler, but it was full
    CHECK_FALSE(has("lan - none - - - 0 -"));
    const Json json = Json::parse(run({"show", "qos", "-j"}).out);
    CHECK(json["policers"]["0"]["policer"] == "slow");
    CHECK(json["classes"].size() == 4);
    CHECK(json["classes"]["1"]["queued"] == 31);
}

TEST_CASE("cwctl: show asks and prints, -j prints JSON", "[client]") {
    Server server;
    server.answers["/cachewire/drops"] = R"({"acl_deny":1234,"policer":0,"total":1234})";
    server.answers["/cachewire/drops,red"] = R"({"acl_deny":4,"policer":0,"total":4})";
    server.answers["/cachewire/port/list"] = R"({"0":{"name":"wan"},"next":1})";
    server.answers["/cachewire/port/list,1,256"] = R"({"1":{"name":"lan"}})";
    server.answers["/cachewire/port/stats,wan"] =
        R"({"rx_packets":1000,"rx_bytes":64000,"tx_packets":0,"tx_bytes":0,"admin":"up","link":"up"})";
    server.answers["/cachewire/port/stats,lan"] =
        R"({"rx_packets":0,"rx_bytes":0,"tx_packets":1000,"tx_bytes":64000,"admin":"down","link":"down"})";
    server.answers["/cachewire/ledger"] = R"({"error":"not ready"})";
    server.start();

    const Result drops = run({"show", "drops"});
    CHECK(drops.status == kDone);
    CHECK(drops.out.find("acl_deny    1,234  a deny rule") != std::string::npos);
    CHECK(drops.out.find("policer") == std::string::npos);
    CHECK(Json::parse(run({"-j", "show", "drops"}).out) == Json::parse(server.answers["/cachewire/drops"]));
    CHECK(Json::parse(run({"show", "drops", "--tenant", "red", "-j"}).out)["total"] == 4);

    const Result ports = run({"show", "ports"});
    CHECK(ports.status == kDone);
    CHECK(ports.out.find("wan   up     up         1,000    64,000") != std::string::npos);
    CHECK(ports.out.find("lan   down   down           0         0") != std::string::npos);
    CHECK(Json::parse(run({"show", "ports", "-j"}).out)["1"]["name"] == "lan");

    const Result ledger = run({"show", "ledger"});
    CHECK(ledger.status == kRefused);
    CHECK(ledger.err == "/cachewire/ledger: not ready\n");
    const Result sessions = run({"show", "sessions"});
    CHECK(sessions.status == kUsage);
    CHECK(sessions.err == "show sessions: not supported yet by this cachewire\n");
}

TEST_CASE("cwctl: wrong usage is status 2 and a sentence", "[client]") {
    const std::vector<std::vector<std::string>> cases = {
        {},
        {"dance"},
        {"show"},
        {"show", "dance"},
        {"show", "ports", "--tenant", "red"},
        {"show", "info", "--rate"},
        {"show", "drops", "--nothing"},
        {"explain", "wan", "tcp", "10.0.0.1", "10.0.0.2", "--len", "64"},
        {"reload", "now"}};
    for (const auto& words : cases) {
        const Result result = run(words);
        INFO(result.err);
        CHECK(result.status == kUsage);
        CHECK_FALSE(result.err.empty());
    }
    CHECK(run({"--help"}).status == kDone);
    CHECK(run({"--help"}).out.find("reload") != std::string::npos);
}

TEST_CASE("cwctl: nobody there is status 3 and names the socket", "[client]") {
    Server server;  // its folder only
    const Result result = run({"-p", "none", "show", "info"});
    CHECK(result.status == kNotRunning);
    CHECK(result.err.find("/dpdk/none/dpdk_telemetry.v2: No such file or directory") != std::string::npos);
    server.start();
    CHECK(run({"-p", "none", "reload"}).err.find("run with the file prefix rte") != std::string::npos);
}

TEST_CASE("cwctl: only prefixes of living processes are named", "[client]") {
    Server server;
    server.start();
    // A killed process leaves its socket file; another folder holds a file of the name that is none.
    const std::string dead = telemetry_path("dead");
    std::filesystem::create_directories(runtime_dir("dead"));
    ::close(Server::listen_on(dead, SOCK_SEQPACKET));
    std::filesystem::create_directories(runtime_dir("file"));
    std::ofstream(telemetry_path("file")) << "text";
    REQUIRE(std::filesystem::is_socket(dead));
    CHECK(running_prefixes() == std::vector<std::string>{"rte"});
    const Result result = run({"-p", "dead", "show", "info"});
    CHECK(result.status == kNotRunning);
    CHECK(result.err.find("nobody listens; DPDK programs run with the file prefix rte (-p PREFIX)") !=
          std::string::npos);
}

TEST_CASE("cwctl: an unknown word names the nearest, and what there is", "[client]") {
    CHECK(run({"relaod"}).err ==
          "no 'relaod'; did you mean 'reload'? there are: show, reload, confirm, rollback, block, unblock, memoize, "
          "log, sessions, rebalance, neighbors\n");
    CHECK(run({"dance"}).err ==
          "no 'dance'; there are: show, reload, confirm, rollback, block, unblock, memoize, log, sessions, rebalance, "
          "neighbors\n");
    CHECK(run({}).err ==
          "a command is expected; there are: show, reload, confirm, rollback, block, unblock, memoize, log, sessions, "
          "rebalance, neighbors\n");
    const std::string drosp = run({"show", "drosp"}).err;
    CHECK(drosp.find("show: no 'drosp'; did you mean 'drops'? there are: info, ports,") == 0);
    CHECK(drosp.find("services") == std::string::npos);  // not there yet, so not offered
    CHECK(run({"show", "--help"}).out.find("services") == std::string::npos);
    CHECK(run({"-p"}).err.find("--help lists the commands") != std::string::npos);
}

TEST_CASE("cwctl: --version needs no cachewire", "[client]") {
    const Result result = run({"--version"});
    CHECK(result.status == kDone);
    CHECK(result.out == "cwctl " CACHEWIRE_VERSION "\n");
}

TEST_CASE("cwctl: reload says what came of it", "[client]") {
    Server server;
    server.control_answer = R"({"ok":true,"generation":3})";
    server.start();
    const Result done = run({"reload"});
    CHECK(done.status == kDone);
    CHECK(done.out == "reloaded: generation 3\n");
    CHECK(run({"reload", "--dry-run"}).status == kDone);
    CHECK(Json::parse(server.last_request) == Json::parse(R"({"command":"reload","dry_run":true})"));
    CHECK(run({"reload", "--confirm", "2m"}).out.find("within 2m keeps it") != std::string::npos);
    CHECK(Json::parse(server.last_request) == Json::parse(R"({"command":"reload","dry_run":false,"confirm_s":120})"));
    for (const char* time : {"", "0s", "2", "2 m", "s", "-1s", "99999999d"}) {
        INFO(time);
        CHECK(run({"reload", "--confirm", time}).status == kUsage);
    }

    server.control_answer = R"({"ok":false,"error":"the file has errors","diagnostics":["a.yaml:1:2: error: x"]})";
    const Result refused = run({"reload"});
    CHECK(refused.status == kRefused);
    CHECK(refused.err == "a.yaml:1:2: error: x\nreload refused: the file has errors\n");
    const Result json = run({"reload", "-j"});
    CHECK(json.status == kRefused);
    CHECK(Json::parse(json.out)["ok"] == false);
}

TEST_CASE("cwctl: sessions are listed page by page and ended by filter", "[client]") {
    Server server;
    server.answers["/cachewire/session/list,red"] = R"({"next":40})";  // nothing found so far, and not the end
    server.answers["/cachewire/session/list,red,40,256"] =
        R"({"41":{"proto":"tcp","src":"10.0.0.1","src_port":1024,"dst":"2001:db8::2","dst_port":22,"state":"new"},"next":50})";
    server.answers["/cachewire/session/list,red,50,256"] = R"({"next":50})";  // leads to itself
    server.answers["/cachewire/session/list,blue"] = "{}";
    server.answers["/cachewire/session/top,red"] = R"({"0":{"proto":"tcp","src":"10.0.0.9"}})";
    server.answers["/cachewire/session/top,red,packets,3"] = "{}";
    server.control_answer = R"({"ok":true,"killed":1234})";
    server.start();
    const Result list = run({"sessions", "list", "--tenant", "red"});
    CHECK(list.status == kDone);
    CHECK(list.out.find("tcp    10.0.0.1:1024  [2001:db8::2]:22  new") != std::string::npos);
    CHECK(Json::parse(run({"-j", "sessions", "list", "--tenant", "red"}).out).size() == 1);
    CHECK(run({"sessions", "list", "--tenant", "blue"}).out == "no sessions\n");
    CHECK(run({"sessions", "top", "--tenant", "red"}).out.find("10.0.0.9") != std::string::npos);
    CHECK(run({"sessions", "top", "--tenant", "red", "packets", "3"}).out == "no sessions\n");
    CHECK(run({"sessions", "top"}).status == kUsage);

    CHECK(run({"sessions", "kill", "--tenant", "red", "all"}).status == kUsage);  // it would end other tenants' too
    const Result kill = run({"sessions", "kill", "tenant=red", "dst_port=22"});
    CHECK(kill.status == kDone);
    CHECK(kill.out == "1,234 sessions ended\n");
    CHECK(Json::parse(server.last_request) ==
          Json::parse(R"({"command":"sessions_kill","filter":"tenant=red dst_port=22"})"));
    server.control_answer = R"({"ok":false,"error":"no tenant 'read'"})";
    const Result refused = run({"sessions", "kill", "tenant=read"});
    CHECK(refused.status == kRefused);
    CHECK(refused.err == "sessions kill: no tenant 'read'\n");

    for (const std::vector<std::string>& words : std::vector<std::vector<std::string>>{
             {"sessions"}, {"sessions", "kill"}, {"sessions", "list"}, {"sessions", "dance"}, {"sessions", "top"}}) {
        const Result result = run(words);
        CHECK(result.status == kUsage);
        CHECK_FALSE(result.err.empty());
    }
}
