//! FlowService: connections, transactions and findings, filtered and in pages.

use std::iter;
use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Request, Response, Status};
use weir_messages::v1::{
    Finding, GetConnectionRequest, GetConnectionResponse, GetSummaryRequest, GetSummaryResponse, GetTimelineRequest,
    GetTimelineResponse, ListConnectionsRequest, ListConnectionsResponse, ListFindingsRequest, ListFindingsResponse,
    ListPacketsRequest, ListPacketsResponse, ListSegmentsRequest, ListSegmentsResponse, ListTransactionsRequest,
    ListTransactionsResponse, TimeSlice, WatchConnectionsRequest, WatchConnectionsResponse, WatchFindingsRequest,
    WatchFindingsResponse,
};
use weir_record::FlowId;

use crate::checksum::fnv1a;
use crate::connection_feed;
use crate::facts::Facts;
use crate::filter::{Fields, Filter, Order};
use crate::finding_feed;
use crate::log::RecordLog;
use crate::packets::{self, PacketTable};
use crate::status;
use crate::streams::Streams;
use crate::token::{self, Purpose};
use crate::v1::flow_service_server::FlowService;

const MAX_PAGE: u32 = 10_000;
const DEFAULT_PAGE: u32 = 100;
/// Items taken from the store at a time, so that its lock is held shortly.
const CHUNK: usize = 4_096;
/// Packets of a connection that are shown.
const MAX_PACKETS: usize = 200_000;
/// Requests for packets that read the log at a time.
const PACKET_READERS: usize = 2;

/// The service.
pub(crate) struct Flows {
    facts: Arc<dyn Facts>,
    log: Arc<RecordLog>,
    streams: Streams,
    packet_readers: Arc<Semaphore>,
}

impl Flows {
    pub fn new(facts: Arc<dyn Facts>, log: Arc<RecordLog>, streams: Streams) -> Self {
        Self {
            facts,
            log,
            streams,
            packet_readers: Arc::new(Semaphore::new(PACKET_READERS)),
        }
    }

    /// Run a list's work, which may take long, beside the connections' tasks.
    async fn work<T: Send + 'static>(
        &self,
        work: impl FnOnce(&dyn Facts) -> Result<T, Status> + Send + 'static,
    ) -> Result<Response<T>, Status> {
        let facts = Arc::clone(&self.facts);
        let answer = tokio::task::spawn_blocking(move || work(facts.as_ref()));
        answer.await.map_err(|_| status::worker())?.map(Response::new)
    }
}

#[tonic::async_trait]
impl FlowService for Flows {
    type WatchConnectionsStream = ReceiverStream<Result<WatchConnectionsResponse, Status>>;
    type WatchFindingsStream = ReceiverStream<Result<WatchFindingsResponse, Status>>;

    async fn list_connections(
        &self,
        request: Request<ListConnectionsRequest>,
    ) -> Result<Response<ListConnectionsResponse>, Status> {
        let ListConnectionsRequest {
            filter,
            page_size,
            page_token,
            order_by,
        } = request.into_inner();
        self.work(move |facts| {
            let query = format!("connections {filter} {order_by}");
            let asked = Asked::new(facts, &query, page_size, &page_token, 0)?;
            let page = list(&asked, &filter_of(&filter)?, &order_of(&order_by)?, |from, most| {
                facts.connections(from, most)
            })?;
            let (next_page_token, total_size) = (page.token(&asked), page.total);
            Ok(ListConnectionsResponse {
                connections: page.items,
                next_page_token,
                total_size,
            })
        })
        .await
    }

    async fn get_connection(
        &self,
        request: Request<GetConnectionRequest>,
    ) -> Result<Response<GetConnectionResponse>, Status> {
        let id = request.into_inner().id;
        let (connection, transactions) = self.facts.connection(id).ok_or_else(|| unknown(id))?;
        Ok(Response::new(GetConnectionResponse {
            connection: Some(Arc::unwrap_or_clone(connection)),
            transactions: transactions.into_iter().map(Arc::unwrap_or_clone).collect(),
        }))
    }

