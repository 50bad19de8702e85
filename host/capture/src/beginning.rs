//! A look at the beginning of a capture file, for what the engine has to know before its first packet.

use weir_engine::{Parser, Profile, Servers};

use crate::feed::{Feed, Item};
use crate::file::CaptureFile;
use crate::servers::Ends;
use crate::tags::{Directions, Tags};

/// Frames that are looked at: where nothing is to be found out, and at most.
const CLEAR: u64 = 1 << 12;
const FRAMES: u64 = 1 << 16;
const AT_A_TIME: usize = 256;

/// What it shows.
#[derive(Debug, Default)]
pub struct Beginning {
    /// Tags of the directions of connections.
    pub directions: Directions,
    /// Ends that answer others.
    pub servers: Servers,
}

impl Beginning {
    /// Look at the first 4,096 frames, if any has tags or comes from a connection whose server is in doubt at the first
    /// 65,536. What cannot be read ends the look; whoever reads the file tells of it.
    pub fn of(file: &mut CaptureFile) -> Self {
        let mut feed = Feed::new(Parser::new(Profile::Full));
        let (mut tags, mut ends) = (Tags::default(), Ends::default());
        loop {
            let read = feed.read(file, AT_A_TIME, |word| {
                if let Item::Packet(meta) = word.item {
                    tags.packet(meta);
                    ends.packet(meta);
                }
            });
            let most = if tags.any || ends.is_doubtful { FRAMES } else { CLEAR };
            if !matches!(read, Ok(true)) || file.frames() >= most {
                return Self {
                    directions: tags.directions(),
                    servers: ends.servers(),
                };
            }
        }
    }
}
