// SPDX-License-Identifier: BSD-3-Clause
#include "control/control_socket.h"

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <rte_log.h>

#include "base/error.h"
#include "control_socket_rig.h"
#include "support/catch.h"

using namespace cachewire::test;

namespace {

// What is logged while it lives.
class Log {
  public:
    Log() : stream_(::open_memstream(&text_, &size_)) { ::rte_openlog_stream(stream_); }
    ~Log() {
        ::rte_openlog_stream(nullptr);
        std::fclose(stream_);
        std::free(text_);
    }
    Log(const Log&) = delete;
    Log& operator=(const Log&) = delete;
    std::string text() {
        std::fflush(stream_);
        return {text_, size_};
    }

  private:
    char* text_ = nullptr;
    std::size_t size_ = 0;
    std::FILE* stream_;
};

}  // namespace

TEST_CASE("control socket: who asked, for what and what came of it is logged", "[control]") {
    const Folder folder;
    const auto socket = echo_socket(folder.socket());
    const std::string who = "cachewire: info: control socket: pid " + std::to_string(::getpid()) + ", uid " +
                            std::to_string(::getuid()) + ": ";
    const std::string warned = "cachewire: warning: " + who.substr(who.find("control"));
    const std::vector<std::pair<std::string, std::string>> cases = {
        {R"({"command":"echo","text":"a\nb"})", who + R"({"command":"echo","text":"a\nb"}: done {})"
                                                      "\n"},
        {R"({"command":"refuse"})", warned + R"({"command":"refuse"}: refused: "no")"
                                             "\n"},
        {R"({"command":"fail"})", warned + R"({"command":"fail"}: refused: "it \ufffd can't")"
                                           "\n"},
        {"nonsense", warned + R"(<discarded>: refused: "a request is one JSON object a line")"
                              "\n"},
    };
    for (const auto& [sent, logged] : cases) {
        INFO(sent);
        Log log;
        Client client(folder.socket());
        REQUIRE(client.send(sent + "\n"));
        turn(*socket);
        CHECK(log.text() == logged);
    }
    Log log;
    Client client(folder.socket());
    REQUIRE(client.send(R"({"command":"echo","text":")" + std::string(5000, 'x') + "\"}\n"));
    turn(*socket);
    CHECK(log.text().size() < 600);
}

TEST_CASE("control socket: one JSON object a line gets one a line back", "[control]") {
    const Folder folder;
    const auto socket = echo_socket(folder.socket());
    struct Case {
        const char* what;
        std::string sent;
        std::string answer;
    };
    const std::vector<Case> cases = {
        {"a command", R"({"command":"echo","text":"hi"})", R"({"text":"hi","ok":true})"},
        {"a refusal", R"({"command":"refuse"})", R"({"ok":false,"error":"no"})"},
        {"an exception, its text made UTF-8", R"({"command":"fail"})", "{\"ok\":false,\"error\":\"it \uFFFD can't\"}"},
        {"an unknown command", R"({"command":"dance"})",
         R"({"ok":false,"error":"command 'dance' is not supported yet"})"},
        {"no command", R"({"x":1})", R"({"ok":false,"error":"the request has no \"command\""})"},
        {"a command of another type", R"({"command":7})", R"({"ok":false,"error":"the request has no \"command\""})"},
        {"an array", "[1]", R"({"ok":false,"error":"a request is one JSON object a line"})"},
        {"broken JSON", "{\"command\":", R"({"ok":false,"error":"a request is one JSON object a line"})"},
        {"bytes that are no text", "\x80\xff\x01", R"({"ok":false,"error":"a request is one JSON object a line"})"},
        {"60 000 brackets", std::string(60000, '['), R"({"ok":false,"error":"a request is one JSON object a line"})"},
        {"a carriage return", "{\"command\":\"echo\",\"text\":1}\r", R"({"text":1,"ok":true})"},
    };
    Client client(folder.socket());
    for (const Case& c : cases) {
        INFO(c.what);
        REQUIRE(client.send(c.sent + "\n"));
        turn(*socket);
        CHECK(client.receive() == c.answer + "\n");
    }
    REQUIRE(client.send("\n  \n"));
    turn(*socket);
    CHECK(client.receive().empty());
    CHECK_FALSE(client.closed());
}

