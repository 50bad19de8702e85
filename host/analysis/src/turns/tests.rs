//! Transactions from blocks.

use super::*;

#[test]
fn turns_take_the_memory_that_the_book_states() {
    assert!(size_of::<Turn>() <= 64, "{}", size_of::<Turn>());
    assert!(size_of::<Past>() <= 320, "{}", size_of::<Past>());
}

const PUSH: u8 = BlockEnd::Push as u8;
const IDLE: u8 = BlockEnd::Idle as u8;

/// A flow whose peers acknowledge everything at once.
struct Talk {
    turn: Turn,
    next: [u32; 2],
    now: u64,
}

impl Talk {
    fn new() -> Self {
        Self {
            turn: Turn::default(),
            next: [0xffff_ff00, 7000],
            now: 1000,
        }
    }

    fn block(&mut self, side: usize, bytes: u32, code: u8) -> Option<(Finished, Signature)> {
        self.block_of(side, bytes, code, 1)
    }

    fn close(&mut self) -> Option<(Finished, Signature)> {
        let spare = &mut Responses::default();
        self.turn.close(ClientFin::default(), None, None, spare)
    }

    fn block_of(&mut self, side: usize, bytes: u32, code: u8, packets: u16) -> Option<(Finished, Signature)> {
        let b = Block {
            first: self.now,
            last: self.now + 10,
            seq: self.next[side],
            bytes,
            ack: self.next[1 - side],
            flight: bytes,
            packets,
            max_segment: 1,
            window: 1,
            ttl: 1,
            known: 3,
        };
        self.now += 100;
        self.next[side] = self.next[side].wrapping_add(bytes);
        self.turn
            .block(side, code, &b, ClientFin::default, &mut Responses::default())
    }
}

fn text(signature: &Signature) -> String {
    let mut out = String::new();
    signature.write(&mut out);
    out
}

#[test]
fn request_and_response_alternate() {
    let mut t = Talk::new();
    assert!(t.block(0, 178, PUSH).is_none());
    assert!(t.block(0, 1284, PUSH).is_none());
    assert!(t.block(1, 245, PUSH).is_none());
    let (done, signature) = t.block(0, 29, PUSH).expect("the next request ends it");
    assert_eq!(text(&signature), "Request: blk[178]; blk[1284]-blk[2xx]");
    assert_eq!((done.request_bytes, done.response_bytes), (1462, 245));
    assert_eq!(
        (done.request, done.server, done.response, done.end),
        (110, Some(90), Some(10), Some(100))
    );
    assert_eq!((done.index, done.client, done.overlapped), (1, None, false));
    let (last, signature) = t.close().expect("in progress");
    assert_eq!(
        (text(&signature).as_str(), last.client, last.server),
        ("Request: blk[29]", Some(90), None)
    );
    assert_eq!(t.turn.shares().answered, 1);
}

#[test]
fn an_idle_block_goes_on() {
    let mut t = Talk::new();
    t.block(0, 100, PUSH);
    t.block(1, 1000, IDLE);
    t.block(1, 500, PUSH);
    t.block(1, 500, PUSH);
    let (_, signature) = t.close().expect("in progress");
    assert_eq!(text(&signature), "Request: blk[100]-blk[1xxx]; blk[5xx]");
}

#[test]
fn a_greeting_has_an_empty_request() {
    let mut t = Talk::new();
    t.block(1, 89, PUSH);
    let (done, signature) = t.block(0, 10, PUSH).expect("ended by the client");
    assert_eq!(
        (text(&signature).as_str(), done.request_bytes, done.server),
        ("Request: -blk[8x]", 0, None)
    );
    assert_eq!(t.turn.shares().answered, 0);
}

#[test]
fn crossing_data_is_marked() {
    let mut t = Talk::new();
    t.block(0, 100, PUSH);
    t.next[0] = t.next[0].wrapping_sub(40); // the server has only 60 of the 100
    t.block(1, 10, PUSH);
    let (done, _) = t.close().expect("in progress");
    assert!(done.overlapped);
}

#[test]
fn a_late_push_splits_its_block() {
    let mut t = Talk::new();
    let start = t.next[1];
    t.block(0, 1, PUSH);
    t.turn.push_at(1, start + 30); // before the block's record
    t.block(1, 100, PUSH);
    t.turn.push_at(1, start + 50); // after it
    let (_, signature) = t.close().expect("in progress");
    assert_eq!(text(&signature), "Request: blk[1]-blk[3x]; blk[2x]; blk[5x]");
}

#[test]
fn losses_belong_to_the_transaction_of_their_time() {
    let mut t = Talk::new();
    t.block(0, 1, PUSH); // 1000
    t.turn.loss(1050);
    t.block(1, 1, PUSH); // 1100
    for i in 0..20 {
        t.turn.loss(1150 + i);
    }
    t.turn.loss(1205); // in the request that begins at 1200 and has not ended
    let (done, _) = t.block(0, 1, PUSH).expect("ended");
    assert_eq!(done.losses, 21);
    assert_eq!(t.close().expect("in progress").0.losses, 1);
}

