#include "protocol.h"

#include <stddef.h>

#include "statistics.h"

enum {
    LOG_ENTRIES_PER_REPLY = 7
};

static_assert((WEIR_READ_FAULT_LOG_REPLY_WORDS + ((uint32_t)LOG_ENTRIES_PER_REPLY * WEIR_FAULT_ENTRY_WORDS)) <=
                  WEIR_MAX_PAYLOAD_WORDS,
              "entries fit into a reply");

// What a handler says: status, and the words of the reply. Without an answer (`later`) the work under way replies.
struct reply {
    enum weir_status status;
    uint32_t count;
    uint32_t words[WEIR_MAX_PAYLOAD_WORDS];
    bool later;
};

typedef void (*handler_t)(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now);

static void refuse(struct reply *reply, enum weir_status status, uint32_t detail)
{
    reply->status = status;
    reply->words[0] = detail;
    reply->count = 1;
}

static bool measuring(const struct card *card)
{
    return (card->state != WEIR_CARD_STATE_IDLE) && (card->state != WEIR_CARD_STATE_FAULT);
}

static void hello(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    (void)now;
    const uint32_t card_abi = reg_read32(WEIR_REG_INFO_ABI);
    if ((request->payload[1] >> 16u) != (card_abi >> 16u)) {
        refuse(reply, WEIR_STATUS_BAD_VERSION, card_abi);
        return;
    }
    card_attach(card);
    reply->words[0] = WEIR_FIRMWARE_VERSION;
    reply->words[1] = card_abi;
    reply->words[2] = card->record.slot;
    reply->words[3] = card->record.reason;
    reply->words[4] = card->record.boots;
    reply->words[5] = WEIR_MAX_PAYLOAD_WORDS;
    reply->count = WEIR_HELLO_REPLY_WORDS;
}

static void get_state(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    (void)request;
    const struct servo *servo = &card->timekeeper.servo;
    uint32_t n = 0;
    reply->words[n++] = (uint32_t)card->state;
    reply->words[n++] = (uint32_t)servo->state;
    reply->words[n++] = card->guard.unhealthy;
    reply->words[n++] = card->fault_log.newest;
    reply->words[n++] = card_uptime_ms(card, now);
    reply->words[n++] = card->self_test_failed;
    reply->words[n++] = card->record.slot;
    reply->words[n++] = card->record.slots[card->record.slot].confirmed;
    reply->words[n++] = (uint32_t)card->update.state;
    reply->words[n++] = card->mailbox.taken;
    reply->words[n++] = card->mailbox.garbage;
    reply->words[n++] = (uint32_t)(int32_t)card->timekeeper.offset_ns;
    reply->words[n++] = (uint32_t)servo->rate;
    reply->words[n++] = servo->outliers;
    reply->words[n++] = servo->missed;
    reply->words[n++] = card->guard.bypasses;
    reply->count = n;
}

static bool of_the_clock(const struct mailbox_message *request)
{
    bool found = false;
    for (uint32_t i = 0; i < request->count; i += 2u) {
        found |= (request->payload[i] >= (uint32_t)WEIR_KEY_SERVO_SOURCE) &&
                 (request->payload[i] <= (uint32_t)WEIR_KEY_SERVO_HOLDOVER_PERIODS);
    }
    return found;
}

static void configure(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    uint32_t detail = 0;
    if ((request->count & 1u) != 0u) {
        refuse(reply, WEIR_STATUS_BAD_LENGTH, request->count);
        return;
    }
    reply->status = config_set(&card->config, request->payload, request->count / 2u, !measuring(card), &detail);
    if (reply->status != WEIR_STATUS_OK) {
        refuse(reply, reply->status, detail);
        return;
    }
    config_apply_live(&card->config, card->open);
    if (of_the_clock(request)) {
        timekeeper_configure(&card->timekeeper, &card->config, now);
    }
}

static void start(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    (void)request;
    if (card->state != WEIR_CARD_STATE_IDLE) {
        refuse(reply, WEIR_STATUS_BAD_STATE, (uint32_t)card->state);
        return;
    }
    reply->status = card_start(card, now);
    if (reply->status != WEIR_STATUS_OK) {
        refuse(reply, reply->status, (uint32_t)card->state);
    }
}

// The reply of what takes time comes at its end.
static void postpone(struct card *card, const struct mailbox_message *request, struct reply *reply)
{
    card->pending = (struct card_pending){.opcode = request->opcode, .sequence = request->sequence};
    reply->later = true;
}

static void stop(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    const bool possible = (card->state == WEIR_CARD_STATE_RUNNING) || (card->state == WEIR_CARD_STATE_IDLE) ||
                          ((card->state == WEIR_CARD_STATE_FAULT) && (card->self_test_failed == 0u));
    if (!possible) {
        refuse(reply, WEIR_STATUS_BAD_STATE, (uint32_t)card->state);
        return;
    }
    if ((card->state == WEIR_CARD_STATE_RUNNING) && (card->pending.opcode != 0u)) {
        refuse(reply, WEIR_STATUS_BUSY, card->pending.opcode);
    } else if (!card_stop(card, now)) {
        postpone(card, request, reply);
    } else {
        // It is done.
    }
}