TEST_CASE("control socket: lines may come in pieces and several at once", "[control]") {
    const Folder folder;
    const auto socket = echo_socket(folder.socket());
    Client client(folder.socket());
    const std::string line = R"({"command":"echo","text":1})";
    for (const char c : line) {
        REQUIRE(client.send(std::string(1, c)));
        turn(*socket);
    }
    CHECK(client.receive().empty());
    REQUIRE(client.send("\n" + line + "\n" + line + "\n{\"comm"));
    turn(*socket);
    CHECK(client.receive() == "{\"text\":1,\"ok\":true}\n{\"text\":1,\"ok\":true}\n{\"text\":1,\"ok\":true}\n");
    REQUIRE(client.send("and\":\"refuse\"}\n"));
    turn(*socket);
    CHECK(client.receive() == "{\"ok\":false,\"error\":\"no\"}\n");
}

TEST_CASE("control socket: a client with many lines waits behind the others", "[control]") {
    const Folder folder;
    ControlSocket socket(folder.socket());
    std::vector<int> order;
    socket.add("mark", [&order](const Json& request) {
        order.push_back(request.at("who"));
        return Json::object();
    });
    Client greedy(folder.socket()), modest(folder.socket());
    std::string many;
    for (int i = 0; i < 100; ++i) many += "{\"command\":\"mark\",\"who\":1}\n";
    REQUIRE(greedy.send(many));
    REQUIRE(modest.send("{\"command\":\"mark\",\"who\":2}\n"));
    // Answers that nobody reads hold the next line back, so it reads.
    for (int i = 0; i < 10; ++i) {
        turn(socket);
        greedy.receive();
    }
    REQUIRE(order.size() == 101);
    CHECK((order[0] == 2 || order[1] == 2));
}

TEST_CASE("control socket: half a line of a client that ended is never run", "[control]") {
    const Folder folder;
    const auto socket = echo_socket(folder.socket());
    Client client(folder.socket());
    REQUIRE(client.send("{\"command\":\"echo\",\"text\":1}\n{\"command\":\"echo\",\"text\":2}"));
    client.end_of_input();
    turn(*socket);
    CHECK(client.receive() == "{\"text\":1,\"ok\":true}\n");
    CHECK(client.closed());
}

TEST_CASE("control socket: an endless line is refused with a sentence and closed", "[control]") {
    const Folder folder;
    const auto socket = echo_socket(folder.socket());
    Client client(folder.socket());
    for (int i = 0; i < 17; ++i) {
        if (!client.send(std::string(4096, 'x'))) break;
        turn(*socket);
    }
    CHECK(client.receive() == "{\"ok\":false,\"error\":\"the line is longer than 65536 bytes\"}\n");
    CHECK(client.closed());
}

TEST_CASE("control socket: a client that reads slowly or not at all stops nobody", "[control]") {
    const Folder folder;
    const auto socket = echo_socket(folder.socket());
    Client slow(folder.socket()), other(folder.socket());
    REQUIRE(slow.send("{\"command\":\"big\"}\n{\"command\":\"big\"}\n"));
    CHECK(turn(*socket) < 100);
    REQUIRE(other.send("{\"command\":\"echo\",\"text\":1}\n"));
    turn(*socket);
    CHECK(other.receive() == "{\"text\":1,\"ok\":true}\n");

    SECTION("it gets all of it once it reads") {
        std::size_t bytes = 0;
        for (int i = 0; i < 1000 && bytes < std::size_t{8} << 20; ++i) {
            bytes += slow.receive().size();
            turn(*socket);
        }
        CHECK(bytes == 2 * ((4u << 20) + std::string("{\"text\":\"\",\"ok\":true}\n").size()));
    }
    SECTION("it is forgotten once it hangs up") {
        slow.hang_up();
        turn(*socket);
        std::vector<pollfd> fds;
        socket->append_poll(fds);
        CHECK(fds.size() == 2);  // the listener and the other client
    }
}

