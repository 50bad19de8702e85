// Mailbox transport: good messages, damaged ones, any words at all.
#include "check.h"

#include "crc32.h"
#include "mailbox.h"

static struct mailbox mailbox;
static struct mailbox_message message;
static const uint64_t patience = (uint64_t)MAILBOX_PATIENCE_US * MOCK_KHZ / 1000u;

static bool receive(void)
{
    mailbox_pump(&mailbox, mock.clocks);
    return mailbox_receive(&mailbox, mock.clocks, &message);
}

static void a_message_arrives_whole(void **state)
{
    (void)state;
    const uint32_t payload[60] = {7, 8, 9, [59] = 10};
    mailbox_init(&mailbox, MOCK_KHZ);
    assert_false(receive());
    mock_message(3, 0x1234, payload, 60);
    assert_true(receive());
    assert_false(message.damaged);
    assert_int_equal(message.opcode, 3);
    assert_int_equal(message.sequence, 0x1234);
    assert_int_equal(message.version, WEIR_PROTOCOL_VERSION);
    assert_int_equal(message.count, 60);
    assert_memory_equal(message.payload, payload, sizeof(payload));
    assert_false(receive());
    // Word by word.
    mock_message(4, 1, payload, 2);
    uint32_t words[5];
    memcpy(words, mock.to_card, sizeof(words));
    mock.to_card_count = 0;
    for (uint32_t i = 0; i < 5u; i++) {
        assert_false(receive());
        mock.clocks += patience - 1u;
        mock_words(words + i, 1);
    }
    assert_true(receive());
    assert_int_equal(message.opcode, 4);
    assert_int_equal(mailbox.garbage, 0);
    assert_int_equal(mailbox.taken, 2);
}

static void garbage_is_skipped(void **state)
{
    (void)state;
    mailbox_init(&mailbox, MOCK_KHZ);
    // No header: wrong magic, too long.
    const uint32_t garbage[] = {0, 0xFFFFFFFFu, 0x5701013Du, 0x56010100u};
    mock_words(garbage, 4);
    mock_message(2, 9, NULL, 0);
    assert_true(receive());
    assert_false(message.damaged);
    assert_int_equal(message.sequence, 9);
    assert_int_equal(mailbox.garbage, 4);
}

static void a_damaged_message_is_told_and_the_next_is_found(void **state)
{
    (void)state;
    const uint32_t payload[3] = {1, 2, 3};
    mailbox_init(&mailbox, MOCK_KHZ);
    mock_message(3, 5, payload, 3);
    mock.to_card[3] ^= 0x10u;
    mock_message(2, 6, NULL, 0);
    assert_true(receive());
    assert_true(message.damaged);
    assert_int_equal(message.opcode, 3);
    assert_int_equal(message.sequence, 5);
    assert_true(receive());
    assert_false(message.damaged);
    assert_int_equal(message.sequence, 6);
    assert_int_equal(mailbox.garbage, 6);
}

static void a_message_that_is_cut_off_is_given_up(void **state)
{
    (void)state;
    const uint32_t payload[20] = {0};
    mailbox_init(&mailbox, MOCK_KHZ);
    mock_message(3, 5, payload, 20);
    mock.to_card_count = 4;
    // This one is taken for the other's payload.
    mock_message(2, 6, NULL, 0);
    assert_false(receive());
    mock.clocks += patience;
    assert_true(receive());
    assert_true(message.damaged);
    assert_int_equal(message.sequence, 5);
    assert_true(receive());
    assert_false(message.damaged);
    assert_int_equal(message.sequence, 6);
    // Only its first word.
    mock_message(3, 7, NULL, 0);
    mock.to_card_count = 1;
    assert_false(receive());
    mock.clocks += patience;
    assert_true(receive());
    assert_true(message.damaged);
    assert_int_equal(message.sequence, 0);
    assert_int_equal(mailbox.in_count, 0);
}

