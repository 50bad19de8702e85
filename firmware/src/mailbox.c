#include "mailbox.h"

#include "clocks.h"
#include "crc32.h"

static_assert((MAILBOX_OUT_WORDS & (MAILBOX_OUT_WORDS - 1u)) == 0u, "a power of two");
static_assert(MAILBOX_OUT_WORDS >= (MAILBOX_RESERVE + MAILBOX_MESSAGE_WORDS), "unsolicited messages beside replies");

void mailbox_init(struct mailbox *mailbox, uint32_t clock_khz)
{
    *mailbox = (struct mailbox){.patience = clocks_of_us(clock_khz, MAILBOX_PATIENCE_US)};
    mailbox->lost = (reg_read32(WEIR_REG_MAILBOX_TO_CARD_STATUS) & WEIR_REG_MAILBOX_TO_CARD_STATUS_LOST_MASK) >>
                    WEIR_REG_MAILBOX_TO_CARD_STATUS_LOST_SHIFT;
}

static uint32_t waiting(const struct mailbox *mailbox) { return mailbox->out_head - mailbox->out_tail; }

void mailbox_pump(struct mailbox *mailbox, uint64_t now)
{
    for (uint32_t i = 0; (i < MAILBOX_MESSAGE_WORDS) && (mailbox->in_count < MAILBOX_MESSAGE_WORDS); i++) {
        if ((reg_read32(WEIR_REG_MAILBOX_TO_CARD_STATUS) & WEIR_REG_MAILBOX_TO_CARD_STATUS_VALID_MASK) == 0u) {
            break;
        }
        mailbox->in[mailbox->in_count] = reg_read32(WEIR_REG_MAILBOX_TO_CARD_POP);
        mailbox->in_count++;
        mailbox->last_word = now;
    }
    for (uint32_t i = 0; (i < MAILBOX_MESSAGE_WORDS) && (waiting(mailbox) != 0u); i++) {
        if ((reg_read32(WEIR_REG_MAILBOX_TO_HOST_STATUS) & WEIR_REG_MAILBOX_TO_HOST_STATUS_READY_MASK) == 0u) {
            break;
        }
        reg_write32(WEIR_REG_MAILBOX_TO_HOST_PUSH, mailbox->out[mailbox->out_tail % MAILBOX_OUT_WORDS]);
        mailbox->out_tail++;
    }
}

static void drop(struct mailbox *mailbox, uint32_t count)
{
    for (uint32_t i = count; i < mailbox->in_count; i++) {
        mailbox->in[i - count] = mailbox->in[i];
    }
    mailbox->in_count -= count;
}

static bool is_header(uint32_t word)
{
    return ((word >> 24u) == WEIR_MESSAGE_MAGIC) && ((word & 0xFFu) <= WEIR_MAX_PAYLOAD_WORDS);
}

// Drops words up to the next that may be a header, not counting the first `skip`.
static void resynchronise(struct mailbox *mailbox, uint32_t skip)
{
    uint32_t next = skip;
    while ((next < mailbox->in_count) && !is_header(mailbox->in[next])) {
        next++;
    }
    mailbox->garbage += next;
    drop(mailbox, next);
}

static void take_header(const struct mailbox *mailbox, struct mailbox_message *message)
{
    message->version = (mailbox->in[0] >> 16u) & 0xFFu;
    message->opcode = (mailbox->in[0] >> 8u) & 0xFFu;
    message->sequence = (mailbox->in_count > 1u) ? (mailbox->in[1] >> 16u) : 0u;
    message->count = 0;
}

bool mailbox_receive(struct mailbox *mailbox, uint64_t now, struct mailbox_message *message)
{
    resynchronise(mailbox, 0);
    if (mailbox->in_count == 0u) {
        return false;
    }
    const uint32_t count = mailbox->in[0] & 0xFFu;
    const bool whole = mailbox->in_count >= (count + 3u);
    if (!whole && ((now - mailbox->last_word) < mailbox->patience)) {
        return false;
    }
    take_header(mailbox, message);
    if (whole && (crc32_words(mailbox->in, count + 2u) == mailbox->in[count + 2u])) {
        message->damaged = false;
        message->count = count;
        for (uint32_t i = 0; i < count; i++) {
            message->payload[i] = mailbox->in[i + 2u];
        }
        drop(mailbox, count + 3u);
        mailbox->taken++;
        return true;
    }
    message->damaged = true;
    resynchronise(mailbox, 1);
    return true;
}

bool mailbox_can_reply(const struct mailbox *mailbox)
{
    return (MAILBOX_OUT_WORDS - waiting(mailbox)) >= MAILBOX_RESERVE;
}

static void put(struct mailbox *mailbox, uint32_t word)
{
    mailbox->out[mailbox->out_head % MAILBOX_OUT_WORDS] = word;
    mailbox->out_head++;
}

bool mailbox_send(struct mailbox *mailbox, uint32_t opcode, uint32_t sequence, uint32_t status, const uint32_t *payload,
                  uint32_t count)
{
    const uint32_t reserve = ((opcode & WEIR_UNSOLICITED) != 0u) ? MAILBOX_RESERVE : 0u;
    if ((count > WEIR_MAX_PAYLOAD_WORDS) || ((MAILBOX_OUT_WORDS - waiting(mailbox)) < (count + 3u + reserve))) {
        return false;
    }
    const uint32_t head =
        (WEIR_MESSAGE_MAGIC << 24u) | (WEIR_PROTOCOL_VERSION << 16u) | ((opcode & 0xFFu) << 8u) | count;
    const uint32_t second = (sequence << 16u) | (status & 0xFFFFu);
    uint32_t crc = crc32_word(crc32_word(crc32_begin(), head), second);
    put(mailbox, head);
    put(mailbox, second);
    for (uint32_t i = 0; i < count; i++) {
        put(mailbox, payload[i]);
        crc = crc32_word(crc, payload[i]);
    }
    put(mailbox, crc32_end(crc));
    return true;
}

bool mailbox_drained(const struct mailbox *mailbox)
{
    return (waiting(mailbox) == 0u) &&
           ((reg_read32(WEIR_REG_MAILBOX_TO_HOST_STATUS) & WEIR_REG_MAILBOX_TO_HOST_STATUS_WORDS_MASK) == 0u);
}

uint32_t mailbox_lost(struct mailbox *mailbox)
{
    const uint32_t lost = (reg_read32(WEIR_REG_MAILBOX_TO_CARD_STATUS) & WEIR_REG_MAILBOX_TO_CARD_STATUS_LOST_MASK) >>
                          WEIR_REG_MAILBOX_TO_CARD_STATUS_LOST_SHIFT;
    const uint32_t more = (lost - mailbox->lost) & 0xFFFFu;
    mailbox->lost = lost;
    return more;
}
