// Says who waits for what, for the message of a hang.
#include <string>

#include "sm.hpp"

namespace simfa {

std::string Sm::describe_waits() const {
    std::string text;
    for (int i = 0; i < kernel_.roles; ++i) {
        const Role& role = roles_[i];
        if (role.state == Role::State::ended) continue;
        // Python replaces @program:instruction by names and line numbers.
        text += "CTA " + std::to_string(index_) + " role " + std::to_string(i) + " at @" +
                std::to_string(role.program) + ":" + std::to_string(role.pc == nullptr ? 0 : role.pc->flat) +
                " waits for ";
        switch (role.wait) {
            case Role::Wait::fill: {
                const Ring& ring = barriers_.ring(role.ring);
                const Stage& stage = barriers_.stage(role.ring, role.wait_target);
                text += "fill " + std::to_string(role.wait_target) + " of ring #" + std::to_string(role.ring) +
                        " (stage " + std::to_string(role.wait_target % ring.stages) + ", " +
                        std::to_string(stage.credited_bytes) + " of " +
                        std::to_string((role.wait_target / ring.stages + 1) * ring.bytes) + " bytes arrived)";
                break;
            }
            case Role::Wait::stage: {
                const Ring& ring = barriers_.ring(role.ring);
                const Stage& stage = barriers_.stage(role.ring, role.wait_target);
                text += "stage " + std::to_string(role.wait_target % ring.stages) + " of ring #" +
                        std::to_string(role.ring) + " to be released (" + std::to_string(stage.releases) + " of " +
                        std::to_string(role.wait_target / ring.stages * ring.releases) + " arrivals)";
                break;
            }
            case Role::Wait::barrier:
                text += "named barrier " + std::to_string(role.ring) + " (" +
                        std::to_string(barriers_.signals(role.ring)) + " of " + std::to_string(role.wait_count) +
                        " signals)";
                break;
            case Role::Wait::stores:
                text += "store group " + std::to_string(role.wait_target);
                break;
            case Role::Wait::tile:
                text += "its next tile";
                break;
            case Role::Wait::none:
                text += "nothing that is known";
                break;
        }
        text += "\n";
    }
    return text;
}

}  // namespace simfa