static void what_does_not_fit_is_refused(void **state)
{
    (void)state;
    const uint32_t payload[61] = {0};
    mailbox_init(&mailbox, MOCK_KHZ);
    mock.to_host_room = 0;
    assert_false(mailbox_send(&mailbox, 1, 0, 0, payload, 61));
    // Unsolicited messages leave room for two replies.
    uint32_t sent = 0;
    while (mailbox_send(&mailbox, 0x84, 0, 0, payload, 3)) {
        sent++;
    }
    assert_int_equal(sent, (MAILBOX_OUT_WORDS - MAILBOX_RESERVE) / 6u);
    assert_true(mailbox_can_reply(&mailbox));
    assert_true(mailbox_send(&mailbox, 1, 0, 0, payload, 60));
    assert_false(mailbox_can_reply(&mailbox));
    assert_true(mailbox_send(&mailbox, 1, 0, 0, payload, 60));
    assert_false(mailbox_send(&mailbox, 1, 0, 0, payload, 60));
    assert_false(mailbox_drained(&mailbox));
    // The host reads again, a few words at a time.
    struct mock_reply reply;
    uint32_t replies = 0;
    for (uint32_t i = 0; i < 100u; i++) {
        mock.to_host_room = 7;
        mailbox_pump(&mailbox, mock.clocks);
    }
    while (mock_reply(&reply)) {
        replies++;
    }
    assert_int_equal(replies, sent + 2u);
    assert_true(mailbox_drained(&mailbox));
}

static void lost_words_are_counted(void **state)
{
    (void)state;
    const uint32_t payload[60] = {0};
    mailbox_init(&mailbox, MOCK_KHZ);
    assert_int_equal(mailbox_lost(&mailbox), 0);
    mock_message(3, 0, payload, 60);
    mock_message(3, 0, payload, 60);
    assert_int_equal(mailbox_lost(&mailbox), 62);
    assert_int_equal(mailbox_lost(&mailbox), 0);
}

// Random words, damaged and good messages in any order and any pieces: each good message that begins where the
// transport looks for one arrives, nothing else arrives undamaged, and in the end the transport is empty.
static void any_words_leave_it_in_order(void **state)
{
    (void)state;
    uint32_t good = 0;
    mailbox_init(&mailbox, MOCK_KHZ);
    for (uint32_t round = 0; round < 20000u; round++) {
        uint64_t r = mock_random();
        if (mock.to_card_count == 0u) {
            uint32_t payload[60];
            uint32_t count = (uint32_t)(r >> 8u) % 61u;
            for (uint32_t i = 0; i < 60u; i++) {
                payload[i] = (uint32_t)mock_random();
            }
            mock_message((uint32_t)(r >> 16u) & 0xFFu, (uint32_t)(r >> 24u) & 0xFFFFu, payload, count);
            switch (r % 8u) {
            case 0:
                mock.to_card[(r >> 40u) % mock.to_card_count] ^= 1u << (r >> 59u);
                break;
            case 1:
                mock.to_card_count = (uint32_t)(r >> 40u) % mock.to_card_count;
                break;
            case 2:
                for (uint32_t i = 0; i < mock.to_card_count; i++) {
                    mock.to_card[i] = (uint32_t)mock_random() | (((i % 5u) == 0u) ? 0x57000000u : 0u);
                }
                break;
            default:
                break;
            }
        }
        mock.clocks += (r >> 50u) * 400u;
        if (receive() && !message.damaged) {
            good++;
            assert_true(message.count <= 60u);
        }
        assert_true(mailbox.in_count <= MAILBOX_MESSAGE_WORDS);
    }
    assert_true(good > 1000u);
    // Quiet: whatever is left goes, and a message arrives at once.
    mock.to_card_count = 0;
    for (uint32_t i = 0; i < 200u; i++) {
        mock.clocks += patience;
        (void)receive();
    }
    assert_int_equal(mailbox.in_count, 0);
    mock_message(2, 77, NULL, 0);
    assert_true(receive());
    assert_false(message.damaged);
    assert_int_equal(message.sequence, 77);
}

int main(void)
{
    mock_seed_from_environment();
    const struct CMUnitTest tests[] = {
        TEST(a_message_arrives_whole),
        TEST(garbage_is_skipped),
        TEST(a_damaged_message_is_told_and_the_next_is_found),
        TEST(a_message_that_is_cut_off_is_given_up),
        TEST(what_does_not_fit_is_refused),
        TEST(lost_words_are_counted),
        TEST(any_words_leave_it_in_order),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