static void self_test(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    (void)now;
    if (measuring(card)) {
        refuse(reply, WEIR_STATUS_BAD_STATE, (uint32_t)card->state);
    } else if (((request->payload[0] & ~SELF_TEST_ALL) != 0u) || (request->payload[1] > 10000u)) {
        refuse(reply, WEIR_STATUS_BAD_ARGUMENT, ((request->payload[0] & ~SELF_TEST_ALL) != 0u) ? 0u : 1u);
    } else if (card->pending.opcode != 0u) {
        refuse(reply, WEIR_STATUS_BUSY, card->pending.opcode);
    } else {
        self_test_begin(&card->self_test, request->payload[0], card->record.slot, card->khz, request->payload[1]);
        card_enter(card, WEIR_CARD_STATE_SELF_TEST, 0);
        postpone(card, request, reply);
    }
}

static uint64_t join(uint32_t low, uint32_t high) { return ((uint64_t)high << 32u) | low; }

static void time_sync(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    const uint64_t card_ns = join(request->payload[0], request->payload[1]);
    const uint64_t host_ns = join(request->payload[2], request->payload[3]);
    const uint64_t card_now = reg_read64(WEIR_REG_CLOCK_NOW_LOW);
    // A moment that has not been yet, or a host before 1970 or behind 2^62 ns: no pair.
    if ((card_ns > card_now) || (host_ns >= (UINT64_C(1) << 62u))) {
        refuse(reply, WEIR_STATUS_BAD_ARGUMENT, (card_ns > card_now) ? 0u : 2u);
        return;
    }
    reply->words[1] = (uint32_t)timekeeper_pair(&card->timekeeper, card_ns, host_ns, now);
    reply->words[0] = (uint32_t)card->timekeeper.servo.state;
    reply->count = WEIR_TIME_SYNC_REPLY_WORDS;
}

static void put_entry(struct reply *reply, const struct weir_fault_entry *entry)
{
    const uint32_t words[WEIR_FAULT_ENTRY_WORDS] = {
        entry->sequence, entry->code,    entry->boot,    entry->uptime_ms,
        entry->seconds,  entry->detail0, entry->detail1, entry->crc,
    };
    for (uint32_t i = 0; i < WEIR_FAULT_ENTRY_WORDS; i++) {
        reply->words[reply->count + i] = words[i];
    }
    reply->count += WEIR_FAULT_ENTRY_WORDS;
}

static void read_fault_log(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    (void)now;
    const struct fault_log *log = &card->fault_log;
    const uint32_t from = (request->payload[0] > log->oldest) ? request->payload[0] : log->oldest;
    struct weir_fault_entry entry;
    reply->words[0] = log->newest;
    reply->words[1] = 0;
    reply->count = WEIR_READ_FAULT_LOG_REPLY_WORDS;
    for (uint32_t i = 0; (i < FAULT_LOG_ENTRIES) && (reply->words[1] < (uint32_t)LOG_ENTRIES_PER_REPLY); i++) {
        if ((from <= log->newest) && (i <= (log->newest - from)) && fault_log_read(log, from + i, &entry)) {
            put_entry(reply, &entry);
            reply->words[1]++;
        }
    }
}

static void clear_fault_log(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    (void)request;
    (void)reply;
    (void)now;
    fault_log_clear(&card->fault_log);
    // Nothing else tells the next boot how far the numbers went.
    card->record.faults = card->fault_log.newest;
    boot_record_store(&card->record);
}

static void begin_update(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    (void)now;
    reply->status = update_begin(&card->update, &card->record, request->payload[0]);
    if (reply->status != WEIR_STATUS_OK) {
        refuse(reply, reply->status, 0);
        return;
    }
    reply->words[0] = card->update.slot;
    reply->count = WEIR_UPDATE_BEGIN_REPLY_WORDS;
}

static void take_update(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    (void)now;
    reply->status = update_data(&card->update, request->payload[0], &request->payload[1], request->count - 1u);
    if (reply->status != WEIR_STATUS_OK) {
        refuse(reply, reply->status, card->update.next);
        return;
    }
    reply->words[0] = card->update.next;
    reply->count = WEIR_UPDATE_DATA_REPLY_WORDS;
}

static void end_update(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    (void)now;
    if (card->pending.opcode != 0u) {
        refuse(reply, WEIR_STATUS_BUSY, card->pending.opcode);
        return;
    }
    reply->status = update_end(&card->update, reg_read32(WEIR_REG_INFO_ABI));
    if (reply->status != WEIR_STATUS_OK) {
        refuse(reply, reply->status, card->update.next);
        return;
    }
    postpone(card, request, reply);
}