    async fn watch_connections(
        &self,
        request: Request<WatchConnectionsRequest>,
    ) -> Result<Response<Self::WatchConnectionsStream>, Status> {
        let filter = filter_of(&request.into_inner().filter)?;
        let place = self.streams.place()?;
        let receiver = connection_feed::start(Arc::clone(&self.facts), filter, self.streams.clone(), place);
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn list_transactions(
        &self,
        request: Request<ListTransactionsRequest>,
    ) -> Result<Response<ListTransactionsResponse>, Status> {
        let ListTransactionsRequest {
            filter,
            page_size,
            page_token,
            order_by,
        } = request.into_inner();
        self.work(move |facts| {
            let query = format!("transactions {filter} {order_by}");
            let asked = Asked::new(facts, &query, page_size, &page_token, 0)?;
            let page = list(&asked, &filter_of(&filter)?, &order_of(&order_by)?, |from, most| {
                facts.transactions(from, most)
            })?;
            let (next_page_token, total_size) = (page.token(&asked), page.total);
            Ok(ListTransactionsResponse {
                transactions: page.items,
                next_page_token,
                total_size,
            })
        })
        .await
    }

    async fn list_segments(
        &self,
        request: Request<ListSegmentsRequest>,
    ) -> Result<Response<ListSegmentsResponse>, Status> {
        let ListSegmentsRequest {
            filter,
            page_size,
            page_token,
            order_by,
        } = request.into_inner();
        self.work(move |facts| {
            let query = format!("segments {filter} {order_by}");
            let asked = Asked::new(facts, &query, page_size, &page_token, 0)?;
            let page = list(&asked, &filter_of(&filter)?, &order_of(&order_by)?, |from, most| {
                facts.segments(from, most)
            })?;
            let (next_page_token, total_size) = (page.token(&asked), page.total);
            Ok(ListSegmentsResponse {
                segments: page.items,
                next_page_token,
                total_size,
            })
        })
        .await
    }

    async fn list_packets(
        &self,
        request: Request<ListPacketsRequest>,
    ) -> Result<Response<ListPacketsResponse>, Status> {
        let ListPacketsRequest {
            connection_id: id,
            page_size,
            page_token,
        } = request.into_inner();
        // It is never closed. Who gives up leaves the work, and its turn, behind.
        let turn = Arc::clone(&self.packet_readers).acquire_owned().await;
        let log = Arc::clone(&self.log);
        self.work(move |facts| {
            let _turn = turn;
            let mut table = PacketTable::new(FlowId(id), MAX_PACKETS);
            let gaps = packets::read(&log, &mut table).map_err(|error| status::log(&error))?;
            let (mut rows, left_out) = table.finish();
            if rows.is_empty() {
                return Err(match facts.connection(id) {
                    Some(_) => status::no_packets(id),
                    None => unknown(id),
                });
            }
            // Rows are counted from the first that the log still has.
            let first = rows[0].number;
            let asked = Asked::new(facts, &format!("packets {id}"), page_size, &page_token, first)?;
            let kept = rows.len();
            let from = asked.page.as_ref().map_or(0, |page| page.from as usize).min(kept);
            let to = (from + asked.page_size).min(kept);
            let page = Page {
                items: rows.drain(from..to).collect(),
                next: (to < kept).then_some((to as u64, 0)),
                total: kept as u64 + left_out,
            };
            let (next_page_token, total_size) = (page.token(&asked), page.total);
            Ok(ListPacketsResponse {
                packets: page.items,
                next_page_token,
                total_size,
                gaps,
            })
        })
        .await
    }

    async fn list_findings(
        &self,
        request: Request<ListFindingsRequest>,
    ) -> Result<Response<ListFindingsResponse>, Status> {
        let ListFindingsRequest {
            filter,
            page_size,
            page_token,
            order_by,
        } = request.into_inner();
        self.work(move |facts| {
            let (version, findings) = facts.findings();
            let query = format!("findings {filter} {order_by}");
            let asked = Asked::new(facts, &query, page_size, &page_token, version)?;
            let page = list(&asked, &filter_of(&filter)?, &order_of(&order_by)?, |from, most| {
                let items = findings
                    .iter()
                    .enumerate()
                    .skip(usize::try_from(from).unwrap_or(usize::MAX))
                    .take(most);
                items
                    .map(|(index, finding)| (index as u64, Arc::new(Finding::clone(finding))))
                    .collect()
            })?;
            let (next_page_token, total_size) = (page.token(&asked), page.total);
            Ok(ListFindingsResponse {
                findings: page.items,
                next_page_token,
                total_size,
            })
        })
        .await
    }

    async fn watch_findings(
        &self,
        request: Request<WatchFindingsRequest>,
    ) -> Result<Response<Self::WatchFindingsStream>, Status> {
        let filter = filter_of(&request.into_inner().filter)?;
        let place = self.streams.place()?;
        let receiver = finding_feed::start(Arc::clone(&self.facts), filter, self.streams.clone(), place);
        Ok(Response::new(ReceiverStream::new(receiver)))
    }

    async fn get_timeline(
        &self,
        request: Request<GetTimelineRequest>,
    ) -> Result<Response<GetTimelineResponse>, Status> {
        let GetTimelineRequest { start_time, end_time } = request.into_inner();
        status::times(start_time, end_time)?;
        let is_wanted = |slice: &&TimeSlice| {
            start_time.is_none_or(|from| slice.start >= Some(from)) && end_time.is_none_or(|to| slice.start < Some(to))
        };
        let slices = self.facts.timeline();
        Ok(Response::new(GetTimelineResponse {
            slices: slices.iter().filter(is_wanted).copied().collect(),
        }))
    }

    async fn get_summary(&self, _: Request<GetSummaryRequest>) -> Result<Response<GetSummaryResponse>, Status> {
        Ok(Response::new(GetSummaryResponse {
            summary: Some(self.facts.summary()),
        }))
    }
}

fn unknown(id: u64) -> Status {
    status::not_found(
        "CONNECTION_UNKNOWN",
        format!("there is no connection {id}, or it was dropped to make room"),
    )
}

fn filter_of<T: Fields>(filter: &str) -> Result<Filter<T>, Status> {
    Filter::parse(filter).map_err(|error| status::filter(&error))
}

fn order_of<T: Fields>(order: &str) -> Result<Order<T>, Status> {
    Order::parse(order).map_err(|error| status::order(&error))
}

/// A list request, checked.
struct Asked {
    page_size: usize,
    /// Ties tokens to the facts that they count in.
    facts_id: u64,
    /// Ties tokens to the list, its filter and its order.
    fingerprint: u64,
    /// Version of a list that is replaced as a whole; 0 for lists that only grow.
    version: u64,
    /// Where to go on; none: from the first page.
    page: Option<Place>,
}

/// Where a page ended.
struct Place {
    /// Key of the next item; of an ordered list, of the last one.
    from: u64,
    /// Of what an ordered list's last item was ordered by.
    values: u64,
    /// The total of the first page.
    total: u64,
}

impl Asked {
    fn new(facts: &dyn Facts, query: &str, page_size: u32, page_token: &str, version: u64) -> Result<Self, Status> {
        let facts_id = facts.id();
        let fingerprint = u64::from(fnv1a(query.as_bytes()));
        let page = if page_token.is_empty() {
            None
        } else {
            let words = token::decode(Purpose::ListPage, page_token);
            let [token_facts, token_fingerprint, token_version, from, values, total] = words.ok_or_else(|| {
                status::invalid(
                    "page_token",
                    "PAGE_TOKEN_INVALID",
                    "this is no page token; send one as it was received, or none",
                )
            })?;
            if token_facts != facts_id {
                return Err(status::changed(
                    "the token is of another daemon, or of this one before it was started anew; begin without a token",
                ));
            }
            if token_fingerprint != fingerprint {
                let message = "the token is of another list, filter or order; keep them unchanged between pages";
                return Err(status::invalid("page_token", "PAGE_TOKEN_OF_OTHER_QUERY", message));
            }
            if token_version != version {
                return Err(status::changed(
                    "the list was replaced since the first page; begin without a token",
                ));
            }
            Some(Place { from, values, total })
        };
        let page_size = match page_size {
            0 => DEFAULT_PAGE,
            size => size.min(MAX_PAGE),
        };
        Ok(Self {
            page_size: page_size as usize,
            facts_id,
            fingerprint,
            version,
            page,
        })
    }
}

struct Page<T> {
    items: Vec<T>,
    /// Where the next page begins, if there is one: see [`Place`].
    next: Option<(u64, u64)>,
    /// All that matched when the first page was made.
    total: u64,
}

impl<T> Page<T> {
    fn token(&self, asked: &Asked) -> String {
        self.next.map_or_else(String::new, |(from, values)| {
            let words = [
                asked.facts_id,
                asked.fingerprint,
                asked.version,
                from,
                values,
                self.total,
            ];
            token::encode(Purpose::ListPage, words)
        })
    }
}

/// One page. The first one goes through the whole list to count; later ones stop at the first
/// item of the page after them, if the list is not ordered.
fn list<T: Fields + Clone>(
    asked: &Asked,
    filter: &Filter<T>,
    order: &Order<T>,
    chunk: impl Fn(u64, usize) -> Vec<(u64, Arc<T>)>,
) -> Result<Page<T>, Status> {
    if !order.is_empty() {
        return ordered(asked, filter, order, chunk);
    }
    let (from, known_total) = asked
        .page
        .as_ref()
        .map_or((0, None), |page| (page.from, Some(page.total)));
    let mut page = Page {
        items: Vec::new(),
        next: None,
        total: known_total.unwrap_or(0),
    };
    for (key, item) in matching(filter, from, chunk) {
        if page.items.len() < asked.page_size {
            page.items.push(Arc::unwrap_or_clone(item));
        } else if page.next.is_none() {
            page.next = Some((key, 0));
        }
        if known_total.is_none() {
            page.total += 1;
        } else if page.next.is_some() {
            break;
        }
    }
    Ok(page)
}

/// The items of a list from a key on that pass the filter.
pub(crate) fn matching<T: Fields>(
    filter: &Filter<T>,
    mut from: u64,
    chunk: impl Fn(u64, usize) -> Vec<(u64, Arc<T>)>,
) -> impl Iterator<Item = (u64, Arc<T>)> {
    let chunks = iter::from_fn(move || {
        let items = chunk(from, CHUNK);
        from = items.last()?.0 + 1;
        Some(items)
    });
    chunks.flatten().filter(|(_, item)| filter.matches(item))
}

/// One page of an ordered list, of equal items the first known first: what comes behind the last item of the page before.
/// Each goes through the whole list, and keeps twice the items of a page.
fn ordered<T: Fields + Clone>(
    asked: &Asked,
    filter: &Filter<T>,
    order: &Order<T>,
    chunk: impl Fn(u64, usize) -> Vec<(u64, Arc<T>)>,
) -> Result<Page<T>, Status> {
    let values = |item: &T| u64::from(fnv1a(order.values(item).as_bytes()));
    let compare = |(a_key, a): &(u64, Arc<T>), (b_key, b): &(u64, Arc<T>)| order.compare(a, b).then(a_key.cmp(b_key));
    let before = match &asked.page {
        None => None,
        Some(place) => {
            let before = chunk(place.from, 1).pop();
            let unchanged = before.filter(|(key, item)| *key == place.from && values(item) == place.values);
            Some(unchanged.ok_or_else(|| {
                status::changed("the last item of the page before has changed or is gone; begin without a token")
            })?)
        }
    };
    let most = asked.page_size + 1;
    let mut first: Vec<(u64, Arc<T>)> = Vec::new();
    let mut total = 0;
    for item in matching(filter, 0, chunk) {
        total += 1;
        if before.as_ref().is_some_and(|before| compare(&item, before).is_le()) {
            continue;
        }
        first.push(item);
        if first.len() > 2 * most {
            first.select_nth_unstable_by(most, compare);
            first.truncate(most);
        }
    }
    first.sort_unstable_by(compare);
    let is_more = first.len() > asked.page_size;
    first.truncate(asked.page_size);
    Ok(Page {
        next: first.last().filter(|_| is_more).map(|(key, item)| (*key, values(item))),
        items: first.into_iter().map(|(_, item)| Arc::unwrap_or_clone(item)).collect(),
        total: asked.page.as_ref().map_or(total, |page| page.total),
    })
}
