// From the number of a burst inside a channel to its place: pseudo channel, bank, row, column.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "dram_config.hpp"

namespace simfa {

enum class DramField : std::uint8_t { column, bank, bank_group, sid, pseudo_channel, row };

class AddressMap {
  public:
    // `bits` address bits, from low to high, that make up the next bits of a field.
    struct Segment {
        DramField field;
        int bits;
    };
    // XORs bits `shift`... of `source`, as the segments give them, onto all bits of `target`.
    struct Mix {
        DramField target;
        DramField source;
        int shift;
    };
    struct Place {
        std::uint32_t pseudo_channel;
        std::uint32_t bank;  // inside the pseudo channel: (SID, bank group, bank)
        std::uint32_t row;
        std::uint32_t column;
    };

    // Throws `std::invalid_argument` if the fields do not have the bits of `organisation`, or if two addresses share a
    // place.
    AddressMap(const DramOrganisation& organisation, const std::vector<Segment>& segments,
               const std::vector<Mix>& mixes);

    // Address bits above the channel's capacity are ignored.
    Place place(std::uint32_t burst) const {
        const std::uint64_t word = table_[0][burst & 0xFF] ^ table_[1][burst >> 8 & 0xFF] ^
                                   table_[2][burst >> 16 & 0xFF] ^ table_[3][burst >> 24];
        return {static_cast<std::uint32_t>(word >> kPseudoChannelShift),
                static_cast<std::uint32_t>(word >> kBankShift & 0xFF), static_cast<std::uint32_t>(word >> 8 & 0xFFFFFF),
                static_cast<std::uint32_t>(word & 0xFF)};
    }

    int bits() const { return bits_; }

  private:
    static constexpr int kBankShift = 32;
    static constexpr int kPseudoChannelShift = 40;

    // Each address bit toggles a fixed set of place bits, so a place is the XOR of one word for each address byte.
    std::array<std::array<std::uint64_t, 256>, 4> table_;
    int bits_ = 0;
};

// Field of a name used in mappings: column, bank, bank_group, sid, pseudo_channel, row; throws `std::invalid_argument`.
DramField dram_field(const std::string& name);

}  // namespace simfa
