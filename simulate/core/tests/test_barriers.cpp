#include <vector>

#include "barriers.hpp"
#include "check.hpp"
#include "groups.hpp"

namespace simfa {

// Two stages; a fill is 256 bytes; a stage is free after two releases.
TEST(ring_stage_is_free_after_all_releases_of_the_last_round) {
    const std::vector<Ring> rings = {{.stages = 2, .releases = 2, .bytes = 256}};
    CtaBarriers barriers(rings);
    CHECK(barriers.free_for(0, 0));
    CHECK(barriers.free_for(0, 1));
    CHECK(!barriers.free_for(0, 2));
    barriers.release(0, 0);
    CHECK(!barriers.free_for(0, 2));
    barriers.release(0, 0);
    CHECK(barriers.free_for(0, 2));
    CHECK(!barriers.free_for(0, 3));  // of the other stage
    CHECK(!barriers.free_for(0, 4));  // of the next round
}

TEST(ring_fill_is_complete_when_expected_and_all_bytes_are_there) {
    const std::vector<Ring> rings = {{.stages = 2, .releases = 1, .bytes = 256}};
    CtaBarriers barriers(rings);
    barriers.expect(0, 0);
    barriers.credit(0, 0, 128);
    CHECK(!barriers.complete(0, 0));
    barriers.credit(0, 0, 128);
    CHECK(barriers.complete(0, 0));
    CHECK(!barriers.complete(0, 1));
    CHECK(!barriers.complete(0, 2));  // the same stage, a round later
    // The other CTA of a cluster may deliver before this one expects the fill.
    barriers.credit(0, 1, 256);
    CHECK(!barriers.complete(0, 1));
    barriers.expect(0, 1);
    CHECK(barriers.complete(0, 1));
    barriers.expect(0, 2);
    CHECK(!barriers.complete(0, 2));
    barriers.credit(0, 2, 256);
    CHECK(barriers.complete(0, 2));
    CHECK(barriers.complete(0, 0));  // an earlier round stays complete
}

TEST(ring_without_bytes_is_complete_when_expected) {
    const std::vector<Ring> rings = {{.stages = 1, .releases = 1, .bytes = 0}};
    CtaBarriers barriers(rings);
    CHECK(!barriers.complete(0, 0));
    barriers.expect(0, 0);
    CHECK(barriers.complete(0, 0));
}

TEST(rings_and_stages_do_not_mix) {
    const std::vector<Ring> rings = {{.stages = 1, .releases = 1, .bytes = 64},
                                     {.stages = 3, .releases = 1, .bytes = 64}};
    CtaBarriers barriers(rings);
    barriers.expect(1, 4);
    barriers.credit(1, 4, 64);
    const CtaBarriers& seen = barriers;
    CHECK_EQ(seen.stage(1, 1).credited_bytes, 64);  // fill 4 sits in stage 1
    CHECK_EQ(seen.stage(1, 0).credited_bytes, 0);
    CHECK_EQ(seen.stage(0, 0).credited_bytes, 0);
}

TEST(named_barrier_hands_out_signals_all_or_none) {
    const std::vector<Ring> none;
    CtaBarriers barriers(none);
    barriers.signal(3);
    CHECK(!barriers.take_signals(3, 2));
    CHECK_EQ(barriers.signals(3), 1);
    CHECK(!barriers.take_signals(4, 1));
    barriers.signal(3);
    barriers.signal(3);
    CHECK(barriers.take_signals(3, 2));
    CHECK_EQ(barriers.signals(3), 1);
}

// Completion of a group includes all earlier ones.
TEST(wgmma_groups_complete_in_order) {
    WgmmaGroups groups;
    CHECK_EQ(groups.completion(0), 0);
    groups.add(20, 86);
    groups.add(30, 94);
    CHECK_EQ(groups.commit(12), 30);
    groups.add(40, 90);  // RS after SS: done before the group ahead of it
    CHECK_EQ(groups.commit(13), 40);
    CHECK_EQ(groups.completion(0), 94);
    CHECK_EQ(groups.completion(1), 94);
    CHECK_EQ(groups.completion(-1), 0);
    CHECK_EQ(groups.committed(), 2);
}

TEST(wgmma_group_without_wgmmas_does_not_drain) {
    WgmmaGroups groups;
    CHECK_EQ(groups.commit(7), -1);
    CHECK_EQ(groups.completion(0), 7);
    groups.add(20, 50);
    groups.commit(8);
    CHECK_EQ(groups.commit(9), -1);
    CHECK_EQ(groups.completion(2), 50);
}

// 300 empty groups behind a long product: none of them is complete before it.
TEST(wgmma_groups_keep_all_that_have_not_completed) {
    WgmmaGroups groups;
    groups.add(10000, 10066);
    groups.commit(1);
    for (int i = 0; i < 300; ++i) groups.commit(2 + i);
    for (int i = 0; i <= 300; ++i) CHECK_EQ(groups.completion(i), 10066);
    groups.add(10100, 10166);
    groups.commit(400);
    CHECK_EQ(groups.completion(300), 10066);
    CHECK_EQ(groups.completion(301), 10166);
}

TEST(wgmma_groups_forget_what_has_completed) {
    WgmmaGroups groups;
    for (int i = 0; i < 10000; ++i) {
        const Cycle now = 10 * i;
        groups.add(now + 4, now + 9);
        groups.commit(now + 1);
        CHECK_EQ(groups.completion(i), now + 9);
        CHECK(groups.completion(i - 500) <= now);
    }
}

TEST(store_groups_are_read_before_they_are_answered) {
    StoreGroups stores;
    stores.add();
    stores.add();
    stores.commit();
    CHECK(!stores.done(0, true));
    stores.read(0);
    stores.read(0);
    CHECK(stores.done(0, true));
    CHECK(!stores.done(0, false));
    stores.answer(0);
    CHECK(!stores.done(0, false));
    stores.answer(0);
    CHECK(stores.done(0, false));
    CHECK(stores.done(-1, false));
}

// Answers may come in any order; group 1 counts as done only when group 0 is.
TEST(store_groups_are_done_in_order) {
    StoreGroups stores;
    for (int i = 0; i < 3; ++i) {
        stores.add();
        stores.commit();
    }
    stores.answer(1);
    CHECK(!stores.done(1, false));
    CHECK(!stores.done(0, false));
    stores.answer(0);
    CHECK(stores.done(1, false));
    CHECK(!stores.done(2, false));
}

TEST(store_groups_may_be_empty) {
    StoreGroups stores;
    stores.commit();
    CHECK(stores.done(0, false));
    CHECK(stores.done(0, true));
    stores.add();
    CHECK(stores.done(0, false));  // the open group is not committed
    CHECK_EQ(stores.open_index(), 1);
}

// 1000 groups under way at once, answered from the last to the first.
TEST(store_groups_keep_all_that_are_under_way) {
    StoreGroups stores;
    for (int i = 0; i < 1000; ++i) {
        stores.add();
        stores.read(stores.open_index());
        stores.commit();
        CHECK(stores.done(i, true));
        CHECK(!stores.done(i, false));
    }
    for (int i = 999; i > 0; --i) {
        stores.answer(i);
        CHECK(!stores.done(999, false));
    }
    stores.answer(0);
    CHECK(stores.done(999, false));
}

}  // namespace simfa