/// What the server had acknowledged when it answered is the request's, and not the next one's.
#[test]
fn the_end_of_a_request_that_was_not_seen_is_its_own() {
    let sizes = |code: u8, packets: u16, told: Option<(u64, u32)>, next: u32| {
        let mut t = Talk::new();
        t.block(0, 500, code); // 1000
        if let Some((time, behind)) = told {
            t.turn.acked_unseen(Unseen {
                time,
                from: None,
                to: t.next[0].wrapping_add(behind),
            });
        }
        let seen = t.next[0];
        t.next[0] = seen.wrapping_add(300);
        t.block_of(1, 700, PUSH, packets); // 1100
        t.next[0] = seen;
        let done = t.block(0, next, PUSH);
        let done = done.into_iter().chain(t.close());
        done.map(|(_, signature)| text(&signature)).collect::<Vec<_>>()
    };
    let one = ["Request: blk[500]; blk[300]-blk[7xx]", "Request: blk[900]"];
    assert_eq!(sizes(PUSH, 1, None, 1200), one);
    let joined = ["Request: blk[800]-blk[7xx]", "Request: blk[900]"];
    assert_eq!(
        sizes(BlockEnd::Turn as u8, 1, None, 1200),
        joined,
        "its PSH was not seen"
    );
    assert_eq!(sizes(PUSH, 1, None, 300), one[..1], "nothing new came");
    // The ACK of a longer response is that of its end: what it takes in may be the next request.
    let next = ["Request: blk[500]-blk[7xx]", "Request: blk[1200]"];
    assert_eq!(sizes(PUSH, 2, None, 1200), next);
    assert_eq!(sizes(PUSH, 2, Some((1050, 300)), 1200), one, "an ACK ahead of it told");
    assert_eq!(sizes(PUSH, 2, Some((1101, 300)), 1200), next, "it had begun");
    assert_eq!(sizes(PUSH, 2, Some((999, 300)), 1200), next, "of an earlier one");
}

/// The server answers what was not seen; `later` bytes of it come after all, and with them perhaps the next request.
#[test]
fn a_request_that_was_not_seen_is_one_all_the_same() {
    let talk = |before: bool, asked: u32, at: u64, later: u32| {
        let mut t = Talk::new();
        if before {
            t.block(0, 500, PUSH); // 1000
            t.block(1, 700, PUSH); // 1100
        }
        let from = t.next[0];
        t.turn.acked_unseen(Unseen {
            time: at,
            from: Some(from),
            to: from.wrapping_add(asked),
        });
        let first = t.block(1, 88, PUSH); // 1000 or 1200
        let next = (later > 0).then(|| t.block(0, later, PUSH)).flatten();
        let last = t.close();
        let all = first.into_iter().chain(next).chain(last);
        all.map(|(done, signature)| (text(&signature), done.client, done.server, done.missed))
            .collect::<Vec<_>>()
    };
    let unseen = |missed| ("Request: blk[15]-blk[8x]".to_owned(), None, None, Some(missed));
    assert_eq!(talk(false, 15, 1000, 0), [unseen(0)]);
    assert_eq!(
        talk(false, 15, 900, 15),
        [unseen(0)],
        "the capture has them in another order"
    );
    let [first, next] = &talk(false, 15, 900, 40)[..] else {
        panic!()
    };
    assert_eq!((first, next.0.as_str()), (&unseen(0), "Request: blk[25]"));
    let known = ("Request: blk[500]-blk[7xx]".to_owned(), None, Some(90), None);
    assert_eq!(talk(true, 15, 1150, 0), [known, unseen(90)]);
    let one = |asked, at| talk(true, asked, at, 0).len() == 1;
    assert!(one(1, 1150), "it may be a FIN");
    assert!(one(15, 1105), "it came while the response did");
    assert!(one(15, 1201), "the response had begun");
}

/// The client's FIN tells where its data ends.
#[test]
fn the_end_of_the_last_request_that_was_not_seen_is_its_own() {
    let bytes = |acked: u32, end: Option<u32>, fin: u64| {
        let mut t = Talk::new();
        t.block(0, 500, PUSH);
        let seen = t.next[0];
        t.next[0] = seen.wrapping_add(acked);
        t.block(1, 700, PUSH); // 1100
        let end = end.map(|end| seen.wrapping_add(end));
        let fin = ClientFin {
            time: fin,
            ..ClientFin::default()
        };
        let last = t.turn.close(fin, end, None, &mut Responses::default());
        last.expect("in progress").0.request_bytes
    };
    assert_eq!(bytes(300, Some(300), 1200), 800);
    assert_eq!(bytes(301, Some(300), 1200), 800, "with its FIN");
    assert_eq!(bytes(300, Some(400), 1200), 800, "the rest came later");
    assert_eq!(bytes(0, Some(300), 1200), 500);
    assert_eq!(bytes(0, Some(300), 1050), 800, "the FIN was ahead of the response");
    assert_eq!(bytes(301, None, 0), 500, "one of them may be a FIN");
}

#[test]
fn fin_in_the_request_is_noted() {
    let note = |time, repeat| {
        let mut t = Talk::new();
        t.block(0, 29, PUSH); // 1000
        t.block(1, 29, PUSH); // 1100
        let fin = ClientFin {
            time,
            ack: 7000,
            repeat,
        };
        text(
            &t.turn
                .close(fin, None, None, &mut Responses::default())
                .expect("in progress")
                .1,
        )
    };
    assert_eq!(note(1000, 0), "Request: blk[29]; conn half closed--blk[2x]");
    assert_eq!(note(1100, 0), "Request: blk[29]; conn half closed--blk[2x]");
    assert_eq!(note(1200, 0), "Request: blk[29]-blk[2x]");
    assert_eq!(
        note(1050, 1060),
        "Request: blk[29]; conn half closed; conn already half closed by client--blk[2x]"
    );
}
