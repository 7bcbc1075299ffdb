#include <cstdint>
#include <string>
#include <vector>

#include "check.hpp"
#include "grid.hpp"
#include "programs.hpp"
#include "words.hpp"

namespace simfa {

namespace {

struct Ask {
    Cycle cycle;
    int cta;
};

// Grants of all pairs in order of (cycle, pair), as "cycle:cta=tile".
std::string grants(const Config& config, const Kernel& kernel, const std::vector<Ask>& asks, Cycle window) {
    Grid grid(config, kernel);
    Mailboxes box(1, 1, window, 4096);
    Mailboxes pairs(4, 1, window, 4096);
    for (const Ask& ask : asks) {
        Message message;
        message.source = static_cast<std::uint16_t>(ask.cta);
        box.post(0, 0, ask.cycle, message);
    }
    Outbox out{&pairs, nullptr, 0};
    std::string text;
    for (Cycle begin = 0; begin < 1000; begin += window) {
        grid.run(begin, box.open(0, begin), out);
        for (int pair = 0; pair < 4; ++pair)
            for (const Message& grant : pairs.open(pair, begin)) {
                CHECK_EQ(static_cast<int>(grant.kind), static_cast<int>(tile_grant));
                if (grant.line == kNoTile)
                    test::add_word(text, begin + grant.offset, ':', grant.tag, "=none");
                else
                    test::add_word(text, begin + grant.offset, ':', grant.tag, '=', grant.line);
            }
    }
    return text;
}

}  // namespace

// Four CTAs hold tiles 0 to 3 of a queue of 7. An answer takes 41 cycles, of which the grid's half is 21.
TEST(grid_hands_out_tiles_in_order_of_cycle_then_cta) {
    Config config = test::bare();
    config.tile_fetch_cycles = 41;
    const Kernel kernel = test::dynamic_kernel({test::work(1)}, 4, 7);
    const std::vector<Ask> asks = {{300, 3}, {100, 5}, {100, 2}, {40, 6}, {500, 0}};
    for (const Cycle window : {1, 7, 20})
        CHECK_EQ(grants(config, kernel, asks, window), "61:6=4 121:2=5 121:5=6 321:3=none 521:0=none");
}

TEST(grid_of_an_empty_queue_says_so) {
    Config config = test::bare();
    config.tile_fetch_cycles = 2;
    CHECK_EQ(grants(config, test::dynamic_kernel({test::work(1)}, 4, 0), {{10, 1}}, 1), "11:1=none");
}

}  // namespace simfa
