// Messages between units.
#pragma once

#include <cstdint>

#include "sectors.hpp"

namespace simfa {

enum MessageKind : std::uint16_t {
    read_request,
    write_request,
    read_response,
    write_ack,
    hop_request,     // near twin to home slice: read for the pair in `extra`
    hop_response,    // home slice to near twin: the line for the pair in `extra`
    hop_invalidate,  // home slice to near twin: drop the shadow of a written line
};

// One message about a line, or sectors of one; takes effect at window start + offset of the window it is filed under.
// No field is a byte, as a store of one would make the compiler reload whatever it may alias.
struct Message {
    std::uint32_t line = 0;    // byte address / line_bytes
    std::uint16_t source = 0;  // sending unit: pair index of requests, slice index of responses and hops
    std::uint16_t offset = 0;  // cycle of arrival minus the start of the arrival window
    std::uint16_t tag = 0;     // the requester's entry, returned unchanged
    std::uint16_t kind = read_request;
    std::uint16_t flags = 0;  // returned unchanged: sectors from bit 8 on, below them the requester's; bit 0 tells the
                              // SMs of a pair apart
    std::uint16_t extra = 0;  // hop messages: originating pair; 0 otherwise
};
static_assert(sizeof(Message) == 16);

inline constexpr int kSectorShift = 8;  // in `Message::flags`

inline SectorMask sectors_of(const Message& message) { return SectorMask{message.flags} >> kSectorShift; }

}  // namespace simfa
