#include "address_map.hpp"

#include <bit>
#include <stdexcept>
#include <utility>

namespace simfa {

namespace {

constexpr int kFields = 6;
constexpr std::array<const char*, kFields> kNames = {"column", "bank", "bank_group", "sid", "pseudo_channel", "row"};

int index_of(DramField field) { return static_cast<int>(field); }

int log2_of(std::int32_t count, const char* name) {
    if (count < 1 || !std::has_single_bit(static_cast<std::uint32_t>(count)))
        throw std::invalid_argument(std::string("DRAM organisation: ") + name + " count " + std::to_string(count) +
                                    " is not a power of two");
    return std::countr_zero(static_cast<std::uint32_t>(count));
}

// Number of independent words: one for each address bit if no two addresses share a place.
int rank(std::vector<std::uint64_t> words) {
    int found = 0;
    for (std::size_t i = 0; i < words.size(); ++i) {
        if (words[i] == 0) continue;
        ++found;
        const std::uint64_t pivot = std::uint64_t{1} << std::countr_zero(words[i]);
        for (std::size_t j = i + 1; j < words.size(); ++j)
            if ((words[j] & pivot) != 0) words[j] ^= words[i];
    }
    return found;
}

}  // namespace

DramField dram_field(const std::string& name) {
    for (int field = 0; field < kFields; ++field)
        if (name == kNames[field]) return static_cast<DramField>(field);
    throw std::invalid_argument("address mapping: no field is called \"" + name +
                                "\"; expected column, bank, bank_group, sid, pseudo_channel or row");
}

AddressMap::AddressMap(const DramOrganisation& organisation, const std::vector<Segment>& segments,
                       const std::vector<Mix>& mixes) {
    const std::array<std::int32_t, kFields> counts = {organisation.columns,         organisation.banks,
                                                      organisation.bank_groups,     organisation.sids,
                                                      organisation.pseudo_channels, organisation.rows};
    std::array<int, kFields> width{};
    int bits = 0;
    for (int field = 0; field < kFields; ++field) {
        width[field] = log2_of(counts[field], kNames[field]);
        bits += width[field];
    }
    const int bank_bits = width[1] + width[2] + width[3];
    if (width[0] > 8 || bank_bits > 6 || width[5] > 24 || bits > 32)
        throw std::invalid_argument("DRAM organisation: expected up to 256 columns, 64 banks and 2^32 bursts");
    // Lowest bit of each field in a place word.
    const std::array<int, kFields> start = {
        0, kBankShift, kBankShift + width[1], kBankShift + width[1] + width[2], kPseudoChannelShift, 8};

    std::vector<std::uint64_t> words;
    std::array<int, kFields> used{};
    for (const Segment& segment : segments)
        for (int bit = 0; bit < segment.bits; ++bit) {
            const int field = index_of(segment.field);
            words.push_back(std::uint64_t{1} << (start[field] + used[field]));
            ++used[field];
        }
    for (int field = 0; field < kFields; ++field)
        if (used[field] != width[field])
            throw std::invalid_argument(std::string("address mapping: ") + kNames[field] + " has " +
                                        std::to_string(used[field]) + " address bits; the organisation needs " +
                                        std::to_string(width[field]));
    std::vector<std::uint64_t> mixed = words;
    for (const Mix& mix : mixes) {
        const int target = index_of(mix.target);
        const int source = index_of(mix.source);
        if (mix.shift < 0 || mix.shift + width[target] > width[source])
            throw std::invalid_argument(std::string("address mapping: ") + kNames[source] + " has no bits " +
                                        std::to_string(mix.shift) + " to " +
                                        std::to_string(mix.shift + width[target] - 1) + " for " + kNames[target]);
        for (std::size_t i = 0; i < words.size(); ++i)
            for (int bit = 0; bit < width[target]; ++bit)
                if ((words[i] >> (start[source] + mix.shift + bit) & 1) != 0)
                    mixed[i] ^= std::uint64_t{1} << (start[target] + bit);
    }
    if (rank(mixed) != bits)
        throw std::invalid_argument("address mapping: two addresses share a place; an XOR takes a bit from itself");
    bits_ = bits;
    for (std::size_t byte = 0; byte < table_.size(); ++byte)
        for (std::size_t value = 0; value < 256; ++value) {
            table_[byte][value] = 0;
            for (std::size_t bit = 0; bit < 8 && 8 * byte + bit < mixed.size(); ++bit)
                if ((value >> bit & 1) != 0) table_[byte][value] ^= mixed[8 * byte + bit];
        }
}

}  // namespace simfa
