// Mailbox transport: words to messages and back.
//
// Promise   mailbox_receive() gives each message whose CRC is right, and each damaged one whose header was
//           recognisable (magic, length), marked so. Words that belong to neither are skipped and counted; a message
//           that is cut off is given up when no word came for MAILBOX_PATIENCE_US, and what follows its first word
//           is looked at again. Any words at all leave the transport in order.
//           mailbox_send() takes a whole message or nothing.
// Bounds    mailbox_pump() moves at most a message's words in each direction; mailbox_receive() looks at most at
//           one message's words.
// Room      Unsolicited messages leave MAILBOX_RESERVE words: for a reply, and for that of work under way. A request
//           is only taken while there is as much, so that every request is answered.
#ifndef WEIR_MAILBOX_H
#define WEIR_MAILBOX_H

#include <stdbool.h>
#include <stdint.h>

#include "io.h"

#define MAILBOX_MESSAGE_WORDS (WEIR_MAX_PAYLOAD_WORDS + 3u)
#define MAILBOX_OUT_WORDS 256u // a power of two
#define MAILBOX_RESERVE (2u * MAILBOX_MESSAGE_WORDS)
#define MAILBOX_PATIENCE_US 10000u

struct mailbox_message {
    uint32_t opcode;
    uint32_t version;
    uint32_t sequence;
    uint32_t count;
    uint32_t payload[WEIR_MAX_PAYLOAD_WORDS];
    bool damaged;
};

struct mailbox {
    uint64_t last_word; // when it came
    uint64_t patience;
    uint32_t in[MAILBOX_MESSAGE_WORDS];
    uint32_t in_count;
    uint32_t out[MAILBOX_OUT_WORDS];
    uint32_t out_head; // counts on, modulo MAILBOX_OUT_WORDS
    uint32_t out_tail;
    uint32_t garbage; // words skipped
    uint32_t taken;   // good messages
    uint32_t lost;    // words that the hardware lost, modulo 2^16
};

void mailbox_init(struct mailbox *mailbox, uint32_t clock_khz);

// Moves words between the hardware and the buffers.
void mailbox_pump(struct mailbox *mailbox, uint64_t now);

// True: `message` holds a message.
WEIR_CHECKED bool mailbox_receive(struct mailbox *mailbox, uint64_t now, struct mailbox_message *message);

// Room for any reply, and for that of work under way.
WEIR_CHECKED bool mailbox_can_reply(const struct mailbox *mailbox);

// `count` words of payload; false: no room. For replies mailbox_can_reply() was true.
WEIR_CHECKED bool mailbox_send(struct mailbox *mailbox, uint32_t opcode, uint32_t sequence, uint32_t status,
                               const uint32_t *payload, uint32_t count);

// All that was sent is read by the host.
WEIR_CHECKED bool mailbox_drained(const struct mailbox *mailbox);

// Words that the hardware lost since the last call.
WEIR_CHECKED uint32_t mailbox_lost(struct mailbox *mailbox);

#endif
