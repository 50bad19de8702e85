// Protocol server: takes requests from the mailbox, does them, answers each.
#ifndef WEIR_PROTOCOL_H
#define WEIR_PROTOCOL_H

#include "card.h"

// Moves words, and takes at most one message.
void protocol_poll(struct card *card, uint64_t now);

#endif