TEST_CASE("control socket: 200 idle connections don't lock a working client out", "[control]") {
    const Folder folder;
    const auto socket = echo_socket(folder.socket());
    std::vector<std::unique_ptr<Client>> idle;
    for (int i = 0; i < 200; ++i) {
        idle.push_back(std::make_unique<Client>(folder.socket()));
        REQUIRE(idle.back()->connected());
        turn(*socket);
    }
    std::vector<pollfd> fds;
    socket->append_poll(fds);
    CHECK(fds.size() == 33);
    Client client(folder.socket());
    REQUIRE(client.send("{\"command\":\"echo\",\"text\":1}\n"));
    turn(*socket);
    CHECK(client.receive() == "{\"text\":1,\"ok\":true}\n");
    CHECK(idle.front()->receive() ==
          "{\"ok\":false,\"error\":\"closed: 32 clients are the limit and this one was idle for longest\"}\n");
    CHECK(idle.front()->closed());
    idle.back()->receive();
    CHECK_FALSE(idle.back()->closed());
}

TEST_CASE("control socket: dead clients don't use up the limit", "[control]") {
    const Folder folder;
    const auto socket = echo_socket(folder.socket());
    for (int i = 0; i < 50; ++i) {
        Client client(folder.socket());
        REQUIRE(client.send("{\"command\":\"big\"}\n"));
        turn(*socket);
    }
    turn(*socket);
    std::vector<pollfd> fds;
    socket->append_poll(fds);
    CHECK(fds.size() == 1);
}

TEST_CASE("control socket: mode 0660 whatever the umask, gone after the end", "[control]") {
    const Folder folder;
    const mode_t before = ::umask(0);
    for (const mode_t mask : {0, 022, 077}) {
        ::umask(mask);
        const auto socket = echo_socket(folder.socket());
        struct stat status = {};
        REQUIRE(::stat(folder.socket().c_str(), &status) == 0);
        CHECK((status.st_mode & 07777) == 0660);
    }
    ::umask(before);
    CHECK_FALSE(std::filesystem::exists(folder.socket()));
}

TEST_CASE("control socket: a killed process's socket is replaced, a live one is never taken", "[control]") {
    const Folder folder;
    const pid_t child = ::fork();
    if (child == 0) {
        const auto socket = echo_socket(folder.socket());
        ::kill(::getpid(), SIGKILL);
    }
    int status = 0;
    REQUIRE(::waitpid(child, &status, 0) == child);
    REQUIRE(WIFSIGNALED(status));
    REQUIRE(std::filesystem::exists(folder.socket()));

    const auto first = echo_socket(folder.socket());
    CHECK_THROWS_AS(echo_socket(folder.socket()), cachewire::base::MachineError);
    Client client(folder.socket());
    REQUIRE(client.send("{\"command\":\"refuse\"}\n"));
    turn(*first);
    CHECK(client.receive() == "{\"ok\":false,\"error\":\"no\"}\n");

    // Even where somebody removed the lock file.
    std::filesystem::remove(folder.socket() + ".lock");
    CHECK_THROWS_AS(echo_socket(folder.socket()), cachewire::base::MachineError);
    Client again(folder.socket());
    CHECK(again.connected());
}

TEST_CASE("control socket: what can't be done is said", "[control]") {
    const Folder folder;
    const auto message = [](const std::string& path) -> std::string {
        try {
            const ControlSocket socket(path);
            return "none";
        } catch (const cachewire::base::MachineError& e) {
            return e.what();
        }
    };
    CHECK(message(folder.path + "/none/cachewire_control").find("No such file or directory") != std::string::npos);
    CHECK(message(folder.path + "/" + std::string(120, 'x')).find("shorter --file-prefix") != std::string::npos);
    std::filesystem::create_directory(folder.socket());
    CHECK(message(folder.socket()).find("is no socket") != std::string::npos);
}