static void reset(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    (void)request;
    if (card->pending.opcode != 0u) {
        refuse(reply, WEIR_STATUS_BUSY, card->pending.opcode);
        return;
    }
    card->reset_wanted = true;
    card->reset_due = now + ((uint64_t)CARD_RESET_MS * card->khz);
}

static void confirm(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    (void)request;
    (void)now;
    if ((card->state != WEIR_CARD_STATE_RUNNING) || !card->ready) {
        refuse(reply, WEIR_STATUS_BAD_STATE, (uint32_t)card->state);
        return;
    }
    card->record.slots[card->record.slot].confirmed = 1;
    boot_record_store(&card->record);
    card_log(card, WEIR_LOG_CODE_CONFIRMED, card->record.slot, WEIR_FIRMWARE_VERSION);
}

static void statistics(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    (void)request;
    statistics_collect(reply->words, card_uptime_ms(card, now), card->loop_us, &card->timekeeper);
    reply->count = WEIR_STATISTICS_WORDS;
}

// By opcode: words of payload, and whether HELLO has to be there before.
static const struct {
    handler_t handler;
    uint32_t least;
    uint32_t most;
    bool attached;
} requests[WEIR_OPCODE_STATISTICS + 1] = {
    [WEIR_OPCODE_HELLO] = {hello, WEIR_HELLO_REQUEST_WORDS, WEIR_HELLO_REQUEST_WORDS, false},
    [WEIR_OPCODE_GET_STATE] = {get_state, 0, 0, false},
    [WEIR_OPCODE_CONFIGURE] = {configure, 2, WEIR_MAX_PAYLOAD_WORDS, true},
    [WEIR_OPCODE_START] = {start, 0, 0, true},
    [WEIR_OPCODE_STOP] = {stop, 0, 0, false},
    [WEIR_OPCODE_SELF_TEST] = {self_test, WEIR_SELF_TEST_REQUEST_WORDS, WEIR_SELF_TEST_REQUEST_WORDS, false},
    [WEIR_OPCODE_TIME_SYNC] = {time_sync, WEIR_TIME_SYNC_REQUEST_WORDS, WEIR_TIME_SYNC_REQUEST_WORDS, false},
    [WEIR_OPCODE_READ_FAULT_LOG] = {read_fault_log, 1, 1, false},
    [WEIR_OPCODE_CLEAR_FAULT_LOG] = {clear_fault_log, 0, 0, false},
    [WEIR_OPCODE_UPDATE_BEGIN] = {begin_update, 1, 1, true},
    [WEIR_OPCODE_UPDATE_DATA] = {take_update, 2, 1u + WEIR_UPDATE_CHUNK_WORDS, true},
    [WEIR_OPCODE_UPDATE_END] = {end_update, 0, 0, true},
    [WEIR_OPCODE_RESET] = {reset, 0, 0, false},
    [WEIR_OPCODE_CONFIRM] = {confirm, 0, 0, true},
    [WEIR_OPCODE_STATISTICS] = {statistics, 0, 0, false},
};

static void dispatch(struct card *card, const struct mailbox_message *request, struct reply *reply, uint64_t now)
{
    if (request->damaged) {
        refuse(reply, WEIR_STATUS_BAD_CRC, 0);
    } else if (request->version != WEIR_PROTOCOL_VERSION) {
        refuse(reply, WEIR_STATUS_BAD_VERSION, WEIR_PROTOCOL_VERSION);
    } else if ((request->opcode > (uint32_t)WEIR_OPCODE_STATISTICS) || (requests[request->opcode].handler == NULL)) {
        refuse(reply, WEIR_STATUS_BAD_OPCODE, request->opcode);
    } else if ((request->count < requests[request->opcode].least) ||
               (request->count > requests[request->opcode].most)) {
        refuse(reply, WEIR_STATUS_BAD_LENGTH, request->count);
    } else if (requests[request->opcode].attached && !card->attached) {
        refuse(reply, WEIR_STATUS_BAD_STATE, (uint32_t)card->state);
    } else {
        requests[request->opcode].handler(card, request, reply, now);
    }
}

void protocol_poll(struct card *card, uint64_t now)
{
    struct mailbox_message request;
    mailbox_pump(&card->mailbox, now);
    // A request's reply and that of the work under way have room together, or it waits.
    if (!mailbox_can_reply(&card->mailbox) || !mailbox_receive(&card->mailbox, now, &request)) {
        return;
    }
    struct reply reply = {.status = WEIR_STATUS_OK};
    dispatch(card, &request, &reply, now);
    // There is room: mailbox_can_reply() was true, and a handler's own messages leave the reserve. Whatever came, a reply
    // is no message that nobody asked for.
    if (!reply.later && !mailbox_send(&card->mailbox, request.opcode & ~WEIR_UNSOLICITED, request.sequence,
                                      (uint32_t)reply.status, reply.words, reply.count)) {
        card->replies_lost++;
    }
}
