// SPDX-License-Identifier: BSD-3-Clause
// Commands whose answer takes several turns of the control loop.
#include <memory>
#include <optional>
#include <stdexcept>
#include <vector>

#include "control_socket_rig.h"
#include "support/catch.h"

using namespace cachewire::test;

TEST_CASE("control socket: an answer that takes turns keeps its own client waiting and no other", "[control]") {
    const Folder folder;
    const auto socket = echo_socket(folder.socket());
    bool ready = false, broken = false;
    unsigned looks = 0;
    socket->add_long("slow", [&](const Json& request) -> ControlSocket::Pending {
        const int number = request.at("n");
        if (number < 0) throw std::invalid_argument("below 0");
        return [&, number]() -> std::optional<Json> {
            ++looks;
            if (broken) throw std::runtime_error("it broke");
            return ready ? std::optional(Json{{"n", number}}) : std::nullopt;
        };
    });
    const std::string echo = R"({"command":"echo","text":"a"})"
                             "\n";
    Client slow(folder.socket()), other(folder.socket());
    REQUIRE(slow.send(R"({"command":"slow","n":7})"
                      "\n" +
                      echo));
    turn(*socket);
    for (int i = 0; i < 5; ++i) {
        REQUIRE(other.send(echo));
        turn(*socket);
        CHECK(other.receive() == R"({"text":"a","ok":true})"
                                 "\n");
        CHECK(slow.receive().empty());
    }
    CHECK(looks >= 5);
    // Nobody has to come for it, and what the client has asked meanwhile comes behind.
    ready = true;
    socket->handle({});
    turn(*socket);
    CHECK(slow.receive() == R"({"n":7,"ok":true})"
                            "\n"
                            R"({"text":"a","ok":true})"
                            "\n");
    const unsigned before = looks;
    socket->handle({});
    CHECK(looks == before);

    ready = false;
    REQUIRE(slow.send("{\"command\":\"slow\",\"n\":8}\n"));
    turn(*socket);
    broken = true;
    socket->handle({});
    CHECK(slow.receive() == R"({"ok":false,"error":"it broke"})"
                            "\n");
    REQUIRE(slow.send("{\"command\":\"slow\",\"n\":-1}\n"));
    turn(*socket);
    CHECK(slow.receive() == R"({"ok":false,"error":"below 0"})"
                            "\n");

    // One that hangs up before the end is forgotten at the end.
    broken = false;
    REQUIRE(slow.send("{\"command\":\"slow\",\"n\":9}\n"));
    turn(*socket);
    slow.hang_up();
    ready = true;
    socket->handle({});
    turn(*socket);
    std::vector<pollfd> fds;
    socket->append_poll(fds);
    CHECK(fds.size() == 2);  // the listener, and `other`
}

TEST_CASE("control socket: who waits for an answer is not closed for others", "[control]") {
    const Folder folder;
    const auto socket = echo_socket(folder.socket());
    bool ready = false;
    socket->add_long("slow", [&](const Json&) -> ControlSocket::Pending {
        return [&]() -> std::optional<Json> { return ready ? std::optional(Json::object()) : std::nullopt; };
    });
    Client slow(folder.socket());
    REQUIRE(slow.send("{\"command\":\"slow\"}\n"));
    turn(*socket);
    std::vector<std::unique_ptr<Client>> crowd;
    for (int i = 0; i < 64; ++i) {
        crowd.push_back(std::make_unique<Client>(folder.socket()));
        turn(*socket);
    }
    ready = true;
    socket->handle({});
    CHECK(slow.receive() == "{\"ok\":true}\n");
}
